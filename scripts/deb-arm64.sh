#!/usr/bin/env bash
# The Debian package for arm64, made on another machine: scripts/deb-arm64.sh PROGRAM [FOLDER]
# PROGRAM is one of the same version that runs here: it writes the manual pages and completions.
# PROFILE: another one than release. Needs rustup and, on Debian, gcc-aarch64-linux-gnu; with qemu-user
# and libc6-dev-arm64-cross the program is started, too. Exit status 77 where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1") triple=aarch64-unknown-linux-gnu profile=${PROFILE:-release}
for tool in rustup aarch64-linux-gnu-gcc aarch64-linux-gnu-objcopy; do
  command -v $tool >/dev/null || { echo "deb-arm64: skipped, there is no $tool (gcc-aarch64-linux-gnu)" >&2; exit 77; }
done
rustup target add $triple >&2 || { echo "deb-arm64: skipped, the standard library of $triple cannot be had" >&2; exit 77; }
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
cargo build --profile "$profile" --locked --target $triple --package onym --features s3
# Cargo's folder for the profile dev.
built=${CARGO_TARGET_DIR:-target}/$triple/${profile/#dev/debug}/onym
if command -v qemu-aarch64 >/dev/null && [ -d /usr/aarch64-linux-gnu ]; then
  said=$(qemu-aarch64 -L /usr/aarch64-linux-gnu "$built" --version)
  [ "$said" = "$("$program" --version)" ] || { echo "deb-arm64: $program and what was built differ: $said" >&2; exit 1; }
fi
ARCH=arm64 RUNS=$program OBJCOPY=aarch64-linux-gnu-objcopy scripts/deb.sh "$built" "${@:2}"
