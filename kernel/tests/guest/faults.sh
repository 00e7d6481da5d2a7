# SPDX-License-Identifier: GPL-2.0 OR MIT
# A process that is killed, a device, a namespace and the module that are removed,
# while traffic flows, ROUNDS times each.
set -e
N=${ROUNDS:-5}
seed=0
lay() {
  ip netns add x
  ip link add v0 type veth peer name v1 netns x
  ip link set v0 up; ip -n x link set v1 up
}
flows() { seed=$((seed+1)); "$@" traffic $seed 0 $device > /dev/null 2>&1 & running="$running $!"; }
# Some hundredths of a second, another number each time.
moment() { usleep $(( (seed * 7919 % 60) * 1000 )); }
stop() { for p in $running; do kill -9 $p 2>/dev/null || true; wait $p 2>/dev/null || true; done; running=; }
running= device=
insmod /nnet.ko $LOAD
nnet-test ctl route /a 1
for i in $(seq $N); do flows nnet-test as 1000 -; flows nnet-test as 1001 -; moment; stop; done
echo "processes killed: $N"
i=0; until [ "$(awk '$1 == "entries" { print $2 }' /proc/net/nnet/pit)" = 0 ]; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || { head -3 /proc/net/nnet/pit; exit 1; }; done
for i in $(seq $N); do
  lay
  f=$(nnet-test ctl ether v0 ff:ff:ff:ff:ff:ff); nnet-test ctl route /b $f
  device=v1; flows /sbin/ip netns exec x nnet-test; device=; flows nnet-test as 1000 -
  moment
  ip link del v0
  stop
  ip netns del x
done
echo "devices removed: $N"
for i in $(seq $N); do
  lay
  device=v1; flows /sbin/ip netns exec x nnet-test; device=; flows nnet-test as 1000 un
  moment
  ip netns del x
  stop
  # It goes with the last process in it, a moment later.
  n=0; while ip link show v0 > /dev/null 2>&1; do sleep 0.1; n=$((n+1)); [ $n -lt 100 ] || { echo "the namespace stays"; exit 1; }; done
done
echo "namespaces removed: $N"
unload
lay
us=$(ip link show v0 | awk '/ether/ {print $2}') peer=$(ip -n x link show v1 | awk '/ether/ {print $2}')
for i in $(seq $N); do
  insmod /nnet.ko $LOAD
  nnet-test ctl ether v0 $peer > /dev/null
  flows nnet-test as 1000 -
  /sbin/ip netns exec x nnet-test flood v1 $us 1 > /dev/null & flood=$!
  moment
  stop
  unload
  kill -9 $flood 2>/dev/null || true; wait $flood 2>/dev/null || true
done
echo "modules removed: $N"
ip netns del x
