# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The cache behind the cache: what the kernel evicts is found again on disk.
set -e
# As soon as it is on the disk.
kept() { i=0; until nnet-test fetch $1 $2 500 > /tmp/said 2>&1; do sleep 0.1; i=$((i+1)); [ $i -lt 100 ] || { cat /tmp/said; exit 1; }; done; }
# A provider that is ready: the words of the one before are gone first.
serve() { rm -f /tmp/ready; nnet-test serve "$@" > /tmp/ready & pid=$!; i=0; until grep -qs ready /tmp/ready; do sleep 0.1; i=$((i+1)); [ $i -lt 200 ] || exit 1; done; }
insmod /nnet.ko $LOAD
nnet-test ctl route /stored 1
nnet-test ctl cs 4
nnet_store /tmp/store 16 > /tmp/storing & store=$!
until grep -q ready /tmp/storing; do sleep 0.1; done
serve /stored 60 500 3600000
nnet-test fetch /stored 60 500
wait $pid
# The provider is gone, four are in the kernel, the rest on disk.
kept /stored 60
awk '$1 == "store" && $2 == "hit" { hits = $3 } END { exit !(hits >= 50) }' /proc/net/nnet/stats
# MustBeFresh is answered with what is fresh only.
nnet-test probe /stored
nnet-test ctl route /stale 1
serve /stale 20 500 0
nnet-test fetch /stale 20 500
wait $pid
kept /stale 20
if nnet-test probe /stale; then echo "stale Data for MustBeFresh"; exit 1; fi
# What was never there is refused as ever.
nnet-test refused
kill $store
wait $store 2>/dev/null || true
nnet-test refused
unload
[ -x /bin/onym ] || exit 0
# The same by onym, whose disk is that of cs.disk; what it has is found again by the next one.
insmod /nnet.ko $LOAD
nnet-test ctl route /kept 1
nnet-test ctl cs 4
keep() {
  rm -f /tmp/storing
  onym cs keep /tmp/kept --kernel --bytes-max 16M --packets-max 10000 --free-min 0 > /tmp/storing 2>&1 & store=$!
  i=0; until grep -q ready /tmp/storing 2>/dev/null; do sleep 0.1; i=$((i+1)); [ $i -lt 300 ] || { cat /tmp/storing; exit 1; }; done
}
hits() { awk '$1 == "store" && $2 == "hit" { print $3 }' /proc/net/nnet/stats; }
keep
if onym cs keep /tmp/other --kernel 2> /tmp/said; then echo "two stores"; exit 1; fi
grep -q 'another store' /tmp/said || { cat /tmp/said; exit 1; }
serve /kept 60 500
nnet-test fetch /kept 60 500
wait $pid
kept /kept 60
before=$(hits); [ $before -ge 50 ]
kill $store; wait $store
nnet-test refused
keep; grep -q 'ready: [5-9][0-9] packets' /tmp/storing
nnet-test fetch /kept 60 500
[ $(($(hits) - before)) -ge 50 ]
# Killed, it is as if there had been none: memory caches, and nobody is asked in vain.
kill -9 $store; wait $store 2>/dev/null || true
nnet-test refused
unload
