# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A face that is released while fragments of packets that it knows come in: nothing
# is left that touches it later. Debug builds widen the window between the steps.
set -e
insmod /nnet.ko $LOAD window=3000
ip netns add x
ip link add v0 type veth peer name v1 netns x
ip link set v0 up; ip -n x link set v1 up
us=$(ip link show v0 | awk '/ether/ {print $2}') peer=$(ip -n x link show v1 | awk '/ether/ {print $2}')
ip netns exec x nnet-test partial v1 $us ${SECONDS_:-8} & sender=$!
n=0
while kill -0 $sender 2>/dev/null; do
  f=$(nnet-test ctl ether v0 $peer)
  i=0; until awk '$2 == "fragment_held" { exit !($3 > '${held:-0}') }' /proc/net/nnet/stats; do i=$((i+1)); [ $i -lt 1000 ] || break; done
  held=$(awk '$2 == "fragment_held" { print $3 }' /proc/net/nnet/stats)
  nnet-test ctl del $f
  n=$((n+1))
done
wait $sender
echo "$n faces released, $held fragments held"
[ $n -gt 10 ] && [ $held -gt 0 ]
# The timer of a face would run out now.
sleep 1
unload
ip netns del x
