#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# The guest scripts on a kernel with KASAN, lockdep and kmemleak, built once
# from Debian's source and kept in TARGET: kernel-debug-test.sh TARGET
# PARTS: lists of scripts, a guest for each (the self-test of the module runs at
# every load). RUNNER: a command that runs each guest. Fails when a script fails or a checker reports anything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
build=$target/debug-6.1
tarball=/usr/src/linux-source-6.1.tar.xz
missing=
for c in qemu-system-x86_64 cpio flex bison bc; do command -v $c >/dev/null || missing="$missing $c"; done
[ -e "$tarball" ] || missing="$missing linux-source-6.1"
[ -x /bin/busybox ] || missing="$missing busybox-static"
[ -z "$missing" ] || { echo "debug kernel skipped, missing:$missing (scripts/setup.sh kernel kernel-debug)" >&2; exit 77; }
# What the kernel was built from, so that a checkout's times do not matter.
made_of=$(cat "$here"/debug/*.config | sha256sum; stat -c '%s' "$tarball")
if [ ! -e "$build/arch/x86/boot/bzImage" ] || [ "$(cat "$build/.made-of" 2>/dev/null)" != "$made_of" ]; then
  echo "building the debug kernel in $build"
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
  echo "$made_of" > "$build/.made-of"
fi
"$here/build.sh" "$build" "$target" NNET_DEBUG=y
. "$here/programs.sh"
failed=0
# Without ACPI the kernel learns of processors from a table with one entry for each socket.
for part in ${PARTS:-sockets,limits,bounds,release,netns,store,stress clients,daemon,bridge conformance}; do
  echo "debug kernel: $part"
  SMP=${SMP:-2,sockets=2} MEM=${MEM:-1536} LIMIT=${LIMIT:-900} APPEND="${APPEND:-}" ${RUNNER:-} "$here/vm.sh" "$target/debug-6.1/src/nnet.ko" \
    "$build/arch/x86/boot/bzImage" /nonexistent "$part" || failed=1
done
[ $failed = 1 ] || echo "debug kernel: every script passed, no report of a checker"
exit $failed
