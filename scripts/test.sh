#!/usr/bin/env bash
# The tests, stage by stage with their time: scripts/test.sh [fast]
# fast leaves out the documentation, the instructions of the core and the release build.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"
mode=${1:-all}
# Nothing is compiled twice in CI: what the compiler keeps for a second time costs disk and time, and
# so do the line numbers of frames in backtraces.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_RELEASE_DEBUG=0
passed=0 failed=0 skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
begun=$SECONDS

# stage NAME COMMAND...: runs it, prints its time, and counts it. Exit status 77 means skipped.
stage() {
  local name=$1 start=$SECONDS status
  shift
  printf '== %s\n' "$name"
  "$@" 2>&1 | tee "$log/out"
  status=${PIPESTATUS[0]}
  if [ "$status" = 77 ] && [ "${CI:-}" != true ]; then
    skipped=$((skipped + 1)); printf -- '-- %s: skipped\n' "$name"
  elif [ "$status" != 0 ]; then
    failed=$((failed + 1)); printf -- '-- %s: FAILED (%d s)\n' "$name" $((SECONDS - start))
    { printf -- '-- %s, what failed in it:\n' "$name"
      grep -E -A2 'panicked at|^(test .*FAILED|error|FAIL|ERROR)|AssertionError|Error:' "$log/out" | head -30
      tail -5 "$log/out"; } >>"$log/failures"
  else
    passed=$((passed + 1)); printf -- '-- %s: ok (%d s)\n' "$name" $((SECONDS - start))
  fi
}

# What later stages download comes while others compute. A stage whose files did not come tries itself.
if [ "$mode" = all ]; then
  scripts/fetch.sh "${CARGO_TARGET_DIR:-target}" >"$log/fetch" 2>&1 &
  fetch=$!
fi

stage format cargo fmt --all --check
stage format-bridges cargo fmt --check --manifest-path bridges/zenoh/Cargo.toml
stage lint cargo clippy --quiet --locked --workspace --features onym/s3 --all-targets -- -D warnings
stage tests cargo run --quiet --locked --package xtask -- tests --locked --features onym/s3
stage licences cargo run --quiet --locked --package xtask -- licences
stage tidy cargo run --quiet --locked --package xtask -- tidy
stage python-client env PYTHONPATH=clients/python python3 -m unittest discover -s clients/python/tests
if [ "$mode" = all ]; then
  printf '== fetch\n'; wait "$fetch"; cat "$log/fetch"
  stage laboratory scripts/lab.sh test
  stage documentation env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps
  # What the stages below use; with the whole workspace, so that features are the same everywhere.
  stage release cargo build --quiet --release --locked --workspace --bin onym --bin onym-testkit --bin onym-bench --bin core_icount --bin push_core
  stage instructions cargo run --quiet --locked --package xtask -- icount
  stage page scripts/web.sh "${CARGO_TARGET_DIR:-target}/release/onym"
  stage python-ndn tests/interop/run.sh python
  stage ndnts tests/interop/run.sh ndnts
  stage python-daemon env ONYM="$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym" PYTHONPATH=clients/python python3 -m unittest discover -s clients/python/tests
  stage udp-preload clients/preload/test.sh "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage old-framing tests/old-framing/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage doors tests/doors/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  # The dear ones are `make attacks`.
  stage attacks tests/doors/attacks.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym" pending addresses stale
  stage manual tests/manual/test.sh "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage packages tests/packages/run.sh "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage push-lans tests/push-lans/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage push-found tests/push-lans/found.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage push-takeover tests/push-lans/takeover.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage video tests/video/run.sh "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage mqtt tests/mqtt/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage mqtt-paho tests/mqtt/paho.sh "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage routing tests/routing/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage service-ethernet tests/service-ethernet/run.py "$(realpath "${CARGO_TARGET_DIR:-target}")/release/onym"
  stage kernel kernel/tests/kernel-test.sh "$PWD/target/kernel"
  stage dkms kernel/tests/dkms.sh "$PWD/target/kernel"
  stage demonstration cargo run --quiet --locked --package xtask -- demo --size 20
  stage containers scripts/docker.sh
fi
# Again at the end, where one looks first.
[ "$failed" = 0 ] || cat "$log/failures"
printf 'time: %d s\n' $((SECONDS - begun))
printf 'stages: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
