# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   g (asks) ---- veth ---- r ---- veth ---- g (answers)
#                       nnet (the module), onym or ndnd
#
# Data packets a second through a router: rows for every SUBJECT, LINK (ether, udp4),
# SIZE (octets of content, or f1500: of the frame) and DISPATCH
# (mode:separate). Under -icount the times count instructions of the whole guest, those
# of the generator among them; else they mean something on a quiet machine only. PIN (a
# mask of processors): where the generator runs, and so where every frame arrives, as
# from a card with one queue.
set -e
N=${COUNT:-3000}
LINKS=${LINKS:-ether}
in_() { n=$1; shift; ip netns exec $n "$@"; }
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
lay() {
  for n in g r; do ip netns add $n; ip -n $n link set lo up; done
  for i in 1 2; do
    ip link add g$i netns g type veth peer name r$i netns r
    ip -n g link set g$i up; ip -n r link set r$i up
    ip -n g addr add 10.0.$i.1/24 dev g$i; ip -n r addr add 10.0.$i.2/24 dev r$i
  done
}
clear_() { for n in g r; do ip netns del $n; done; }
waits() { i=0; while ! grep -qs "$1" $2; do sleep 0.3; i=$((i+1)); [ $i -lt 300 ] || { cat $2; exit 1; }; done; }
word() { echo $1 | cut -d' ' -f$(($2 + 1)); }
measure() {
  SUBJECT=$1; export SUBJECT
  CASE="link=$2,size=$3,cores=$(nproc),dispatch=$4,separate=$5${PIN:+,pinned=$PIN}"; export CASE
  printf "$SUBJECT $CASE: "
  case $2 in
    ether) in_ g ${PIN:+taskset $PIN} nnet-test relay ether g1 $(mac r r1) g2 $(mac r r2) $N $3 || true ;;
    udp4) in_ g ${PIN:+taskset $PIN} nnet-test relay udp4 10.0.1.1 10.0.1.2 10.0.2.1 10.0.2.2 $N $3 || true ;;
  esac
}
threads_ns() { cat /proc/[0-9]*/stat | awk '$2 ~ /^\(nnet\/[0-9]+\)$/ { print $1 }' | while read p; do cut -d' ' -f1 /proc/$p/schedstat; done | awk '{ n += $1 } END { printf "%d", n }'; }
nnet() {
  lay
  insmod /nnet.ko hash_bits=16
  case $1 in
    ether) asks=$(in_ r nnet-test ctl ether r1 $(mac g g1)); f=$(in_ r nnet-test ctl ether r2 $(mac g g2)) ;;
    udp4) asks=$(in_ r nnet-test ctl udp4 10.0.1.1 6363); f=$(in_ r nnet-test ctl udp4 10.0.2.1 6363) ;;
  esac
  in_ r nnet-test ctl route /Net-A/prdc-01 $f
  mode=${3%:*} separate=${3#*:}
  [ $mode = 0 ] || in_ r nnet-test ctl dispatch $mode $separate
  before=$(threads_ns)
  measure nnet $1 $2 $(word 'inline name prefix random' $mode) $separate
  # Who forwarded how many: what the threads of each processor took, and how long they had it.
  [ $mode = 0 ] || in_ r awk 'NR > 2 && $2 { printf "  processor %s: %s packets\n", $1, $2 }' /proc/net/nnet/dispatch
  [ $mode = 0 ] || echo "  threads ran for $((($(threads_ns) - before) / 1000)) us"
  unload; clear_
}
onym_() {
  # The log of the daemon before must not say that this one is ready.
  rm -f /tmp/daemon.log
  lay
  case $1 in
    ether) faces='faces.ether.interfaces=["r1","r2"]' udp='faces.udp.listen=[]' ;;
    udp4) faces='faces.ether.interfaces=[]' udp='faces.udp.listen=["0.0.0.0:6363"]' ;;
  esac
  in_ r onym daemon --set "$faces" --set "$udp" --set 'faces.tcp.listen=[]' --set 'faces.websocket.listen=[]' \
    --set shards=1 2> /tmp/daemon.log & waits ready /tmp/daemon.log
  case $1 in
    ether) in_ r onym face create "ether://[$(mac g g1)]" --local dev://r1 > /dev/null
      f=$(in_ r onym face create "ether://[$(mac g g2)]" --local dev://r2 | awk '{print $2}') ;;
    udp4) f=udp4://10.0.2.1:6363 ;;
  esac
  in_ r onym route add /Net-A/prdc-01 --via "$f" > /dev/null
  measure onym $1 $2 - -
  kill $(pidof onym); wait 2>/dev/null || true
  clear_
}
# It has no Ethernet faces.
ndnd_() {
  [ $1 = udp4 ] || return 0
  lay
  cat > /tmp/ndnd.yml <<'Y'
core: { log_level: WARN }
faces:
  queue_size: 1024
  udp: { enabled_unicast: true, enabled_multicast: false, port_unicast: 6363, default_mtu: 8800, lifetime: 600 }
  tcp: { enabled: false }
  unix: { enabled: true, socket_path: /run/nfd/nfd.sock }
  websocket: { enabled: false }
  http3: { enabled: false }
fw: { threads: 1, queue_size: 1024 }
mgmt: { allow_localhop: false }
Y
  rm -f /run/nfd/nfd.sock
  in_ r ndnd fw run /tmp/ndnd.yml > /tmp/ndnd.log 2>&1 &
  i=0; until in_ r ndnd fw route-add prefix=/Net-A/prdc-01 face=udp4://10.0.2.1:6363 > /tmp/ndnd.add 2>&1; do
    sleep 0.5; i=$((i+1)); [ $i -lt 60 ] || { cat /tmp/ndnd.log /tmp/ndnd.add; exit 1; }
  done
  measure ndnd $1 $2 - -
  kill $(pidof ndnd); wait 2>/dev/null || true
  clear_
}
mkdir -p /run/nfd
for link in $LINKS; do
  for size in ${CONTENTS:-1400}; do
    for subject in ${SUBJECTS:-nnet}; do
      case $subject in
        nnet) for d in ${DISPATCH:-0:0}; do nnet $link $size $d; done ;;
        onym) onym_ $link $size ;;
        ndnd) [ ! -x /bin/ndnd ] || ndnd_ $link $size ;;
      esac
    done
  done
done
