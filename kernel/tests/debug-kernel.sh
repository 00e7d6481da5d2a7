#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Builds a kernel with checkers from Debian's source, once: debug-kernel.sh TARGET [CHECKERS]
# CHECKERS: kasan (with lockdep and kmemleak; default), kcsan (data races).
# Prints the folder. Exit status 77 where tools are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1") checkers=${2:-kasan}
build=$target/debug-6.1
[ "$checkers" = kasan ] || build=$target/$checkers-6.1
tarball=/usr/src/linux-source-6.1.tar.xz
missing=
for c in flex bison bc; do command -v $c >/dev/null || missing="$missing $c"; done
[ -e "$tarball" ] || missing="$missing linux-source-6.1"
[ -z "$missing" ] || { echo "debug kernel skipped, missing:$missing (scripts/setup.sh kernel kernel-debug)" >&2; exit 77; }
case $checkers in
  kasan) need="KASAN PROVE_LOCKING DEBUG_KMEMLEAK" ;;
  kcsan) need="KCSAN" ;;
  *) echo "no such checkers: $checkers" >&2; exit 2 ;;
esac
# What the kernel was built from, so that a checkout's times do not matter.
made_of=$(cat "$here"/debug/{common,x86,$checkers}.config | sha256sum; stat -c '%s' "$tarball")
if [ ! -e "$build/arch/x86/boot/bzImage" ] || [ "$(cat "$build/.made-of" 2>/dev/null)" != "$made_of" ]; then
  echo "building the kernel for $checkers in $build" >&2
  mkdir -p "$build"
  [ -e "$build/Makefile" ] || tar xf "$tarball" -C "$build" --strip-components=1
  {
    make -s -C "$build" tinyconfig
    (cd "$build" && scripts/kconfig/merge_config.sh -m .config "$here"/debug/{common,x86,$checkers}.config >/dev/null)
    make -s -C "$build" olddefconfig
    # What only others select, and what another choice would take away silently.
    for c in $need SLUB NET_UDP_TUNNEL CRYPTO_LIB_SHA256; do
      grep -q "^CONFIG_$c=y" "$build/.config" || { echo "the kernel lacks $c"; exit 1; }
    done
    make -s -C "$build" -j"${JOBS:-2}" bzImage modules_prepare vmlinux 2>&1 | tail -3
    make -s -C "$build" -j"${JOBS:-2}" modules 2>&1 | tail -1 || true
  } >&2
  echo "$made_of" > "$build/.made-of"
fi
echo "$build"
