#!/usr/bin/env bash
# What a container costs: scripts/bench-containers.sh [ARGUMENTS of bench-containers.py]
# Needs root, target/static/onym (`make static`) and target/release/onym-bench.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/engine.sh
work=$(mktemp -d)
cleanup() { engine_stop; rm -rf "$work"; }
trap cleanup EXIT
engine_start "$work"
scripts/bench-containers.py --socket "$socket" "$@"
