# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The cache behind the cache: what the kernel evicts is found again on disk.
set -e
insmod /nnet.ko $LOAD
nnet-test ctl route /stored 1
nnet-test ctl cs 4
nnet_store /tmp/store 16 > /tmp/storing & store=$!
until grep -q ready /tmp/storing; do sleep 0.1; done
nnet-test serve /stored 60 500 > /tmp/ready & pid=$!
until grep -q ready /tmp/ready; do sleep 0.1; done
nnet-test fetch /stored 60 500
wait $pid
# The provider is gone, four are in the kernel, the rest on disk.
nnet-test fetch /stored 60 500
awk '$1 == "store" && $2 == "hit" { hits = $3 } END { exit !(hits >= 50) }' /proc/net/nnet/stats
# What was never there is refused as ever.
nnet-test refused
kill $store
wait $store 2>/dev/null || true
nnet-test refused
unload
