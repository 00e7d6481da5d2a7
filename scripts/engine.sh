# Sourced by what needs a Docker engine: engine_start FOLDER sets `socket` to the engine that runs
# (DOCKER_SOCKET, else the usual place), else starts one with FOLDER for all that it keeps;
# engine_stop ends it. engine_start ends the program with 77 when no engine can be started here.

socket=${DOCKER_SOCKET:-/var/run/docker.sock}
engine=

# until_true SECONDS COMMAND...: true once the command is.
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}

# closed SHOWN: no service of `onym net show --json` answers who has not its token.
closed() {
  local control path status count=0
  for control in $(sed -n 's/.*"control": "\(http[^"]*\)".*/\1/p' "$1"); do
    count=$((count + 1))
    for path in version service config faces stats events; do
      for words in "-X GET" "-X PATCH -d {}" "-X GET -H Authorization:Bearer\ none"; do
        status=$(eval curl -s -o /dev/null -w '%{http_code}' "$words" "$control/v1/$path")
        [ "$status" = 401 ] || { echo "$control/v1/$path answers $status without a token"; return 1; }
      done
    done
    status=$(curl -s -o /dev/null -w '%{http_code}' "$control/metrics")
    [ "$status" = 401 ] || { echo "$control/metrics answers $status without a token"; return 1; }
  done
  [ $count -ge 4 ] || { echo "only $count services"; return 1; }
}

engine_answers() { curl -sf --unix-socket "$socket" http://localhost/_ping; }

engine_start() {
  ! engine_answers >/dev/null 2>&1 || return 0
  [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null || {
    echo "skipped: no Docker engine, and none can be started (apt-get install docker.io, as root)"
    exit 77
  }
  socket=$1/docker.sock
  # A bridge of its own: the usual one may belong to another engine.
  ip link add onym-docker0 type bridge
  ip addr add 172.31.255.1/24 dev onym-docker0
  setsid dockerd --host "unix://$socket" --data-root "$1/data" --exec-root "$1/exec" \
    --pidfile "$1/pid" --bridge onym-docker0 >"$1/engine.log" 2>&1 &
  engine=$!
  until_true 60 engine_answers || {
    tail -5 "$1/engine.log"
    echo "skipped: the engine did not start"
    exit 77
  }
}

engine_stop() {
  [ -n "$engine" ] || return 0
  { kill "$engine" && wait "$engine"; } 2>/dev/null || true
  ip link delete onym-docker0 2>/dev/null || true
}
