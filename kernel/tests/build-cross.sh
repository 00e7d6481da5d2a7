#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Cross-builds the module for Debian's kernel 6.1 of another machine:
#   build-cross.sh TARGET arm64|armhf|mipsel|mips64el|i386
# Headers come by apt into TARGET, with lists of their own, so that the machine's
# architectures stay as they are; host tools are those of this machine. mipsel is
# 32 bits, little end first, as the routers of the MT7621 are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1") machine=$2
case $machine in
  arm64) flavour=arm64 arch=arm64 cross=aarch64-linux-gnu- package=gcc-aarch64-linux-gnu ;;
  armhf) flavour=armmp arch=arm cross=arm-linux-gnueabihf- package=gcc-arm-linux-gnueabihf ;;
  mipsel) flavour=4kc-malta arch=mips cross=mipsel-linux-gnu- package=gcc-mipsel-linux-gnu ;;
  mips64el) flavour=5kc-malta arch=mips cross=mips64el-linux-gnuabi64- package=gcc-mips64el-linux-gnuabi64 ;;
  i386) flavour=686-pae arch=i386 cross='' package=gcc ;;
  *) echo "no such machine: $machine" >&2; exit 2 ;;
esac
state=$target/apt-$machine
command -v "${cross}gcc" >/dev/null || { echo "skipped, missing: $package" >&2; exit 77; }
tools=/usr/lib/linux-kbuild-6.1
[ -d $tools ] || { echo "skipped, missing: linux-headers-cloud-amd64" >&2; exit 77; }
mkdir -p "$state"/{lists/partial,cache/archives/partial} "$target/$machine"
apt=(-q -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Architecture="$machine" -o APT::Architectures="$machine")
src=$target/$machine/usr/src
headers=$(ls -d "$src"/linux-headers-6.1.*-"$flavour" 2>/dev/null | tail -1 || true)
if [ ! -e "$headers/Module.symvers" ]; then
  # What a mirror lacks at the moment is told by what cannot be found in it.
  apt-get "${apt[@]}" update >/dev/null 2>&1 || true
  package=$(apt-cache "${apt[@]}" search --names-only "^linux-headers-6\.1\.[0-9.-]+-$flavour\$" | awk '{ print $1 }' | sort -V | tail -1)
  [ -n "$package" ] || { echo "the archive has no headers of 6.1 for $machine" >&2; exit 1; }
  (cd "$state" && apt-get "${apt[@]}" download "$package" "${package%-"$flavour"}-common" >/dev/null &&
    for d in linux-headers-*.deb; do dpkg-deb -x "$d" "$target/$machine"; rm -f "$d"; done)
  headers=$src/$package
  # The packages name places of an installed system.
  for d in "$headers" "${headers%-"$flavour"}-common"; do
    sed -i "s|/usr/src/linux-headers|$src/linux-headers|g" "$d/Makefile"
    for link in scripts tools; do
      rm -rf "${d:?}/$link"
      ln -s "$tools/$link" "$d/$link"
    done
  done
fi
"$here/build.sh" "$headers" "$target" ARCH=$arch CROSS_COMPILE=$cross
