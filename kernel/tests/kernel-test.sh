#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# Builds the module and boots stock Debian kernels with it: kernel-test.sh TARGET
# KERNELS: versions (default: all whose headers are installed). SCRIPTS: guest scripts.
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
. "$here/programs.sh"
failed=0
first=1
for k in $kernels; do
  "$here/build.sh" "$k" "$target"
  if ! image=$("$here/image.sh" "$k" "$target"); then
    [ "${CI:-}" = true ] && failed=1
    continue
  fi
  # The whole list on the first kernel; on the others what depends on the kernel most.
  scripts=${SCRIPTS:-sockets,limits,netns,clients,daemon,bridge,store,conformance,stress}
  [ $first = 1 ] || scripts=${SCRIPTS:-sockets,netns}
  first=0
  "$here/vm.sh" "$target/$k/src/nnet.ko" "$image/boot/vmlinuz-$k" "$image/lib/modules/$k" "$scripts" || failed=1
done
exit $failed
