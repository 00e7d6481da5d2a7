# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   witness, users 1000 and 1001, user 1002 in namespaces of their own
#     host ----- veth ----- x: root, with frames
#
# Sequences of calls, netlink messages and frames from seeds (tests/nnet-test/campaign.c).
# SEEDS: which; COUNT: steps of a worker; FOR: seconds, with seeds drawn until they are
# over; FAILING: one allocation of so many fails for the workers (kernels with failslab).
set -e
R=$RANDOM
fail=/sys/kernel/debug/failslab
if [ -n "$FAILING" ]; then
  [ -d $fail ] || { echo "this kernel has no failslab"; exit 1; }
  mark=m
  echo Y > $fail/task-filter; echo N > $fail/ignore-gfp-wait; echo 0 > $fail/verbose
  echo $((100 * 1000 / FAILING / 1000 + 1)) > $fail/probability; echo 3 > $fail/interval; echo -1 > $fail/times
fi
campaign() {
  seed=$1
  echo "seed $seed"
  insmod /nnet.ko $LOAD
  ip netns add x
  ip link add v0 type veth peer name v1 netns x
  ip link set v0 up; ip -n x link set v1 up
  f=$(nnet-test ctl ether v0 02:02:02:02:02:02)
  g=$(nnet-test ctl ether v0 ff:ff:ff:ff:ff:ff)
  nnet-test ctl route /a 1; nnet-test ctl route /a $g 5; nnet-test ctl route /b $f; nnet-test ctl route /cc 1
  nnet-test ctl route /witness-only 1
  nnet-test witness $((2 + ${COUNT:-2000} / 1000)) & witness=$!
  nnet-test as 1000 -$mark traffic $((seed * 8)) ${COUNT:-2000} & w1=$!
  nnet-test as 1001 -$mark traffic $((seed * 8 + 1)) ${COUNT:-2000} & w2=$!
  nnet-test as 1002 un$mark traffic $((seed * 8 + 2)) ${COUNT:-2000} & w3=$!
  /sbin/ip netns exec x nnet-test as 0 -$mark traffic $((seed * 8 + 3)) ${COUNT:-2000} v1 & w4=$!
  # One that does not end says where it is, and is ended.
  (
    i=0; until [ $i = ${PATIENCE:-300} ]; do sleep 1; i=$((i+1)); done
    for p in $(pidof nnet-test); do
      echo "seed $seed: process $p does not end: $(tr '\0' ' ' < /proc/$p/cmdline), $(grep State /proc/$p/status)"
      cat /proc/$p/stack; kill -9 $p
    done
  ) & dog=$!
  for p in $w1 $w2 $w3 $w4 $witness; do wait $p || { echo "seed $seed: a law does not hold"; return 1; }; done
  kill $dog
  # Everybody has gone but the device.
  ip link del v0
  i=0
  until [ "$(awk '$1 == "entries" { print $2 }' /proc/net/nnet/pit)" = 0 ] && [ $(wc -l < /proc/net/nnet/faces) = 2 ] && [ $(wc -l < /proc/net/nnet/bindings) = 1 ]; do
    sleep 0.1; i=$((i+1)); [ $i -lt 300 ] || { echo "seed $seed: left behind"; head -3 /proc/net/nnet/pit; cat /proc/net/nnet/faces /proc/net/nnet/bindings; return 1; }
  done
  ip netns del x
  unload
}
if [ -n "$FOR" ]; then
  n=0; end=$(($(cut -d. -f1 /proc/uptime) + FOR))
  while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do campaign $((R + n)); n=$((n+1)); done
  echo "$n seeds"
else
  for s in ${SEEDS:-$(cat /tests/campaign.seeds)}; do campaign $s; done
fi
[ -z "$FAILING" ] || echo 0 > $fail/probability
