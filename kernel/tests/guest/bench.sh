# SPDX-License-Identifier: GPL-2.0 OR MIT
#
#   g (asks) ---- veth ---- r ---- veth ---- g (answers)
#                       the module, or onym daemon
#
# Data packets a second through a router, by content size, lock scheme and
# dispatcher. Only under -icount do the times mean anything: they count
# instructions of the whole guest, those of the generator among them.
set -e
N=${COUNT:-3000}
in_() { n=$1; shift; ip netns exec $n "$@"; }
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
lay() {
  for n in g r; do ip netns add $n; ip -n $n link set lo up; done
  for i in 1 2; do
    ip link add g$i netns g type veth peer name r$i netns r
    ip -n g link set g$i up; ip -n r link set r$i up
  done
}
clear_() { for n in g r; do ip netns del $n; done; }
relay() { in_ g nnet-test relay g1 $(mac r r1) g2 $(mac r r2) $N $1 || true; }
module() {
  lay
  insmod /nnet.ko hash_bits=16 $1
  asks=$(in_ r nnet-test ctl ether r1 $(mac g g1))
  f=$(in_ r nnet-test ctl ether r2 $(mac g g2))
  in_ r nnet-test ctl route /Net-A/prdc-01 $f
}
module_ends() { unload; clear_; }
for size in ${SIZES:-200 600 1000 1400}; do
  module locks=0; printf "module, content $size: "; relay $size; module_ends
done
for locks in 1 2; do
  module locks=$locks; printf "module, locks=$locks, content 1400: "; relay 1400; module_ends
done
for mode in 1 2 3; do
  for separate in 0 1; do
    module locks=0
    in_ r nnet-test ctl dispatch $mode $separate
    printf "module, dispatcher $mode separate $separate, content 1400: "; relay 1400
    module_ends
  done
done
if [ -x /bin/onym ]; then
  mkdir -p /run/nfd
  for size in ${SIZES:-200 600 1000 1400}; do
    lay
    in_ r onym daemon --set 'faces.ether.interfaces=["r1","r2"]' --set 'faces.udp.listen=[]' \
      --set 'faces.tcp.listen=[]' --set 'faces.websocket.listen=[]' --set shards=1 2> /tmp/daemon.log &
    i=0; while ! grep -qs ready /tmp/daemon.log; do sleep 0.3; i=$((i+1)); [ $i -lt 300 ] || { cat /tmp/daemon.log; exit 1; }; done
    in_ r onym face create "ether://[$(mac g g1)]" --local dev://r1 > /dev/null
    f=$(in_ r onym face create "ether://[$(mac g g2)]" --local dev://r2 | awk '{print $2}')
    in_ r onym route add /Net-A/prdc-01 --via "$f" > /dev/null
    printf "onym daemon, content $size: "; relay $size
    kill $(pidof onym); wait 2>/dev/null || true
    clear_
  done
fi
