#!/usr/bin/env bash
# Foreign programs against a node: tests/interop/run.sh python|ndnts|foreign|all
# Installs the foreign libraries (PyPI, npm) under target/; exit status 77 when they cannot be had.
set -uo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
venv=$target/interop-venv

python_ready() {
  [ -e "$venv/ready" ] && return 0
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check \
    -r tests/interop/python/requirements.txt && touch "$venv/ready"
}

ndnts_ready() {
  [ -e tests/interop/ndnts/node_modules/@ndn/rdr ] && return 0
  (cd tests/interop/ndnts && npm install --silent --no-package-lock --no-audit --no-fund)
}

skip() { echo "skipped: $1"; exit 77; }

case ${1:-all} in
  python) python_ready || skip "python-ndn cannot be installed" ;;
  ndnts) ndnts_ready || skip "NDNts cannot be installed" ;;
  foreign) ;;
  all) python_ready || skip "python-ndn cannot be installed"; ndnts_ready || skip "NDNts cannot be installed" ;;
  *) echo "usage: $0 python|ndnts|foreign|all" >&2; exit 2 ;;
esac
exec python3 tests/interop/run.py "${1:-all}" --onym "$target/release/onym" --python "$venv/bin/python"
