#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Boots Debian's arm64 kernel 6.1 under emulation with the module: arm64-test.sh TARGET
# SCRIPTS: guest scripts that need no programs but nnet-test, the C examples, ip and
# busybox: all but those that want onym, for which there is no Rust target here.
# Exit status 77 where the emulator or the cross compiler are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
state=$target/apt-arm64
command -v qemu-system-aarch64 >/dev/null || { echo "skipped, missing: qemu-system-arm" >&2; exit 77; }
"$here/build-cross.sh" "$target" arm64
headers=$(ls -d "$target"/arm64/usr/src/linux-headers-*-arm64 | tail -1)
version=$(basename "$headers" | sed 's/linux-headers-//')
out=$target/arm64-guest
if [ ! -e "$out/boot/vmlinuz-$version" ] || [ ! -x "$out/bin/busybox" ]; then
  rm -rf "$out" && mkdir -p "$out" "$state"/{lists/partial,cache/archives/partial}
  apt=(apt-get -q -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64)
  "${apt[@]}" update >/dev/null
  (cd "$out" && "${apt[@]}" download "linux-image-$version" busybox-static:arm64 >/dev/null && for d in *.deb; do dpkg-deb -x "$d" .; rm -f "$d"; done)
  find "$out/lib/modules" -name '*.ko' | grep -vE '/(udp_tunnel|ip6_udp_tunnel|veth|sch_netem)\.ko$' | xargs rm -f
fi
modules=$out/lib/modules/$version
# ip and tc of that architecture, with the libraries that they take here.
overlay=$target/arm64-overlay
if [ ! -e "$overlay/whole" ]; then
  rm -rf "$overlay" "$target/arm64-tools" && mkdir -p "$overlay"/{sbin,lib} "$target/arm64-tools"
  apt=(apt-get -q -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64)
  packages=$(for l in $(ldd /sbin/ip | grep -oE '/[^ ]+'); do dpkg -S "$(readlink -f "$l")" 2>/dev/null || dpkg -S "$l" 2>/dev/null || true; done |
    sed 's/:.*//' | sort -u)
  (cd "$target/arm64-tools" && for p in iproute2 $packages; do "${apt[@]}" download "$p:arm64" >/dev/null; done && for d in *.deb; do dpkg-deb -x "$d" .; done)
  # Its /sbin/ip is a link to a place of the installed system.
  cp "$target/arm64-tools/bin/ip" "$overlay/sbin/ip"
  find "$target/arm64-tools" -path '*aarch64-linux-gnu/*.so*' \( -type f -o -type l \) -exec cp -L {} "$overlay/lib/" \;
  touch "$overlay/whole"
fi
OVERLAY=$overlay ARM64=1 BUSYBOX=$out/bin/busybox LIMIT=${LIMIT:-1800} "$here/vm.sh" "$target/linux-headers-$version/src/nnet.ko" \
  "$out/boot/vmlinuz-$version" "$modules" "${SCRIPTS:-sockets,limits,bounds,release,campaign,faults,netns,store,stress}"
