#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# The figures of README.md, by hand: bench.sh TARGET [SCRIPT]
# The guest's clock counts instructions (-icount shift=1: 2 ns each), so the
# machine need not be quiet. SCRIPT: bench (default; SMP=1 or 2), consumers, or
# table1 (SIZES="10 100", MEM in megabytes).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$1 script=${2:-bench}
version=$(ls -d /usr/src/linux-headers-6.1.*-amd64 | sed 's|.*/linux-headers-||' | tail -1)
image=$target/images/$version
"$here/build.sh" "$version" "$target"
[ -e "$image/boot/vmlinuz-$version" ] || { echo "no image: run kernel-test.sh first" >&2; exit 77; }
root=$here/../..
onym=${ONYM:-$root/target/release/onym}
settings=
for v in SIZES COUNT; do [ -z "${!v:-}" ] || settings="$settings nnet.$v=${!v// /,}"; done
[ ! -x "$onym" ] || export EXTRA="$onym"
MEM=${MEM:-1024} SMP=${SMP:-1} LIMIT=${LIMIT:-900} ACCEL=tcg,thread=single QEMU="-icount shift=1" APPEND="$settings" \
  exec "$here/vm.sh" "$target/$version/src/nnet.ko" "$image/boot/vmlinuz-$version" "$image/lib/modules/$version" "$script"
