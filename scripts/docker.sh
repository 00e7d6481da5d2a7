#!/usr/bin/env bash
# The manager with the Docker engine: scripts/docker.sh [PROGRAM [BINARY]]; images are made of BINARY,
# else of PROGRAM, which must be static; without arguments that is built first.
# Uses the engine that runs (DOCKER_SOCKET); else starts one with a folder of its own and ends it.
# Exit status 77: no engine can be started here.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/engine.sh
work=$(mktemp -d)
manager= put=
cleanup() {
  [ -z "$put" ] || kill "$put" 2>/dev/null || true
  [ -z "$manager" ] || { "$program" net --manager "$url" down >/dev/null 2>&1 || true; kill "$manager" 2>/dev/null || true; }
  engine_stop
  rm -rf "$work"
}
trap cleanup EXIT
engine_start "$work"
if [ $# = 0 ]; then
  # As the tests built it, so that little is to be built: linked once more, without symbols.
  cargo rustc --quiet --locked --package onym --bin onym -- -C target-feature=+crt-static -C strip=symbols
  cp "${CARGO_TARGET_DIR:-target}/debug/onym" "$work/onym"
  set -- "$work/onym"
fi
program=$(realpath "$1")
binary=$(realpath "${2:-$1}")

start() {
  # Else the word of the manager before is taken for this one's.
  rm -f "$work/log"
  "$program" manager --listen 127.0.0.1:0 --state "$work/state" --driver docker --binary "$1" --docker-socket "$socket" 2>"$work/log" &
  manager=$!
  until_true 120 grep -q '^ready' "$work/log" || { cat "$work/log"; exit 1; }
  url=$(sed -n 's/^ready .*"url":"\([^"]*\)".*/\1/p' "$work/log")
}
net() { "$program" net --manager "$url" "$@"; }
engine() { curl -sf --unix-socket "$socket" "$@"; }
# ours KIND WORD: how many lines of the engine's list of that kind have the word.
ours() { engine "http://localhost/$1" | grep -c "$2"; }
nothing() { ! ours "containers/json?all=1" onym.manager >/dev/null && ! ours networks '"Name":"onym-' >/dev/null; }

# An image whose program is of another machine: the error names the service and what to do, and
# nothing is left.
cp "$binary" "$work/foreign"
printf '\267' | dd of="$work/foreign" bs=1 seek=18 conv=notrunc status=none
start "$work/foreign"
port=$((20000 + RANDOM % 10000))
net preset nfd --print | sed "s/:6363/:$port/g" >"$work/network.toml"
sed -i 's/^kind = "backward-router"/&\nquota = 0.5/' "$work/network.toml"
if net apply "$work/network.toml" 2>"$work/refused"; then echo "an image that cannot start started"; exit 1; fi
grep -q 'start [a-z]* (' "$work/refused" && grep -q 'make static' "$work/refused" || { cat "$work/refused"; exit 1; }
nothing || { echo "something was left"; exit 1; }
[ "$(net show --json | grep -c '"handle"')" = 0 ]
kill "$manager"; wait "$manager" 2>/dev/null || true
digest=$(sha256sum "$work/foreign")
engine -o /dev/null -X DELETE "http://localhost/images/onym-service:${digest:0:16}"
echo "docker: an image that does not start is named, and nothing is left"

cp "$binary" "$work/service"
start "$work/service"
net apply "$work/network.toml"
head -c 1000000 /dev/urandom >"$work/in"
export HOME=$work ONYM_KEYSTORE=$work/keys
"$program" put --node "tcp4://127.0.0.1:$port" /example/file "$work/in" >"$work/put" 2>&1 &
put=$!
until_true 30 "$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out"
cmp "$work/in" "$work/out"
echo "docker: a file through the chain"

net show --json >"$work/shown"
closed "$work/shown"
echo "docker: no service answers without its token"

handles() { net show --json | grep '"handle"' | sort; }

# An image that is gone and cannot be made again is found out before anything is stopped.
handles >"$work/before"
mv "$work/service" "$work/away"
digest=$(sha256sum "$work/away")
engine -o /dev/null -X DELETE "http://localhost/images/onym-service:${digest:0:16}?force=true"
sed 's/br -> nr/br -> nf -> nr/' "$work/network.toml" >"$work/changed.toml"
printf '\n[functions.nf]\nkind = "name-filter"\n' >>"$work/changed.toml"
if net apply "$work/changed.toml" 2>"$work/refused"; then echo "a missing image was applied"; exit 1; fi
grep -q "$work/service" "$work/refused" || { cat "$work/refused"; exit 1; }
handles | cmp - "$work/before"
"$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out0"
cmp "$work/in" "$work/out0"
mv "$work/away" "$work/service"
net apply "$work/changed.toml"
[ "$(handles | wc -l)" = 5 ] || { handles; exit 1; }
echo "docker: an image that is missing stops nothing"

# A container that is killed is replaced.
container() { net show --json | sed -n "/\"$1\": {/,/\"handle\"/s/.*\"handle\": \"\([^\"]*\)\".*/\1/p" | head -1; }
old=$(container cs)
engine -X POST "http://localhost/containers/$old/kill"
replaced() { local now; now=$(container cs); [ -n "$now" ] && [ "$now" != "$old" ] && net show | grep -q 'as wanted' && ! net show | grep -q 'not as wanted'; }
until_true 60 replaced
"$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out2"
cmp "$work/in" "$work/out2"
echo "docker: a killed container is replaced"

handles >"$work/before"
kill -9 "$manager"; wait "$manager" 2>/dev/null || true
"$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out3"
start "$work/service"
settled() { net show | grep -q 'as wanted' && ! net show | grep -q 'not as wanted'; }
until_true 60 settled
handles | cmp - "$work/before"
cmp "$work/in" "$work/out3"
echo "docker: the manager that is killed adopts what runs"
kill "$put" || true
net down
until_true 30 nothing
echo "docker: nothing is left"

# The image of a node, in the same engine.
DOCKER_HOST=unix://$socket tests/image/run.sh "$binary" || { [ $? = 77 ] && [ "${CI:-}" != true ]; }
