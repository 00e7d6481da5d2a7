# SPDX-License-Identifier: GPL-2.0 OR MIT
# Table 1 of the paper: the delay of a cache hit, in the kernel and in user space
# behind netlink. Only under -icount do the times mean anything.
set -e
for size in ${SIZES:-10 100}; do
  insmod /nnet.ko hash_bits=16
  printf 'kernel %s MB: ' $size
  nnet-test hit $size 2000
  unload
  insmod /nnet.ko hash_bits=16
  nnet_store /tmp/store 2048 --user > /tmp/storing & store=$!
  until grep -q ready /tmp/storing; do sleep 0.1; done
  printf 'user %s MB: ' $size
  nnet-test hit $size 2000
  kill $store; wait $store 2>/dev/null || true
  rm -f /tmp/store /tmp/storing
  unload
done
