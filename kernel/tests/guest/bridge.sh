# SPDX-License-Identifier: GPL-2.0 OR MIT
# Unmodified clients of NFD's Unix socket put and get a file through the kernel.
set -e
insmod /nnet.ko $LOAD
mkdir -p /run/nfd
rm -f /run/nfd/nfd.sock
nfd_bridge > /tmp/bridging & bridge=$!
until grep -q ready /tmp/bridging; do sleep 0.1; done
head -c 50000 /bin/busybox > /tmp/file
onym put /bridged/file /tmp/file 2> /tmp/put.log & put=$!
i=0; until grep -q /bridged/file /proc/net/nnet/bindings; do sleep 0.3; i=$((i+1)); [ $i -lt 100 ] || { cat /tmp/put.log; exit 1; }; done
onym get /bridged/file -o /tmp/got
cmp /tmp/file /tmp/got
kill $put $bridge
rm -f /run/nfd/nfd.sock
wait 2>/dev/null || true
unload
