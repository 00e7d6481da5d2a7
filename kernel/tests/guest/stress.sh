# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What must not break: each for a bounded number of rounds.
set -e
R=${ROUNDS:-300}
insmod /nnet.ko $LOAD
nnet-test closing $R
nnet-test storm $R
nnet-test reuse
nnet-test fuzz $((R * 4)) 1
nnet-test crowd $R 1
# A device that is removed while packets go out by it; ids are used again.
ip netns add x
for i in $(seq $((R / 20))); do
  ip link add v0 type veth peer name v1 netns x
  ip link set v0 up; ip -n x link set v1 up
  f=$(nnet-test ctl ether v0 02:00:00:00:00:01)
  nnet-test ctl route /gone $f
  (nnet-test fetch /gone 1 1 >/dev/null 2>&1 & p=$!; sleep 0.05; kill $p 2>/dev/null) || true
  ip link del v0
done
ip netns del x
# The content store thrashes.
nnet-test ctl cs 8
nnet-test ctl route /thrash 1
nnet-test serve /thrash $R 500 > /tmp/t & i=0
while ! grep -q ready /tmp/t; do sleep 0.1; done
nnet-test fetch /thrash $R 500
wait
awk 'NR == 2 && $1 > 8 { exit 1 }' /proc/net/nnet/cs
# Loads and unloads.
unload
for i in 1 2 3; do insmod /nnet.ko; unload; done
