# What the tests of the preloaded library share: sourced with the path of the onym program. Makes the library and
# a folder `work`; node, start, at and until_true. Exit status 77: something that it needs is not there.
set -euo pipefail
onym=${1:-${ONYM:-}}
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$onym" ] || { echo "no onym program: $0 PATH"; exit 77; }
for tool in cc socat curl python3; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
work=$(mktemp -d)
started=()
finish() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT
cc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$work/libonym_udp.so" "$here"/*.c -ldl -pthread
library=${LIBRARY:-$work/libonym_udp.so}
# An address of loopback that nobody else has, so that every port is free.
loopback=127.$((RANDOM % 250 + 1)).$((RANDOM % 250)).$((RANDOM % 250 + 1))

until_true() { # CONDITION, within 30 seconds
  local end=$((SECONDS + 30))
  until eval "$1"; do
    [ $SECONDS -lt $end ] || { echo "FAILED: $1"; cat "$work"/*.log; exit 1; }
    read -rt 0.05 <> <(:) || true
  done
}

node() { # NUMBER ROLES PEER...: a node that is joined to the peers over UDP
  local number=$1 roles=$2 links=() words=() peer; shift 2
  for peer; do links+=("{face=\"udp4://$loopback:700$peer\"}"); done
  for setting in "faces.unix.path=\"$work/$number.sock\"" 'faces.tcp.listen=[]' 'faces.websocket.listen=[]' push.enabled=true \
    "faces.udp.listen=[\"$loopback:700$number\"]" "push.node=\"$number\"" "push.link=[$(IFS=,; echo "${links[*]}")]" $roles; do
    words+=(--set "$setting")
  done
  "$onym" daemon "${words[@]}" 2>"$work/$number.log" &
  started+=($!)
  until_true "grep -qs ready '$work/$number.log'"
}

over() { # NODE HOSTS: the environment of a program over the push network
  echo "LD_PRELOAD=$library ONYM_UDP_NODE=$work/$1.sock ONYM_TCP_NODE=$work/$1.sock ONYM_UDP_HOST=$2 ONYM_TCP_HOST=$2"
}
at() { # NODE HOSTS COMMAND...
  local words; words=$(over "$1" "$2"); shift 2
  env $words "$@"
}
start() { # NODE HOSTS COMMAND...: the same, in the background
  local words; words=$(over "$1" "$2"); shift 2
  env $words "$@" <&0 &
  started+=($!)
}
