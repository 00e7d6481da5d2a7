#!/usr/bin/env bash
# socat, unmodified, talks across a push network of two nodes: clients/preload/test.sh ONYM
# Exit status 77: something that it needs is not there.
set -euo pipefail
onym=${1:-${ONYM:-}}
[ -x "$onym" ] || { echo "no onym program: clients/preload/test.sh PATH"; exit 77; }
command -v socat >/dev/null || { echo "no socat"; exit 77; }
command -v cc >/dev/null || { echo "no C compiler"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=()
finish() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT
cc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$work/libonym_udp.so" "$here"/*.c -ldl -pthread

# until CONDITION: within 30 seconds.
until_true() {
  local end=$((SECONDS + 30))
  until eval "$1"; do
    [ $SECONDS -lt $end ] || { echo "FAILED: $1"; cat "$work"/*.log; exit 1; }
    read -rt 0.05 <> <(:) || true
  done
}

node() { # NAME SETTINGS...
  local name=$1 words=(); shift
  for setting in "faces.unix.path=\"$work/$name.sock\"" 'faces.tcp.listen=[]' 'faces.websocket.listen=[]' push.enabled=true "$@"; do
    words+=(--set "$setting")
  done
  "$onym" daemon "${words[@]}" 2>"$work/$name.log" &
  started+=($!)
  until_true "grep -qs ready '$work/$name.log'"
}
# Two free UDP ports, asked of the system.
read -r port_one port_two < <(python3 -c 'import socket
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')
node one "faces.udp.listen=[\"127.0.0.1:$port_one\"]" 'push.node="1"' \
  "push.link=[{face=\"udp4://127.0.0.1:$port_two\"}]"
node two "faces.udp.listen=[\"127.0.0.1:$port_two\"]" 'push.node="2"' 'push.roles=[]' \
  "push.link=[{face=\"udp4://127.0.0.1:$port_one\"}]"

at() { # NODE HOST COMMAND...: runs it with its datagrams over the push network
  local name=$1 host=$2; shift 2
  LD_PRELOAD="$work/libonym_udp.so" ONYM_UDP_NODE="$work/$name.sock" ONYM_UDP_HOST="$host" "$@"
}

# One way: a datagram each.
at one 10.0.0.1 socat -u UDP4-RECV:7001 OPEN:"$work/got",creat,append 2>"$work/recv.log" &
started+=($!)
for word in one two three; do echo "$word"; done >"$work/sent"
at two 10.0.0.2 socat -u -b 8192 OPEN:"$work/sent" UDP4-SENDTO:10.0.0.1:7001 2>"$work/send.log" &
started+=($!)
until_true "cmp -s '$work/sent' '$work/got'"
echo "one way: ok"

# Both ways: a question and its answer.
at one 10.0.0.3 socat UDP4-RECVFROM:7002 EXEC:"tr a-z A-Z" 2>"$work/answer.log" &
started+=($!)
echo "shall it be loud" | at two 10.0.0.4 socat -T 20 -t 20 - UDP4-SENDTO:10.0.0.3:7002 >"$work/answer" 2>"$work/ask.log" &
started+=($!)
until_true "grep -qs 'SHALL IT BE LOUD' '$work/answer'"
echo "both ways: ok"

other() { # HOST PORT: a server of another make, which turns one datagram round
  PYTHONPATH="$here/../python" python3 - "unix://$work/one.sock" "$@" <<'PYTHON' 2>"$work/other.log" &
import sys
from onym.push.datagram import Server, address

with Server(address(sys.argv[2], int(sys.argv[3])), sys.argv[1]) as server:
    question, peer = server.recvfrom(30)
    server.sendto(question[::-1], peer)
    server.recvfrom(5)
PYTHON
  started+=($!)
}
turned() { # SOCAT-ADDRESS: which comes back turned round
  printf '%s' "$1" | at two 10.0.0.6,fd00::6 socat -T 20 -t 20 - "$1" >"$work/turned" 2>"$work/turn.log" &
  started+=($!)
  until_true "grep -qsF '$(rev <<<"$1")' '$work/turned'"
}

# Both makes derive the same scopes and ways back; a mapped address is the peer of IPv4.
other 10.0.0.5 7003
other 10.0.0.9 7005
other fd00::9 7006
turned UDP4-SENDTO:10.0.0.5:7003
turned "UDP6-SENDTO:[::ffff:10.0.0.9]:7005"
turned "UDP6-SENDTO:[fd00::9]:7006"
echo "with another make, mapped addresses, IPv6: ok"

# Over IPv6, and a server of both families: that of IPv4 is known by its mapped address.
at one 10.0.0.7,fd00::7 python3 - <<'PYTHON' >"$work/both" 2>"$work/both.log" &
import socket

server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
server.bind(("::", 7004))
for _ in range(2):
    question, peer = server.recvfrom(9000)
    print(peer[0], flush=True)
    server.sendto(question.swapcase(), peer)
PYTHON
started+=($!)
echo "in Six" | at two fd00::8 socat -T 20 -t 20 - "UDP6-SENDTO:[fd00::7]:7004" >"$work/six" 2>"$work/six.log" &
started+=($!)
until_true "grep -qs 'IN sIX' '$work/six'"
grep -q '^100::' "$work/both" || { echo "FAILED: the peer's address is $(cat "$work/both")"; exit 1; }
echo "in Four" | at two 10.0.0.8 socat -T 20 -t 20 - UDP4-SENDTO:10.0.0.7:7004 >"$work/four" 2>"$work/four.log" &
started+=($!)
until_true "grep -qs 'IN fOUR' '$work/four'"
grep -q '^::ffff:240' "$work/both" || { echo "FAILED: the peer's address is $(cat "$work/both")"; exit 1; }
echo "IPv6 and both: ok"

PYTHONPATH="$here/../python" python3 "$here/played.py" "$work/libonym_udp.so" "$work"
