#!/usr/bin/env bash
# Foreign programs against a node: tests/interop/run.sh python|ndnts|foreign|all [--only WORD]
# fetch-python and fetch-ndnts install only. Installs the foreign libraries (PyPI, npm) under target/; exit status 77 when they cannot be had.
set -uo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
venv=$target/interop-venv

python_ready() {
  [ -e "$venv/ready" ] && return 0
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check \
    -r tests/interop/python/requirements.txt && touch "$venv/ready"
}

# NDNts needs Node.js 20; Debian 12 has 18, so the package `node` brings it then.
node_major() { node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0; }

ndnts_ready() {
  (
    cd tests/interop/ndnts
    [ -e node_modules/@ndn/quic-transport ] || npm install --silent --no-package-lock --no-audit --no-fund || exit 1
    [ "$(node_major)" -ge 20 ] || [ -e node_modules/node ] ||
      npm install --silent --no-save --no-package-lock --no-audit --no-fund node@20
  ) || return 1
  (
    cd tests/interop/ndncat
    [ -e node_modules/@ndn/cat ] || npm install --silent --no-package-lock --no-audit --no-fund
  ) || return 1
  [ "$(node_major)" -ge 20 ] || PATH=$PWD/tests/interop/ndnts/node_modules/.bin:$PATH
  [ "$(node_major)" -ge 20 ]
}

skip() { echo "skipped: $1"; exit 77; }

case ${1:-all} in
  python) python_ready || skip "python-ndn cannot be installed" ;;
  ndnts) ndnts_ready || skip "NDNts cannot be installed" ;;
  fetch-python) python_ready; exit ;;
  fetch-ndnts) ndnts_ready; exit ;;
  foreign) ;;
  all) python_ready || skip "python-ndn cannot be installed"; ndnts_ready || skip "NDNts cannot be installed" ;;
  *) echo "usage: $0 python|ndnts|foreign|all" >&2; exit 2 ;;
esac
exec python3 tests/interop/run.py "${1:-all}" --onym "$target/release/onym" --python "$venv/bin/python" "${@:2}"
