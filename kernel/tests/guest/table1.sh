# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Table 1 of the paper: the delay of a cache hit, in the kernel and in user space
# behind netlink. Only under -icount do the times mean anything.
set -e
export SUBJECT=nnet CASE
for size in ${SIZES:-10}; do
  for place in ${PLACES:-kernel user}; do
    insmod /nnet.ko hash_bits=16
    if [ $place = user ]; then
      nnet_store /tmp/store $((size * 2 + 64)) --user > /tmp/storing & store=$!
      until grep -qs ready /tmp/storing; do sleep 0.1; done
    fi
    CASE="cache=$place,megabytes=$size"
    printf "$CASE: "; nnet-test hit $size ${COUNT:-2000}
    [ $place = kernel ] || { kill $store; wait $store 2>/dev/null || true; rm -f /tmp/store /tmp/storing; }
    unload
  done
done
