#!/usr/bin/env bash
# Unmodified programs talk across push networks: clients/preload/test.sh ONYM. Here socat by datagrams, over two nodes;
# streams.sh is the rest.
# Exit status 77: something that it needs is not there.
source "$(dirname "$0")/nodes.sh"
node 1 '' 2
node 2 'push.roles=[]' 1

# One way: a datagram each.
start 1 10.0.0.1 socat -u UDP4-RECV:7001 OPEN:"$work/got",creat,append 2>"$work/recv.log"
for word in one two three; do echo "$word"; done >"$work/sent"
start 2 10.0.0.2 socat -u -b 8192 OPEN:"$work/sent" UDP4-SENDTO:10.0.0.1:7001 2>"$work/send.log"
until_true "cmp -s '$work/sent' '$work/got'"
echo "one way: ok"

# Both ways: a question and its answer.
start 1 10.0.0.3 socat UDP4-RECVFROM:7002 EXEC:"tr a-z A-Z" 2>"$work/answer.log"
start 2 10.0.0.4 socat -T 20 -t 20 - UDP4-SENDTO:10.0.0.3:7002 <<<"shall it be loud" >"$work/answer" 2>"$work/ask.log"
until_true "grep -qs 'SHALL IT BE LOUD' '$work/answer'"
echo "both ways: ok"

other() { # HOST PORT: a server of another make, which turns one datagram round
  PYTHONPATH="$here/../python" python3 - "unix://$work/1.sock" "$@" <<'PYTHON' 2>"$work/other.log" &
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
  start 2 10.0.0.6,fd00::6 socat -T 20 -t 20 - "$1" < <(printf '%s' "$1") >"$work/turned" 2>"$work/turn.log"
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
start 1 10.0.0.7,fd00::7 python3 - <<'PYTHON' >"$work/both" 2>"$work/both.log"
import socket

server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
server.bind(("::", 7004))
for _ in range(2):
    question, peer = server.recvfrom(9000)
    print(peer[0], flush=True)
    server.sendto(question.swapcase(), peer)
PYTHON
start 2 fd00::8 socat -T 20 -t 20 - "UDP6-SENDTO:[fd00::7]:7004" <<<"in Six" >"$work/six" 2>"$work/six.log"
until_true "grep -qs 'IN sIX' '$work/six'"
grep -q '^100::' "$work/both" || { echo "FAILED: the peer's address is $(cat "$work/both")"; exit 1; }
start 2 10.0.0.8 socat -T 20 -t 20 - UDP4-SENDTO:10.0.0.7:7004 <<<"in Four" >"$work/four" 2>"$work/four.log"
until_true "grep -qs 'IN fOUR' '$work/four'"
grep -q '^::ffff:240' "$work/both" || { echo "FAILED: the peer's address is $(cat "$work/both")"; exit 1; }
echo "IPv6 and both: ok"

PYTHONPATH="$here/../python" python3 "$here/played.py" "$library" "$work"
"$here/streams.sh" "$onym"
