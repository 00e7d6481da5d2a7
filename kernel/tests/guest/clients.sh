# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The calls of the C library, the Rust crate and the Python module, and `onym … --kernel`.
set -e
insmod /nnet.ko $LOAD
nnet-test calls
if [ -x /bin/calls ]; then calls; fi
# The example programs: a file, and a stream in segments as it comes.
nnet-test ctl route /example 1
head -c 60000 /bin/busybox > /tmp/file
bound() { i=0; until grep -q $1 /proc/net/nnet/bindings; do sleep 0.1; i=$((i+1)); [ $i -lt 200 ] || exit 1; done; }
file_server /example/file /tmp/file & server=$!
bound /example/file
file_fetch /example/file > /tmp/got; cmp /tmp/file /tmp/got
kill $server
video_stream serve /example/video < /tmp/file & server=$!
bound /example/video
video_stream play /example/video > /tmp/got; cmp /tmp/file /tmp/got
kill $server
if [ -x /bin/python3 ]; then
  nnet-test ctl route /py 1
  PYTHONHOME=/data/py LD_LIBRARY_PATH=/data/py/lib python3 -S /tests/calls.py
fi
if [ -x /bin/onym ]; then
  has() { grep -q -- "$1" /tmp/out || { echo "lacks $1:"; cat /tmp/out; exit 1; }; }
  onym face create udp4://10.9.9.9:6363 --kernel > /tmp/out; has created
  onym face create udp4://10.9.9.9:6363 --kernel --json > /tmp/out; has '"face"'
  onym face list --kernel > /tmp/out; has udp4://10.9.9.9:6363; has internal://
  ip link add v0 type veth peer name v1; ip link set v0 up
  onym face create 'ether://[02:00:00:00:00:01]' --local dev://v0 --kernel > /tmp/out; has created
  id=$(onym face list --kernel | awk '/udp4:/ { print $1 }')
  onym face update "$id" --mtu 1200 --kernel > /tmp/out; has updated
  onym face show "$id" --kernel --json > /tmp/out; has 1200
  onym route add /cli --via "$id" --cost 7 --kernel > /tmp/out; has added
  onym route list --kernel > /tmp/out; has /cli
  onym route list --kernel --json > /tmp/out; has '"cost"'
  onym route remove /cli --via "$id" --kernel > /tmp/out; has removed
  onym route list --kernel > /tmp/out; ! grep -q /cli /tmp/out
  onym cs config --capacity 1000 --kernel > /tmp/out; has 1000
  onym cs info --kernel > /tmp/out; has capacity
  onym cs erase / --kernel > /tmp/out; has erased
  onym pit config --capacity 5000 --kernel > /tmp/out; has '5000 entries'
  onym pit info --kernel --json > /tmp/out; has '"entries": *0'
  onym pit list --kernel > /tmp/out; has DOWNSTREAMS
  onym pit erase / --kernel > /tmp/out; has '0 pending Interests'
  onym pit config --capacity 65536 --kernel > /tmp/out
  onym face destroy "$id" --kernel > /tmp/out; has destroyed
  # What is refused is an error with the kernel's words; what is not there exits with 5.
  refuses() { words=$1 code=$2; shift 2; rc=0; onym "$@" --kernel > /tmp/out 2>&1 || rc=$?; has "$words"; [ $rc = $code ] || { echo "exit $rc"; cat /tmp/out; exit 1; }; }
  refuses 'no face 9999' 5 face show 9999
  refuses 'no such face' 5 route add /cli --via 9999
  onym face create udp4://10.9.9.8:6363 --kernel > /dev/null
  id=$(onym face list --kernel | awk '/10.9.9.8/ { print $1 }')
  refuses 'no such route' 5 route remove /cli --via "$id"
  refuses 'more than 32 components' 4 route add "$(printf '/%s' $(seq 33))" --via "$id"
  refuses 'mtu is below 128' 4 face update "$id" --mtu 100
  refuses 'mtu is below 128' 4 face create udp4://10.9.9.7:6363 --mtu 100
  refuses "a socket's face ends with it" 4 face destroy 1
  ip link set v0 down
  refuses 'the device is down' 5 face create 'ether://[02:00:00:00:00:02]' --local dev://v0
  if onym status --help | grep -q -- --kernel; then onym status --kernel > /tmp/out; has family; fi
  ip link del v0
  # The client library over AF_NNET: what one program serves by kernel:// another fetches.
  head -c 40000 /bin/busybox > /tmp/file
  onym put /library/file /tmp/file --node kernel:// 2> /tmp/put.log & put=$!
  i=0; until grep -q /library/file /proc/net/nnet/bindings; do sleep 0.3; i=$((i+1)); [ $i -lt 100 ] || { cat /tmp/put.log; exit 1; }; done
  onym get /library/file -o /tmp/got --node kernel:// 2> /tmp/get.log || { cat /tmp/get.log; exit 1; }
  cmp /tmp/file /tmp/got
  rc=0; onym get /library/other -o /tmp/got --node kernel:// 2> /tmp/get.log || rc=$?; [ $rc = 5 ] || { cat /tmp/get.log; exit 1; }
  kill $put; wait $put 2>/dev/null || true
  ! grep -q /library /proc/net/nnet/bindings
fi
unload
