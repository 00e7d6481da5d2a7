# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   k ---- veth ---- d
#   the module       onym daemon
#
# Interoperation over Ethernet and UDP, each side providing and fetching.
set -e
insmod /nnet.ko $LOAD
for n in k d; do ip netns add $n; ip -n $n link set lo up; done
ip link add vk netns k type veth peer name vd netns d
ip -n k addr add 10.0.9.1/24 dev vk; ip -n d addr add 10.0.9.2/24 dev vd
ip -n k link set vk up; ip -n d link set vd up
mac() { ip -n $1 link show $2 | awk '/ether/ {print $2}'; }
in_() { n=$1; shift; ip netns exec $n "$@"; }
mkdir -p /run/nfd
in_ d onym daemon --set 'faces.ether.interfaces=["vd"]' --set 'faces.udp.listen=["10.0.9.2:6363"]' \
  --set 'faces.tcp.listen=[]' --set 'faces.websocket.listen=[]' 2> /tmp/daemon.log &
i=0; while ! grep -q ready /tmp/daemon.log; do sleep 0.3; i=$((i+1)); [ $i -lt 200 ] || { cat /tmp/daemon.log; exit 1; }; done
kernel_face=$(in_ k nnet-test ctl ether vk $(mac d vd))
node_face=$(in_ d onym face create "ether://[$(mac k vk)]" --local dev://vd | awk '{print $2}')
# The node fetches what the kernel's applications provide.
in_ k nnet-test ctl route /kernel 1
in_ d onym route add /kernel --via "$node_face"
in_ k nnet-test serve /kernel/data 6 600 > /tmp/ready & i=0
while ! grep -q ready /tmp/ready; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || exit 1; done
for i in 1 2 3 4 5 6; do in_ d onym peek /kernel/data/$i > /tmp/out; [ $(wc -c < /tmp/out) -ge 600 ] || { echo "peek gave $(wc -c < /tmp/out) octets"; exit 1; }; done
# The kernel's applications fetch what the node provides.
in_ k nnet-test ctl route /node $kernel_face
head -c 20000 /bin/busybox > /tmp/file
in_ d onym put /node/file /tmp/file 2> /tmp/put.log & put=$!
i=0; until in_ d onym route list | grep -q /node/file; do sleep 0.3; i=$((i+1)); [ $i -lt 100 ] || { cat /tmp/put.log; exit 1; }; done
in_ k nnet-test probe /node/file/32=metadata
# Over UDP as well.
udp=$(in_ k nnet-test ctl udp4 10.0.9.2 6363 1400)
in_ k nnet-test ctl route /node/file $udp 0
in_ k nnet-test ctl cs 0
in_ k nnet-test probe /node/file/32=metadata
kill $put
in_ k cat /proc/net/nnet/faces
kill $(pidof onym)
unload
for n in k d; do ip netns del $n; done
