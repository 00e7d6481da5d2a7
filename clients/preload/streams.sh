#!/usr/bin/env bash
# TCP streams of unmodified programs across a push network of three nodes in a row: clients/preload/streams.sh ONYM
# Exit status 77: something that it needs is not there.
source "$(dirname "$0")/nodes.sh"
node 1 '' 2
node 2 'push.roles=[]' 1 3
node 3 'push.roles=[]' 2
third=${started[-1]}

serve() { # HOSTS ADDRESS PORT: Python's web server at node 3
  start 3 "$1" python3 -u -m http.server --bind "$2" --directory "$work/www" "$3" >"$work/http-$3.log" 2>&1
  server=${started[-1]}
  until_true "grep -qs Serving '$work/http-$3.log'"
}
must_be() { # WHAT IT IS: that
  [ "$1" = "$2" ] || { echo "FAILED: $1 is not $2"; cat "$work"/*.log; exit 1; }
}
mkdir "$work/www"
head -c 5000000 /dev/urandom >"$work/www/file"

serve 10.0.0.1 0.0.0.0 8000
at 1 10.0.0.2 curl -sS --max-time 30 http://10.0.0.1:8000/file | cmp - "$work/www/file"
echo "a web server and curl over three nodes: ok"

# The rendezvous knows of nobody there, so this takes no time.
status=0
at 1 10.0.0.2 curl -sS --max-time 30 http://10.0.0.1:8001/file 2>"$work/refused.log" || status=$?
must_be $status 7
grep -q 'Connection refused\|Could.*connect' "$work/refused.log"
echo "where nobody listens it is refused: ok"

start 1 10.0.0.2 curl -sS --limit-rate 1M --max-time 30 -o "$work/half" http://10.0.0.1:8000/file 2>"$work/half.log"
client=${started[-1]}
until_true "[ -s '$work/half' ]"
kill -KILL "$server"
status=0
wait "$client" || status=$?
[[ $status = 56 || $status = 18 ]] || must_be $status 56
echo "a server that is killed ends what it sends with an error: ok"

serve 10.0.0.3,fd00::3 :: 8002
at 1 fd00::2 curl -sSg --max-time 30 'http://[fd00::3]:8002/file' | cmp - "$work/www/file"
clients=()
for n in $(seq 12); do # more than wait for accept
  start 1 10.0.0.2 curl -sS --max-time 30 -o "$work/got-$n" http://10.0.0.3:8002/file 2>>"$work/many.log"
  clients+=("${started[-1]}")
done
for n in $(seq 12); do
  wait "${clients[$((n - 1))]}"
  cmp "$work/got-$n" "$work/www/file"
done
echo "IPv6, both families, and more at once than wait for accept: ok"

# The server is forked for each, and the end of what is asked is told before the answer.
start 3 10.0.0.4 socat TCP4-LISTEN:7001,fork EXEC:"sort -r" 2>"$work/fork.log"
until_true "at 1 10.0.0.5 socat -t 20 - TCP4:10.0.0.4:7001 </dev/null 2>/dev/null"
seq 100000 >"$work/asked"
at 1 10.0.0.5 socat -t 20 - TCP4:10.0.0.4:7001 <"$work/asked" | cmp - <(sort -r "$work/asked")
echo "a server that forks, and half a stream: ok"

# The node of who listens begins anew.
kill "$third"
wait "$third" || true
node 3 'push.roles=[]' 2
until_true "at 1 10.0.0.2 curl -s --max-time 5 http://10.0.0.3:8002/file | cmp -s - '$work/www/file'"
echo "who listens is reached again when its node is back: ok"

PYTHONPATH="$here/../python" python3 "$here/played_streams.py" "$library" "$work"
