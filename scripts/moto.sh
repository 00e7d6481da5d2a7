#!/usr/bin/env bash
# Runs a command with the S3 server moto beside it, whose place is in the environment:
# scripts/moto.sh COMMAND...
# moto is installed once, into target/tools/moto.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools/moto
if [ ! -x "$tools/bin/moto_server" ]; then
  python3 -m venv "$tools" && "$tools/bin/pip" install --quiet 'moto[server]==5.2.5' || {
    echo "moto: skipped, it cannot be installed" >&2
    exit 77
  }
fi
log=$(mktemp)
"$tools/bin/moto_server" -H 127.0.0.1 -p 0 >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 100); do
  place=$(sed -n 's/.*Running on \(http:[^ ]*\).*/\1/p' "$log" | head -1)
  [ -n "$place" ] && break
  kill -0 $server 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
[ -n "$place" ] || { echo "moto: it does not say where it is" >&2; exit 1; }
export ONYM_S3_ENDPOINT=$place ONYM_S3_BUCKET=data
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
python3 -c 'import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1] + "/data", method="PUT"))' "$place"
"$@"
