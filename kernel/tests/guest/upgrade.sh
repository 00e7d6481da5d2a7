# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   a ----- veth ----- r ----- UDP ----- b
#
# The module is replaced while frames come in: what nnet-upgrade gives back works again,
# and while a program holds a socket nothing is changed.
set -e
[ -x /bin/onym ] || { echo "no onym here"; exit 1; }
insmod /nnet.ko $LOAD hash_bits=10
export IP=/sbin/ip
for n in a r b; do ip netns add $n; ip -n $n link set lo up; done
ip link add va netns a type veth peer name ra netns r
ip link add vb netns b type veth peer name rb netns r
ip -n r addr add 10.0.2.2/24 dev rb; ip -n b addr add 10.0.2.1/24 dev vb
for p in "a va" "r ra" "r rb" "b vb"; do set -- $p; ip -n $1 link set $2 up; done
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
in_() { n=$1; shift; ip netns exec $n "$@"; }
in_ a nnet-test ctl route /up $(in_ a nnet-test ctl ether va $(mac r ra))
in_ r nnet-test ctl ether ra $(mac a va)
in_ r nnet-test ctl route /up $(in_ r nnet-test ctl udp4 10.0.2.1 6363) 3
in_ b nnet-test ctl udp4 10.0.2.2 6363
in_ b nnet-test ctl route /up 1
in_ r nnet-test ctl cs 77
serve() { rm -f /tmp/ready; in_ b nnet-test serve /up $1 500 > /tmp/ready & i=0; until grep -qs ready /tmp/ready; do sleep 0.1; i=$((i+1)); [ $i -lt 200 ] || exit 1; done; }
serve 1000
in_ a nnet-test fetch /up 20 500
in_ a nnet-test flood va $(mac r ra) 600 & flood=$!
# A program holds a socket.
if /nnet-upgrade /nnet.ko 2> /tmp/said; then echo "replaced in use"; exit 1; fi
grep -q 'namespace b: 1 sockets' /tmp/said || { cat /tmp/said; exit 1; }
in_ a nnet-test fetch /up/again 20 500
for p in $(pidof nnet-test); do case $(cat /proc/$p/cmdline | tr '\0' ' ') in *serve*) kill $p ;; esac; done
for i in $(seq ${ROUNDS:-1}); do
  before=$(cat /sys/module/nnet/parameters/hash_bits)
  /nnet-upgrade /nnet.ko
  [ "$(cat /sys/module/nnet/parameters/hash_bits)" = "$before" ]
  in_ r awk 'NR == 2 && $2 != 77 { exit 1 }' /proc/net/nnet/cs
  serve 20
  in_ a nnet-test fetch /up/$i 20 500
done
for p in $(pidof nnet-test); do kill $p; done
wait 2>/dev/null || true
unload
for n in a r b; do ip netns del $n; done
