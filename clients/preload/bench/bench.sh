#!/usr/bin/env bash
# File transfer over emulated sockets beside plain UDP (Blackadder, Fig. 7), in network namespaces:
#   clients/preload/bench/bench.sh ONYM [--clients 1,2,3,4,5,6] [--seconds 2] [--rounds 1] [--rate 1gbit] [--face udp] [--csv FILE]
# A server and each client have a host of their own at one switch; what the server sends leaves at --rate
# (tbf; `none`: as fast as it goes). Nodes are joined by --face `udp`, or `ether`, where a frame with a segment
# fits one packet of the LAN. Both ways take turns within a round. Prints a table; --csv writes rows
# `bench,case,subject,metric,value,unit` as onym-bench does. Exit status 77: not root, or no compiler.
set -euo pipefail
onym=$(realpath "$1"); shift
clients=1,2,3,4,5,6 seconds=2 rounds=1 rate=1gbit face=udp csv=
while [ $# -gt 0 ]; do
  case $1 in
    --clients) clients=$2 ;; --seconds) seconds=$2 ;; --rounds) rounds=$2 ;; --rate) rate=$2 ;; --face) face=$2 ;; --csv) csv=$2 ;;
    *) echo "what is $1?" >&2; exit 2 ;;
  esac
  shift 2
done
[ "$(id -u)" = 0 ] || { echo "namespaces need root"; exit 77; }
command -v cc >/dev/null || { echo "no C compiler"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
mark=ob$$
started=() spaces=()
end_started() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; wait "${started[@]}" 2>/dev/null || true; started=(); }
finish() { end_started; for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done; rm -rf "$work"; }
trap finish EXIT
cc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$work/libonym_udp.so" "$here"/../*.c -ldl -pthread
cc -O2 -Wall -Wextra -Werror -o "$work/transfer" "$here/transfer.c"

line=$rate
[ $face = udp ] || line+=,face=$face
most=$(tr , '\n' <<<"$clients" | sort -n | tail -1)
mac() { printf '02:00:00:00:00:%02x' "$1"; }
there() { if [ $face = udp ]; then echo "udp4://10.77.0.$(($1 + 1)):6363"; else echo "ether://[$(mac "$1")]"; fi; }
space() { ip netns add "$1"; spaces+=("$1"); ip -n "$1" link set lo up; }
space "$mark-sw"
ip -n "$mark-sw" link add br0 type bridge
ip -n "$mark-sw" link set br0 up
# A switch does not put fragments together: where a container engine made bridges filter packets, this one does not.
ip netns exec "$mark-sw" sh -c 'for key in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -w "$key" ] || echo 0 >"$key"; done'
for n in $(seq 0 "$most"); do # host 0 is the server
  space "$mark-$n"
  ip link add eth0 netns "$mark-$n" address "$(mac "$n")" type veth peer name "p$n" netns "$mark-sw"
  ip -n "$mark-sw" link set "p$n" master br0 up
  ip -n "$mark-$n" addr add "10.77.0.$((n + 1))/24" dev eth0
  ip -n "$mark-$n" link set eth0 up
done
[[ $face = udp || $face = ether ]] || { echo "what is --face $face?" >&2; exit 2; }
[ "$rate" = none ] || tc -n "$mark-0" qdisc add dev eth0 root tbf rate "$rate" burst 256kb limit 8mb

until_true() { # CONDITION, within 30 seconds
  local end=$((SECONDS + 30))
  until eval "$1"; do
    [ $SECONDS -lt $end ] || { echo "FAILED: $1" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
    read -rt 0.05 <> <(:) || true
  done
}

node() { # HOST ROLES PEER...
  local n=$1 roles=$2 words=() links= faces= peer; shift 2
  for peer in "$@"; do
    links+="{face=\"$(there "$peer")\"},"
    [ $face = udp ] || faces+="{uri=\"$(there "$peer")\", local=\"dev://eth0\"},"
  done
  for setting in "faces.unix.path=\"$work/$n.sock\"" "faces.udp.listen=[\"10.77.0.$((n + 1)):6363\"]" 'faces.tcp.listen=[]' \
    'faces.websocket.listen=[]' shards=1 push.enabled=true "push.node=\"$((n + 1))\"" "push.roles=$roles" "push.link=[$links]" "face=[$faces]"; do
    words+=(--set "$setting")
  done
  ip netns exec "$mark-$n" "$onym" daemon "${words[@]}" 2>"$work/$n.log" &
  started+=($!)
  until_true "grep -qs ready '$work/$n.log'"
}

nodes() { # CLIENTS
  node 0 '["rendezvous","topology"]' $(seq 1 "$1")
  for n in $(seq 1 "$1"); do node "$n" '[]' 0; done
}

at() { # SUBJECT HOST COMMAND...
  local subject=$1 n=$2 environment=(); shift 2
  [ "$subject" = udp ] || environment=(LD_PRELOAD="$work/libonym_udp.so" ONYM_UDP_NODE="$work/$n.sock" ONYM_UDP_HOST="10.77.0.$((n + 1))")
  exec ip netns exec "$mark-$n" env "${environment[@]}" "$@"
}

once() { # SUBJECT CLIENTS: octets per second in all, segments asked for again
  local subject=$1 count=$2 n pids=()
  [ "$subject" = udp ] || nodes "$count"
  at "$subject" 0 "$work/transfer" serve 7000 2>"$work/serve.log" &
  started+=($!)
  for n in $(seq 1 "$count"); do
    at "$subject" "$n" "$work/transfer" get 10.77.0.1 7000 "$n" "$seconds" >"$work/got.$n" 2>"$work/get.$n.log" &
    pids+=($!)
  done
  for n in $(seq 1 "$count"); do
    timeout $((${seconds%.*} + 60)) tail --pid="${pids[n - 1]}" -f /dev/null
    wait "${pids[n - 1]}" || { echo "client $n failed:" >&2; cat "$work/get.$n.log" >&2; exit 1; }
  done
  cat $(seq -f "$work/got.%g" 1 "$count") | awk '{ rate += $1 / $3; again += $2 } END { printf "%.0f %d\n", rate, again }'
  end_started
}

[ -z "$csv" ] || echo bench,case,subject,metric,value,unit >"$csv"
printf '%-12s %-6s %14s %14s %8s %10s\n' case subject 'total, Mbit/s' 'each, Mbit/s' again 'of UDP'
for count in ${clients//,/ }; do
  : >"$work/rows"
  for _ in $(seq 1 "$rounds"); do
    for subject in udp onym; do echo "$subject $(once "$subject" "$count")" >>"$work/rows"; done
  done
  sort -k1,1r -k2,2n "$work/rows" | awk -v count="$count" -v rate="$line" -v csv="$csv" '
    { n[$1]++; rates[$1, n[$1]] = $2; again[$1] += $3 }
    END {
      for (i = split("udp onym", who, " "); i; i--) middle[who[i]] = rates[who[i], int((n[who[i]] + 2) / 2)]
      for (i = 1; i <= 2; i++) {
        w = who[i]; r = middle[w] * 8
        printf "clients=%-4d %-6s %14.1f %14.1f %8d %10.3f\n", count, w, r / 1e6, r / 1e6 / count, again[w], middle[w] / middle["udp"]
        if (csv != "") {
          printf "sockets,\"clients=%d,rate=%s\",%s,goodput_bps,%.0f,bit/s\n", count, rate, w, r >>csv
          printf "sockets,\"clients=%d,rate=%s\",%s,lost,%d,1\n", count, rate, w, again[w] >>csv
        }
      }
    }'
done
