#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Builds the module and boots stock Debian kernels with it: kernel-test.sh TARGET
# KERNELS: versions or build folders (default: all whose headers are installed, and
# the newest 6.12 of the archive). SCRIPTS: guest scripts.
# FOREIGN=no leaves python-ndn and NDNts out.
# Exit status 77 where QEMU or headers are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
kernels=${KERNELS:-$(ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sed 's|.*/linux-headers-||')}
missing=
command -v qemu-system-x86_64 >/dev/null || missing="$missing qemu-system-x86"
[ -x /bin/busybox ] || missing="$missing busybox-static"
command -v cpio >/dev/null || missing="$missing cpio"
[ -n "$kernels" ] || missing="$missing linux-headers-cloud-amd64"
if [ -n "$missing" ]; then
  echo "kernel tests skipped, missing:$missing (scripts/setup.sh kernel)" >&2
  exit 77
fi
failed=0
"$here/security.sh" || failed=1
if python3 -c 'import yaml' 2>/dev/null; then "$here/../tools/nlgen.py" --check || failed=1; fi
[ -n "${KERNELS:-}" ] || case $kernels in
  *6.12.*) ;;
  *) kernels="$kernels $("$here/headers.sh" 6.12 "$target")" || { [ "${CI:-}" != true ] || failed=1; } ;;
esac
. "$here/programs.sh"
PROGRAMS=$(mktemp -d)
export PROGRAMS
trap 'rm -rf "$PROGRAMS"' EXIT
running=
# A guest for each kernel, all at the same time.
for build in $kernels; do
  "$here/build.sh" "$build" "$target"
  name=$(basename "$build") k=${build##*linux-headers-}
  if ! image=$("$here/image.sh" "$k" "$target"); then
    [ "${CI:-}" = true ] && failed=1
    continue
  fi
  LIMIT=${LIMIT:-600} "$here/vm.sh" "$target/$name/src/nnet.ko" "$image/boot/vmlinuz-$k" "$image/lib/modules/$k" \
    "${SCRIPTS:-sockets,limits,bounds,release,campaign,faults,netns,clients,daemon,bridge,store,upgrade,conformance,stress}" > "$target/$name/guest.log" 2>&1 &
  running="$running $!:$name"
done
# Unmodified programs of others, on the first kernel: a guest of their own, for they are large.
set -- $running
if [ -z "${SCRIPTS:-}" ] && [ $# -gt 0 ] && [ "${FOREIGN:-yes}" = yes ]; then
  name=${1#*:} k=${1##*linux-headers-} k=${k#*:}
  if "$here/guest-foreign.sh" "$target/foreign"; then
    rm -rf "$target/foreign-data" && mkdir -p "$target/foreign-data"
    cp -r "$target/foreign" "$target/foreign-data/"
    cp "$target/foreign.node" "$target/node"
    EXTRA="/usr/bin/python3.11 $target/node" DATA=$target/foreign-data MEM=2048 LIMIT=${LIMIT:-600} "$here/vm.sh" \
      "$target/$name/src/nnet.ko" "$target/images/$k/boot/vmlinuz-$k" "$target/images/$k/lib/modules/$k" foreign > "$target/foreign.log" 2>&1 &
    running="$running $!:foreign"
  else
    [ "${CI:-}" = true ] && failed=1
  fi
fi
for r in $running; do
  wait "${r%%:*}" || failed=1
  case $r in
    *:foreign) cat "$target/foreign.log" ;;
    *) cat "$target/${r#*:}/guest.log" ;;
  esac
done
exit $failed
