#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# Builds the module and boots stock Debian kernels with it: kernel-test.sh TARGET
# KERNELS: versions (default: all whose headers are installed). SCRIPTS: guest scripts.
# Exit status 77 where QEMU or headers are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$1
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
root=$here/../..
onym=${ONYM:-}
for f in "$root/target/release/onym" "$root/target/debug/onym"; do [ -n "$onym" ] || [ ! -x "$f" ] || onym=$f; done
if [ -z "$onym" ]; then
  cargo build --quiet --release --locked --manifest-path "$root/Cargo.toml" --package onym
  onym=$root/target/release/onym
fi
EXTRA="$onym"
# The runner of packet scripts, and an example that makes every call of the Rust crate.
profile=dev built=debug
[ ! -x "$root/target/release/onym" ] || profile=release built=release
cargo build --quiet --locked --profile $profile --manifest-path "$root/Cargo.toml" \
  --package onym-testkit --package onym-kernel --bins --examples
EXTRA="$root/target/$built/onym-testkit $root/target/$built/examples/calls $EXTRA"
data=$target/guest-data
rm -rf "$data" && mkdir -p "$data/python" && cp -r "$root/spec/conformance/pull" "$here/deviations" "$data/"
cp -r "$root/clients/python/onym" "$data/python/"
"$here/guest-python.sh" "$data/py"
[ ! -x "$data/py/bin/python3" ] || EXTRA="$data/py/bin/python3 $EXTRA"
export DATA=$data
for tc in /sbin/tc /usr/sbin/tc; do [ -x $tc ] && EXTRA="$tc $EXTRA" && break; done
export EXTRA
failed=0
first=1
for k in $kernels; do
  "$here/build.sh" "$k" "$target"
  image=$target/images/$k
  if [ ! -e "$image/boot/vmlinuz-$k" ]; then
    mkdir -p "$image"
    (cd "$image" && apt-get download -q "linux-image-$k" >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm -f ./*.deb) || {
      echo "the image of $k cannot be had" >&2
      rm -rf "$image"
      [ "${CI:-}" = true ] && failed=1
      continue
    }
  fi
  # The whole list on the first kernel; on the others what depends on the kernel most.
  scripts=${SCRIPTS:-sockets,netns,clients,daemon,bridge,store,conformance,stress}
  [ $first = 1 ] || scripts=${SCRIPTS:-sockets,netns}
  first=0
  "$here/vm.sh" "$target/$k/src/nnet.ko" "$image/boot/vmlinuz-$k" "$image/lib/modules/$k" "$scripts" || failed=1
done
exit $failed
