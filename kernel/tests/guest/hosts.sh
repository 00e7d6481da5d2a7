# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   a (consumer) ---- veth ---- b (provider)
#
# Goodput of an application's SEQPACKET socket by the octets of content in a segment,
# with and without the octets of names (the paper's Fig. 6). Only under -icount.
set -e
in_() { n=$1; shift; ip netns exec $n "$@"; }
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
export SUBJECT=nnet CASE
for size in ${CONTENTS:-200 400 600 800 1000 1200 1400}; do
  insmod /nnet.ko hash_bits=16
  for n in a b; do ip netns add $n; ip -n $n link set lo up; done
  ip link add va netns a type veth peer name vb netns b
  ip -n a link set va up; ip -n b link set vb up
  in_ a nnet-test ctl route /Net-A/prdc-01 $(in_ a nnet-test ctl ether va $(mac b vb))
  in_ b nnet-test ctl ether vb $(mac a va) > /dev/null
  in_ b nnet-test ctl route /Net-A/prdc-01 1
  in_ a nnet-test ctl cs 0; in_ b nnet-test ctl cs 0
  octets=$((size * ${COUNT:-2000}))
  in_ b nnet-test pump /Net-A/prdc-01/0/PubFiles/ABCD $octets $size 600 > /tmp/pumping & pumping=$!
  i=0; until grep -qs ready /tmp/pumping; do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || exit 1; done
  CASE="at=host,size=$size,cores=$(nproc)"
  printf "$CASE: "; in_ a nnet-test request /Net-A/prdc-01/0/PubFiles/ABCD $octets
  for p in $(pidof nnet-test); do kill $p; done
  wait 2>/dev/null || true
  rm -f /tmp/pumping
  unload
  for n in a b; do ip netns del $n; done
done
