# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A process that is killed, a device, a namespace and the module that are removed,
# while traffic flows, ROUNDS times each; the first three in LANES at the same time.
# SEED: of the first lane; each has 100,000 of its own.
set -e
N=${ROUNDS:-5} L=${LANES:-1} S=${SEED:-0}
seed=$S running= device=
lay() {
  ip netns add x$lane
  ip link add v$lane type veth peer name w$lane netns x$lane
  ip link set v$lane up; ip -n x$lane link set w$lane up
}
flows() { seed=$((seed+1)); "$@" traffic $seed 0 $device > /dev/null 2>&1 & running="$running $!"; }
# Some hundredths of a second, another number each time.
moment() { usleep $(( (seed * 7919 % 60) * 1000 )); }
stop() { for p in $running; do kill -9 $p 2>/dev/null || true; wait $p 2>/dev/null || true; done; running=; }
processes() {
  for i in $(seq $1); do flows nnet-test as 1000 -; flows nnet-test as 1001 -; moment; stop; done
}
devices() {
  for i in $(seq $1); do
    lay
    f=$(nnet-test ctl ether v$lane ff:ff:ff:ff:ff:ff); nnet-test ctl route /b $f
    device=w$lane; flows /sbin/ip netns exec x$lane nnet-test; device=; flows nnet-test as 1000 -
    moment
    ip link del v$lane
    stop
    ip netns del x$lane
  done
}
namespaces() {
  for i in $(seq $1); do
    lay
    device=w$lane; flows /sbin/ip netns exec x$lane nnet-test; device=; flows nnet-test as 1000 un
    moment
    ip netns del x$lane
    stop
    # It goes with the last process in it, a moment later.
    n=0; while ip link show v$lane > /dev/null 2>&1; do sleep 0.1; n=$((n+1)); [ $n -lt 300 ] || { echo "the namespace stays"; exit 1; }; done
  done
}
# all WHAT: in every lane.
all() {
  lanes=
  for lane in $(seq $L); do (seed=$((S + lane * 100000)); $1 $(((N + L - 1) / L))) & lanes="$lanes $!"; done
  for p in $lanes; do wait $p || exit 1; done
  echo "$1 that went: $(((N + L - 1) / L * L))"
}
echo "seed $S, $L lanes"
insmod /nnet.ko $LOAD
nnet-test ctl route /a 1
all processes
i=0; until [ "$(awk '$1 == "entries" { print $2 }' /proc/net/nnet/pit)" = 0 ]; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || { head -3 /proc/net/nnet/pit; exit 1; }; done
all devices
all namespaces
unload
lane=0
lay
us=$(ip link show v0 | awk '/ether/ {print $2}') peer=$(ip -n x0 link show w0 | awk '/ether/ {print $2}')
for i in $(seq $N); do
  insmod /nnet.ko $LOAD
  nnet-test ctl ether v0 $peer > /dev/null
  flows nnet-test as 1000 -
  /sbin/ip netns exec x0 nnet-test flood w0 $us 1 > /dev/null & flood=$!
  moment
  stop
  unload
  kill -9 $flood 2>/dev/null || true; wait $flood 2>/dev/null || true
done
echo "modules that went: $N"
ip netns del x0
