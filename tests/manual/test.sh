#!/usr/bin/env bash
# The manual: its runner, the recording and the picture of README.md, then every command of its pages: tests/manual/test.sh BINARY
set -euo pipefail
cd "$(dirname "$0")"
python3 -m unittest --quiet test_run
mkdir -p ../../target
# The recording of README.md, made anew.
./run.py --cast ../../target/first-file.cast "$1" ../../docs/manual/src/tutorial/first-file.md >/dev/null
../../scripts/picture.py --check
exec ./run.py "$1"
