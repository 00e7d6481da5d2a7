#!/usr/bin/env bash
# Builds and compares in one run: scripts/bench.sh [ARGUMENTS of `onym-bench run`]
# relay, onym, and ndnd, nfd and ndn-fwd when they are on PATH. docs/bench.md says what is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"
cargo build --release --locked --package onym --package onym-bench
cores=$(nproc)
printf 'machine: %s cores, Linux %s, load %s\n' "$cores" "$(uname -r)" "$(cut -d' ' -f1 /proc/loadavg)"
[ "$cores" -ge 2 ] || { echo "bench: two cores are needed, one for the nodes and one for the applications" >&2; exit 1; }
exec target/release/onym-bench run "$@"
