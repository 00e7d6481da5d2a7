# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   k ---- veth, UDP ---- d
#   the bridge            onym daemon
#
# Unmodified clients of NFD's Unix socket put and get files through the kernel: among
# themselves, and with clients of a node behind it.
set -e
insmod /nnet.ko $LOAD
in_() { n=$1; shift; ip netns exec $n "$@"; }
waits() { i=0; until "$@"; do sleep 0.3; i=$((i+1)); [ $i -lt 200 ] || { cat /tmp/*.log; exit 1; }; done; }
for n in k d; do ip netns add $n; ip -n $n link set lo up; done
ip link add vk netns k type veth peer name vd netns d
ip -n k addr add 10.0.8.1/24 dev vk; ip -n d addr add 10.0.8.2/24 dev vd
ip -n k link set vk up; ip -n d link set vd up
mkdir -p /run/nfd
rm -f /run/nfd/nfd.sock /tmp/bridging
in_ k nfd_bridge > /tmp/bridging & bridge=$!
waits grep -qs ready /tmp/bridging
head -c 50000 /bin/busybox > /tmp/file
onym put /bridged/file /tmp/file 2> /tmp/put.log & put=$!
waits in_ k grep -q /bridged/file /proc/net/nnet/bindings
onym get /bridged/file -o /tmp/got
cmp /tmp/file /tmp/got
# Tools of NFD's management see the kernel's tables.
has() { grep -q -- "$1" /tmp/out || { echo "lacks $1:"; cat /tmp/out; exit 1; }; }
onym face list > /tmp/out; has internal://
onym route list > /tmp/out; has /bridged/file
onym cs info > /tmp/out; has 65536
onym status > /tmp/out; has nnet
# More routes than a segment holds, of prefixes with several next hops.
far=$(in_ k nnet-test ctl udp4 10.0.8.9 6363)
in_ k nnet-test ctl routes /bridged/many 300 1 5
in_ k nnet-test ctl routes /bridged/many 300 $far 7
onym route list > /tmp/out
[ $(grep -c /bridged/many/ /tmp/out) -ge 300 ] || { tail -5 /tmp/out; exit 1; }
# What a client of the bridge serves, a client of the node behind UDP fetches, and the other way about.
node=unix:///run/d.sock
rm -f /tmp/daemon.log
in_ d onym daemon --set faces.unix.path=/run/d.sock --set 'faces.udp.listen=["10.0.8.2:6363"]' \
  --set 'faces.ether.interfaces=[]' --set 'faces.tcp.listen=[]' --set 'faces.websocket.listen=[]' 2> /tmp/daemon.log &
waits grep -qs ready /tmp/daemon.log
face=$(in_ k nnet-test ctl udp4 10.0.8.2 6363)
onym route add /bridged --via udp4://10.0.8.1:6363 --node $node > /dev/null
rm -f /tmp/got
onym get /bridged/file -o /tmp/got --node $node
cmp /tmp/file /tmp/got
onym put /noded/file /tmp/file --node $node 2> /tmp/put2.log & put2=$!
routed() { onym route list --node $node | grep -q /noded/file; }
waits routed
in_ k nnet-test ctl route /noded $face
rm -f /tmp/got
onym get /noded/file -o /tmp/got
cmp /tmp/file /tmp/got
kill $put $put2 $bridge $(pidof onym) 2>/dev/null || true
rm -f /run/nfd/nfd.sock
wait 2>/dev/null || true
unload
for n in k d; do ip netns del $n; done
