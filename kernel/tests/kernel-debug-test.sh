#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# The guest scripts on a kernel with KASAN, lockdep and kmemleak, built once
# from Debian's source and kept in TARGET: kernel-debug-test.sh TARGET
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$1 build=$1/debug-6.1
tarball=/usr/src/linux-source-6.1.tar.xz
[ -e "$tarball" ] || { echo "debug kernel skipped, missing: linux-source-6.1 (scripts/setup.sh kernel-debug)" >&2; exit 77; }
if [ ! -e "$build/arch/x86/boot/bzImage" ] || [ "$here/debug/common.config" -nt "$build/.config" ]; then
  mkdir -p "$build"
  [ -e "$build/Makefile" ] || tar xf "$tarball" -C "$build" --strip-components=1
  make -s -C "$build" tinyconfig
  (cd "$build" && scripts/kconfig/merge_config.sh -m .config "$here/debug/common.config" "$here/debug/x86.config" >/dev/null)
  make -s -C "$build" olddefconfig
  # What only others select, and what another choice would take away silently.
  for c in KASAN PROVE_LOCKING DEBUG_KMEMLEAK SLUB NET_UDP_TUNNEL CRYPTO_LIB_SHA256; do
    grep -q "^CONFIG_$c=y" "$build/.config" || { echo "the debug kernel lacks $c" >&2; exit 1; }
  done
  make -s -C "$build" -j"${JOBS:-2}" bzImage modules_prepare vmlinux 2>&1 | tail -3
  make -s -C "$build" -j"${JOBS:-2}" modules 2>&1 | tail -1 || true
fi
"$here/build.sh" "$build" "$target" NNET_DEBUG=y
for tc in /sbin/tc /usr/sbin/tc; do [ -x $tc ] && export EXTRA="$tc ${EXTRA:-}" && break; done
MEM=1024 LIMIT=${LIMIT:-900} APPEND="${APPEND:-}" "$here/vm.sh" "$target/debug-6.1/src/nnet.ko" \
  "$build/arch/x86/boot/bzImage" /nonexistent "${SCRIPTS:-sockets,netns,store,stress}"
