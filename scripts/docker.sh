#!/usr/bin/env bash
# The manager with the Docker engine: scripts/docker.sh PROGRAM [BINARY]; images are made of BINARY,
# else of PROGRAM, which must be static (`make static`).
# Uses the engine that runs (DOCKER_SOCKET); else starts one with a folder of its own and ends it.
# Exit status 77: no engine can be started here.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/static/onym}")
binary=$(realpath "${2:-$program}")
work=$(mktemp -d)
socket=${DOCKER_SOCKET:-/var/run/docker.sock} engine= manager=
cleanup() {
  [ -z "$manager" ] || { "$program" net --manager "$url" down >/dev/null 2>&1 || true; kill "$manager" 2>/dev/null || true; }
  [ -z "$engine" ] || { kill "$engine" && wait "$engine" || true; } 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT

# until SECONDS COMMAND...: true once the command is.
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}
answers() { curl -sf --unix-socket "$socket" http://localhost/_ping; }

if ! answers >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null || { echo "skipped: no Docker engine, and none can be started"; exit 77; }
  socket=$work/docker.sock
  setsid dockerd --host "unix://$socket" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" >"$work/engine.log" 2>&1 &
  engine=$!
  until_true 60 answers || { tail -5 "$work/engine.log"; echo "skipped: the engine did not start"; exit 77; }
fi

"$program" manager --listen 127.0.0.1:0 --state "$work/state" --driver docker --binary "$binary" --docker-socket "$socket" 2>"$work/log" &
manager=$!
until_true 120 grep -q '^ready' "$work/log" || { cat "$work/log"; exit 1; }
url=$(sed -n 's/^ready .*"url":"\([^"]*\)".*/\1/p' "$work/log")
net() { "$program" net --manager "$url" "$@"; }

port=$((20000 + RANDOM % 10000))
net preset nfd --print | sed "s/:6363/:$port/g" >"$work/network.toml"
sed -i 's/^kind = "backward-router"/&\nquota = 0.5/' "$work/network.toml"
net apply "$work/network.toml"
head -c 1000000 /dev/urandom >"$work/in"
export HOME=$work ONYM_KEYSTORE=$work/keys
"$program" put --node "tcp4://127.0.0.1:$port" /example/file "$work/in" >"$work/put" 2>&1 &
put=$!
until_true 30 "$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out"
cmp "$work/in" "$work/out"
echo "docker: a file through the chain"

# A container that is killed is replaced, and the manager that is killed adopts the rest.
container() { net show --json | sed -n "/\"$1\": {/,/\"handle\"/s/.*\"handle\": \"\([^\"]*\)\".*/\1/p" | head -1; }
old=$(container cs)
curl -sf --unix-socket "$socket" -X POST "http://localhost/containers/$old/kill"
replaced() { local now; now=$(container cs); [ -n "$now" ] && [ "$now" != "$old" ] && net show | grep -q 'as wanted' && ! net show | grep -q 'not as wanted'; }
until_true 60 replaced
"$program" get --node "tcp4://127.0.0.1:$port" /example/file -o "$work/out2"
cmp "$work/in" "$work/out2"
echo "docker: a killed container is replaced"
kill "$put" || true
net down
manager_down() { [ "$(curl -sf --unix-socket "$socket" 'http://localhost/containers/json?all=1' | grep -c onym.manager || true)" = 0 ]; }
until_true 30 manager_down
echo "docker: nothing is left"
