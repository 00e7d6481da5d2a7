# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Programs of others, as they come from PyPI and npm, put and fetch through the module
# by the bridge's Unix socket: python-ndn and NDNts, each for the other.
set -e
insmod /nnet.ko $LOAD
F=/data/foreign
mkdir -p /run/nfd /usr/bin
rm -f /run/nfd/nfd.sock
nfd_bridge > /tmp/bridging & bridge=$!
i=0; until grep -qs ready /tmp/bridging; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || exit 1; done
export NDN_CLIENT_TRANSPORT=unix:///run/nfd/nfd.sock
python() { PYTHONHOME=$F PYTHONPATH=$F/site LD_LIBRARY_PATH=$F/so /bin/python3.11 -S $F/peer.py "$@"; }
ndnts() { (cd $F/ndnts && /bin/node peer.mjs "$@"); }
# serving LOG PROGRAM...: runs until its input, held open here, ends.
serving() { log=$1; shift; rm -f $log; { while [ ! -e /tmp/enough ]; do sleep 0.2; done; } | "$@" > $log 2>&1 & i=0; until grep -qs ready $log; do sleep 0.5; i=$((i+1)); [ $i -lt 240 ] || { cat $log; exit 1; }; done; }
head -c 50000 /bin/busybox > /tmp/file
rm -f /tmp/enough
serving /tmp/py.log python serve v2 /py/one
serving /tmp/js.log ndnts serve /js/one
serving /tmp/pyo.log python object /py/object /tmp/file
serving /tmp/jso.log ndnts object /js/object /tmp/file
says() { "$@" > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }; }
says ndnts fetch /py/one/a; grep -q '^v2' /tmp/said
says python fetch v2 /js/one/b; grep -q 'ndnts' /tmp/said
says python fetch v1 /py/one/c; grep -q 'v2' /tmp/said
rm -f /tmp/got; says ndnts segments /py/object /tmp/got; cmp /tmp/file /tmp/got
rm -f /tmp/got; says ndnts segments /js/object /tmp/got; cmp /tmp/file /tmp/got
awk '$1 == "interest" && $2 == "forwarded" { exit !($3 > 20) }' /proc/net/nnet/stats
echo "python-ndn and NDNts: each fetched from the other"
touch /tmp/enough
kill $bridge
wait 2>/dev/null || true
unload
