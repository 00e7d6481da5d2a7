#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Builds the module outside the tree: build.sh KERNEL TARGET [make argument...]
# KERNEL is a version with headers in /usr/src or a build directory.
set -euo pipefail
kernel=$(cd "$(dirname "$0")/.." && pwd)
version=$1 target=$(realpath -m "$2")
shift 2
build=/usr/src/linux-headers-$version
[ -d "$version" ] && { build=$version; version=$(basename "$version"); }
src=$target/$version/src
# Without pahole there is no type information of the module, where headers ask for it.
command -v pahole >/dev/null || set -- CONFIG_DEBUG_INFO_BTF_MODULES= "$@"
mkdir -p "$src"
# Two that build at once would take each other's files away.
exec 9> "$target/$version/lock"
flock 9
cp -ru "$kernel"/*.[ch] "$kernel/Kbuild" "$kernel/generated" "$kernel/include" "$kernel/selftest" "$src/"
make -s -C "$build" M="$src" W=1 "$@" modules
echo "built $src/nnet.ko"
