#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# python-ndn and NDNts, unmodified, with the programs of tests/interop, for a guest:
#   guest-foreign.sh FOLDER, and FOLDER.node, the program that runs NDNts
# They come from PyPI and npm and are kept. Exit status 77 where they cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1") interop=$here/../../tests/interop python=/usr/lib/python3.11
for c in /usr/bin/python3.11 $python/lib-dynload "$(command -v node || echo nodejs)" "$(command -v npm || echo npm)"; do
  [ -e "$c" ] || { echo "skipped, missing: $c" >&2; exit 77; }
done
made_of=$(cat "$interop/python/requirements.txt" "$interop/ndnts/package.json" | sha256sum)
if [ "$(cat "$out/.made-of" 2>/dev/null)" != "$made_of" ]; then
  rm -rf "$out" && mkdir -p "$out/ndnts" "$out/lib/python3.11"
  cp "$interop/ndnts/package.json" "$out/ndnts/"
  # NDNts needs Node.js 20; Debian 12 has 18, so the package `node` brings it then.
  newer='' && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || newer=node@20
  # shellcheck disable=SC2086
  python3.11 -m venv "$out.venv" && "$out.venv/bin/pip" install --quiet --disable-pip-version-check --target "$out/site" -r "$interop/python/requirements.txt" >&2 &&
    (cd "$out/ndnts" && npm install --silent --no-package-lock --no-audit --no-fund $newer >&2) || { echo "skipped: python-ndn or NDNts cannot be installed" >&2; exit 77; }
  cp -r $python/*.py $python/{asyncio,collections,concurrent,ctypes,email,encodings,html,http,importlib,json,logging,multiprocessing,re,sqlite3,urllib,zoneinfo,xml,lib-dynload} "$out/lib/python3.11/"
  cp "$(readlink -f "$(PATH=$out/ndnts/node_modules/.bin:$PATH command -v node)")" "$out.node"
  rm -rf "$out/ndnts/node_modules/node" "$out"/ndnts/node_modules/node-* "$out.venv"
  # Octets that no guest reads.
  find "$out" \( -name __pycache__ -o -name '*.d.ts' -o -name '*.map' -o -name '*.dist-info' \) -prune -exec rm -rf {} +
  echo "$made_of" > "$out/.made-of"
fi
cp "$interop/ndnts/peer.mjs" "$out/ndnts/"
cp "$interop/python/peer.py" "$out/"
# What compiled modules need beside what their programs do.
mkdir -p "$out/so"
for so in "$out"/lib/python3.11/lib-dynload/*.so; do
  for l in $(ldd "$so" | grep -oE '/[^ ]+' || true); do cp -Ln "$l" "$out/so/"; done
done
