#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# Cross-builds the module for Debian's arm64 kernel 6.1: build-arm64.sh TARGET
# Headers come by apt into TARGET, with lists of their own, so that the machine's
# architectures stay as they are; host tools are those of this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
state=$target/apt-arm64
command -v aarch64-linux-gnu-gcc >/dev/null || { echo "skipped, missing: gcc-aarch64-linux-gnu" >&2; exit 77; }
common=$(ls -d /usr/src/linux-headers-6.1.*-common 2>/dev/null | tail -1)
[ -n "$common" ] || { echo "skipped, missing: linux-headers-cloud-amd64" >&2; exit 77; }
version=$(basename "$common" | sed 's/linux-headers-//; s/-common//')-arm64
headers=$target/arm64/usr/src/linux-headers-$version
if [ ! -e "$headers/Module.symvers" ]; then
  mkdir -p "$state"/{lists/partial,cache/archives/partial} "$target/arm64"
  apt=(apt-get -q -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64)
  "${apt[@]}" update >/dev/null
  (cd "$state" && "${apt[@]}" download "linux-headers-$version" >/dev/null && dpkg-deb -x linux-headers-*.deb "$target/arm64")
  # The package's Makefile and links name places of an installed system.
  grep -rl "/usr/src/linux-headers-" "$headers" --include=Makefile >/dev/null || true
fi
for link in scripts tools; do
  rm -rf "${headers:?}/$link"
  ln -s "/usr/lib/linux-kbuild-6.1/$link" "$headers/$link"
done
"$here/build.sh" "$headers" "$target" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
