#!/usr/bin/env bash
# The manual: its runner, then every command of its pages: tests/manual/test.sh BINARY
set -euo pipefail
cd "$(dirname "$0")"
python3 -m unittest --quiet test_run
exec ./run.py "$1"
