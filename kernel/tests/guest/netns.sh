# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   a ----- veth ----- r ----- veth ----- b
#   consumer          router             provider
#
# Three hosts in namespaces, Ethernet faces, fragments, UDP, unload under traffic.
set -e
insmod /nnet.ko $LOAD
for n in a r b; do ip netns add $n; ip -n $n link set lo up; done
ip link add va netns a type veth peer name ra netns r
ip link add vb netns b type veth peer name rb netns r
for p in "a va 10.0.1.1/24" "r ra 10.0.1.2/24" "r rb 10.0.2.2/24" "b vb 10.0.2.1/24"; do
  set -- $p
  ip -n $1 addr add $3 dev $2
  ip -n $1 link set $2 up
done
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
in_() { n=$1; shift; ip netns exec $n "$@"; }
face_a=$(in_ a nnet-test ctl ether va $(mac r ra))
face_ra=$(in_ r nnet-test ctl ether ra $(mac a va))
face_rb=$(in_ r nnet-test ctl ether rb $(mac b vb))
face_b=$(in_ b nnet-test ctl ether vb $(mac r rb))
in_ a nnet-test ctl route /net $face_a
in_ r nnet-test ctl route /net $face_rb
in_ b nnet-test ctl route /net 1
serve() { rm -f /tmp/ready; in_ b nnet-test serve "$@" > /tmp/ready & pid=$!; i=0; while ! grep -q ready /tmp/ready 2>/dev/null; do sleep 0.1; i=$((i+1)); [ $i -lt 200 ] || exit 1; done; }
serve /net/small 200 100
in_ a nnet-test fetch /net/small 200 100
wait $pid
# Data above the MTU goes in fragments.
serve /net/large 20 7000
in_ a nnet-test fetch /net/large 20 7000
wait $pid
# The router has them: the provider is gone.
in_ a nnet-test fetch /net/large 20 7000
in_ r cat /proc/net/nnet/cs
# An object, by SEQPACKET, with loss where netem is there.
if ip -n r link show ra >/dev/null && tc -n r qdisc add dev ra root netem loss 3% 2>/dev/null; then echo "with 3% loss"; fi
in_ b nnet-test pump /net/object 300000 1000 100 > /tmp/ready2 & pumping=$!
i=0; while ! grep -q ready /tmp/ready2; do sleep 0.1; i=$((i+1)); [ $i -lt 200 ] || exit 1; done
in_ a nnet-test request /net/object 300000 || { in_ a cat /proc/net/nnet/stats | awk '$3'; in_ r cat /proc/net/nnet/stats | awk '$3'; exit 1; }
tc -n r qdisc del dev ra root 2>/dev/null || true
# Through the dispatcher's threads; the consumer's cache is off, so that they have work.
in_ a nnet-test ctl cs 0
for mode in 1 2 3; do
  in_ r nnet-test ctl dispatch $mode
  in_ a nnet-test request /net/object 300000
done
in_ r cat /proc/net/nnet/dispatch
kill $pumping
# UDP beside Ethernet.
udp_b=$(in_ b nnet-test ctl udp4 10.0.2.2 6363)
udp_r=$(in_ r nnet-test ctl udp4 10.0.2.1 6363)
in_ r nnet-test ctl route /udp $udp_r
in_ a nnet-test ctl route /udp $face_a
in_ b nnet-test ctl route /udp 1
serve /udp/x 50 1200
in_ a nnet-test fetch /udp/x 50 1200
wait $pid
# Frames of UDP are steered by their names as well.
steered() { in_ r awk 'NR > 2 { n += $2 } END { print n + 0 }' /proc/net/nnet/dispatch; }
in_ r nnet-test ctl dispatch 1
before=$(steered)
serve /udp/steered 50 1200
in_ a nnet-test fetch /udp/steered 50 1200
wait $pid
[ $(($(steered) - before)) -ge 100 ] || { in_ r cat /proc/net/nnet/dispatch; exit 1; }
# A device that goes takes its faces with it.
in_ r ip link set ra down
in_ r awk -v f=$face_ra '$1 == f { exit 1 }' /proc/net/nnet/faces
in_ r ip link set ra up
# The module goes while frames come in.
in_ a nnet-test flood va $(mac r ra) 3 & flood=$!
in_ a nnet-test flood va 01:00:5e:00:17:aa 3 & flood2=$!
sleep 0.5
# What was started by a function is its grandchild.
for p in $(pidof nnet-test); do case $(cat /proc/$p/cmdline | tr '\0' ' ') in *flood*) ;; *) kill $p ;; esac; done
unload
wait $flood $flood2
for n in a r b; do ip netns del $n; done
