#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS (60): scripts/fuzz.sh [TARGET...]
# With the nightly compiler and cargo-fuzz: libFuzzer with AddressSanitizer, from fuzz/corpus; what it
# finds on the way stays in target/fuzz-corpus. Without them (or with FUZZ_STABLE=1): random changes
# of the corpus on the stable compiler, from FUZZ_SEED. Failing inputs are in fuzz/artifacts/TARGET/.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"
seconds=${FUZZ_SECONDS:-60}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(decode names reassembly pull_script management trust_model trust_text sync route ndncert keys dissect)

say() { printf 'fuzz: %s\n' "$*"; }

has_libfuzzer() {
  [ "${FUZZ_STABLE:-}" != 1 ] && command -v rustup >/dev/null || return 1
  if ! cargo +nightly --version >/dev/null 2>&1; then
    say "installing the nightly compiler (rustup, minimal profile)"
    rustup toolchain install nightly --profile minimal >/dev/null 2>&1 || return 1
  fi
  if ! cargo fuzz --version >/dev/null 2>&1; then
    say "installing cargo-fuzz"
    cargo install --quiet --locked cargo-fuzz >/dev/null 2>&1 || return 1
  fi
}

if has_libfuzzer; then
  run() {
    local found=target/fuzz-corpus/$1 from=("fuzz/corpus/$1")
    [ "$1" != pull_script ] || from+=(spec/conformance/pull)
    mkdir -p "$found" "fuzz/artifacts/$1"
    cargo +nightly fuzz run "$1" "$found" "${from[@]}" -- \
      -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=2048 \
      -print_final_stats=1 2>&1 | grep -E '^(stat::|Done|==|SUMMARY|thread|.*panicked|Failing|error)' || true
    [ "${PIPESTATUS[0]}" = 0 ]
  }
else
  say "no nightly compiler or no cargo-fuzz: changing inputs on the stable one"
  cargo build --quiet --release --locked --package onym-fuzz-targets || exit 1
  run() { target/release/onym-fuzz-targets run "$1" "$seconds" "${FUZZ_SEED:-$RANDOM}"; }
fi

failed=()
for target in "${targets[@]}"; do
  say "$target for $seconds s"
  run "$target" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  say "failed: ${failed[*]}; run one input again with"
  say "  cargo run -p onym-fuzz-targets -- one TARGET fuzz/artifacts/TARGET/FILE"
  exit 1
fi
say "nothing found"
