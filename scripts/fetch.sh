#!/usr/bin/env bash
# What the stages of the tests would download when their turn comes, had before:
# scripts/fetch.sh TARGET. It waits for the network while others compute. What cannot be had is
# named; the stage that needs it tries again, and is what fails or is skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "$1")
kernel=$target/kernel
failed=0
# have WHAT COMMAND...
have() {
  local what=$1 begun=$SECONDS
  shift
  if "$@" >/dev/null 2>&1; then printf 'fetched %s (%d s)\n' "$what" $((SECONDS - begun))
  else printf 'not fetched: %s\n' "$what"; failed=1; fi
}
have "the laboratory's Python environment" scripts/lab.sh --help
have "python-ndn" tests/interop/run.sh fetch-python
have "NDNts" tests/interop/run.sh fetch-ndnts
have "paho-mqtt" tests/mqtt/paho.sh fetch
have "players" tests/video/run.sh fetch
have "NDNts and python-ndn for a guest" kernel/tests/guest-foreign.sh "$kernel/foreign"
kernels=$(ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sed 's|.*/linux-headers-||')
case $kernels in
  *6.12.*) ;;
  *) have "headers of 6.12" kernel/tests/headers.sh 6.12 "$kernel" && kernels="$kernels $(kernel/tests/headers.sh 6.12 "$kernel" 2>/dev/null)" ;;
esac
for build in $kernels; do
  have "the image of ${build##*linux-headers-}" kernel/tests/image.sh "${build##*linux-headers-}" "$kernel"
done
exit $failed
