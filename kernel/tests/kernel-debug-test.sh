#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The guest scripts on a kernel with checkers, built once from Debian's source and
# kept in TARGET: kernel-debug-test.sh TARGET
# CHECKERS: kasan (with lockdep and kmemleak; default) or kcsan (data races).
# PARTS: lists of scripts, a guest for each (the self-test of the module runs at
# every load). RUNNER: a command that runs each guest. Fails when a script fails or a checker reports anything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
missing=
for c in qemu-system-x86_64 cpio; do command -v $c >/dev/null || missing="$missing $c"; done
[ -x /bin/busybox ] || missing="$missing busybox-static"
[ -z "$missing" ] || { echo "debug kernel skipped, missing:$missing (scripts/setup.sh kernel kernel-debug)" >&2; exit 77; }
build=$("$here/debug-kernel.sh" "$target" "${CHECKERS:-kasan}")
"$here/build.sh" "$build" "$target" NNET_DEBUG=y
parts=${PARTS:-sockets,limits,bounds,release,netns,store,stress clients,daemon,bridge conformance}
case $parts in *clients* | *daemon* | *bridge* | *upgrade* | *conformance*) . "$here/programs.sh" ;; *) export EXTRA=/sbin/tc ;; esac
failed=0
# Without ACPI the kernel learns of processors from a table with one entry for each socket.
for part in $parts; do
  echo "debug kernel: $part"
  SMP=${SMP:-2,sockets=2} MEM=${MEM:-1536} LIMIT=${LIMIT:-900} APPEND="${APPEND:-}" ${RUNNER:-} "$here/vm.sh" "$target/$(basename "$build")/src/nnet.ko" \
    "$build/arch/x86/boot/bzImage" /nonexistent "$part" || failed=1
done
[ $failed = 1 ] || echo "debug kernel: every script passed, no report of a checker"
exit $failed
