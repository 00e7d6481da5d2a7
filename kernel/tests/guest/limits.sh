# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   a ----- veth ----- r ----- veth ----- b
#
# What one who may do nothing, or anybody on the network, cannot cost others.
set -e
# ONLY: which parts, for those who look at one.
only() { case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }
if only family; then
  for f in -1 0 46 1000; do if insmod /nnet.ko family=$f 2>/dev/null; then echo "family=$f loads"; exit 1; fi; done
fi
if only autoload; then
  # socket() of any user loads the module by its alias, unless the administrator says no.
  d=/lib/modules/$(uname -r)
  mkdir -p $d /etc/modprobe.d
  cp /nnet.ko $d/
  (cd $d && depmod)
  echo /bin/modprobe > /proc/sys/kernel/modprobe
  nnet-test autoload
  [ -e /sys/module/nnet ] || { echo "the alias loads nothing"; exit 1; }
  unload
  cp /nnet.conf /etc/modprobe.d/
  nnet-test autoload
  [ ! -e /sys/module/nnet ] || { echo "loaded in spite of the blacklist"; exit 1; }
  modprobe nnet
  [ -e /sys/module/nnet ]
  unload
  rm -r $d /etc/modprobe.d/nnet.conf
fi
insmod /nnet.ko $LOAD
for c in rights lpfields shares bindings hostlimits blocked longrows closes; do
  if only $c; then nnet-test $c; fi
done
if only charged; then
  # What a process lets the kernel keep is its control group's memory.
  mkdir -p /tmp/cg; mount -t cgroup2 none /tmp/cg
  echo +memory > /tmp/cg/cgroup.subtree_control
  mkdir /tmp/cg/x
  sh -c 'echo $$ > /tmp/cg/x/cgroup.procs; exec nnet-test charged /tmp/cg/x'
  # The next script runs without control groups again.
  i=0; until rmdir /tmp/cg/x 2>/dev/null; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || exit 1; done
  umount /tmp/cg
fi
if only lpfields; then
  # What was chosen for /localhost stayed; the other Interest went.
  awk '/:6999/ && $6 != 0 { print "the lower face: " $0 } /:6999/ { n = $9 } END { exit n != 1 }' /proc/net/nnet/faces || { cat /proc/net/nnet/faces; exit 1; }
fi
in_() { n=$1; shift; ip netns exec $n "$@"; }
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
word() { in_ $1 awk -v k=$2 -v w=$3 '$1 == k && $2 == w { print $3 }' /proc/net/nnet/stats; }
for n in a r b; do ip netns add $n; ip -n $n link set lo up; done
ip link add va netns a mtu 60000 type veth peer name ra netns r mtu 60000
ip link add vb netns b type veth peer name rb netns r
for p in "a va" "r ra" "r rb" "b vb"; do set -- $p; ip -n $1 link set $2 addrgenmode none; ip -n $1 link set $2 up; done
face_a=$(in_ a nnet-test ctl ether va $(mac r ra))
face_ra=$(in_ r nnet-test ctl ether ra $(mac a va))
face_rb=$(in_ r nnet-test ctl ether rb $(mac b vb))
if only turns; then
  # Threads serve all namespaces: one that floods them does not take the turns of others.
  in_ a nnet-test ctl dispatch 3 0; in_ b nnet-test ctl dispatch 3 0
  in_ b nnet-test ctl ether vb $(mac r rb) > /dev/null
  in_ a nnet-test stale 1100 /stale 0; in_ b nnet-test stale 8 /fresh 600000
  in_ r nnet-test turns ra $(mac a va) rb $(mac b vb)
  [ $(word a frame dispatch_full) -gt 0 ] || { echo "the flood was none"; exit 1; }
  [ $(word b frame dispatch_full) = 0 ]
  in_ a nnet-test ctl dispatch 0 0; in_ b nnet-test ctl dispatch 0 0
fi
if only storescope; then
  # /localhop goes one hop, also when a store in user space was asked and had nothing.
  in_ a nnet-test ctl route /localhop $face_a
  in_ r nnet-test ctl route /localhop $face_rb
  in_ r nnet_store /tmp/store 16 --user > /tmp/storing & store=$!
  until grep -qs ready /tmp/storing; do sleep 0.1; done
  in_ a nnet-test probe /localhop/x > /tmp/probed 2>&1 & probing=$!
  i=0; until [ "$(word r store asked)" -ge 1 ]; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || { in_ r cat /proc/net/nnet/stats; exit 1; }; done
  wait $probing || true
  kill $(pidof nnet_store); wait $store 2>/dev/null || true
  in_ r awk -v f=$face_rb '$1 == f && $9 != 0 { print "went on: " $0; exit 1 }' /proc/net/nnet/faces
fi
if only autofaces; then
  # Peers that nobody named have a share of the faces and no more.
  in_ r nnet-test ctl auto 1
  in_ a nnet-test peers va $(mac r ra) 4000
  made=$(in_ r grep -c ' ether .* 02:00:00:' /proc/net/nnet/faces)
  echo "faces of unknown peers: $made"
  [ $made -gt 64 ] && [ $made -le 960 ]
  in_ r nnet-test ctl ether ra 06:00:00:00:00:01
  in_ r nnet-test ctl auto 0
fi
if only truesize; then
  # Fragments of one octet in frames of 50000: what they hold is counted, not what they say.
  free=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
  in_ a nnet-test pad va $(mac r ra) 3000 50000
  held=$(($free - $(awk '/MemAvailable/ { print $2 }' /proc/meminfo)))
  echo "fragments hold $held KB, evicted $(word r held frag_evicted), refused $(word r frame reassembly_full)"
  [ $held -lt 16000 ]
  [ $(($(word r held frag_evicted) + $(word r frame reassembly_full))) -gt 0 ]
fi
if only scopeid; then
  # One link-local address behind two devices is two peers.
  for p in "a va" "b vb"; do set -- $p; ip -n $1 addr add fe80::1/64 dev $2 nodad; done
  for d in ra rb; do ip -n r addr add fe80::2/64 dev $d nodad; done
  ua=$(in_ r nnet-test ctl udp6 fe80::1 ra 6363)
  ub=$(in_ r nnet-test ctl udp6 fe80::1 rb 6363)
  [ $ua != $ub ] || { echo "one face, $ua, for two peers"; exit 1; }
  if in_ r nnet-test ctl udp6 fe80::1 - 6363; then echo "a link-local address without its device"; exit 1; fi
  in_ r nnet-test ctl route /a $ua; in_ r nnet-test ctl route /b $ub
  for p in "a va" "b vb"; do
    set -- $p
    f=$(in_ $1 nnet-test ctl udp6 fe80::2 $2 6363)
    [ $1 = a ] || { in_ b nnet-test ctl route /a $f; }
    in_ $1 nnet-test ctl route /$1 1
  done
  rm -f /tmp/ready
  in_ a nnet-test serve /a/x 5 100 > /tmp/ready & serving=$!
  i=0; until grep -qs ready /tmp/ready; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || exit 1; done
  in_ b nnet-test fetch /a/x 5 100
  wait $serving
  in_ r awk -v a=$ua -v b=$ub '$1 == a { asked = $9 } $1 == b { asks = $6 } END { print "to a " asked ", from b " asks; exit asked != 5 || asks != 5 }' /proc/net/nnet/faces
  # The face goes with its device.
  in_ r ip link set rb down
  in_ r awk -v f=$ub '$1 == f { exit 1 }' /proc/net/nnet/faces
fi
unload
for n in a r b; do ip netns del $n; done
