# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What processes on several processors get done at once, REPEAT times. With /proc/lock_stat also what the locks of tables were waited for.
set -e
for again in $(seq ${REPEAT:-1}); do
  insmod /nnet.ko hash_bits=16
  for what in ${WHAT:-exchange hit}; do
    for workers in $(seq $(nproc)); do
      [ ! -e /proc/lock_stat ] || { echo 0 > /proc/lock_stat; echo 1 > /proc/sys/kernel/lock_stat; }
      SUBJECT=nnet CASE=run=$again nnet-test parallel $what $workers ${MS:-2000}
      [ ! -e /proc/lock_stat ] || {
        echo 0 > /proc/sys/kernel/lock_stat
        awk '$1 ~ /^(&t->|&b->|&cs->|&e->|&slot->|&\(&|&t->buckets)/ && $2 ~ /^[0-9]+$/ { split($0, c, ":"); printf "  %s contended %s of %s\n", $1, $3, $8 }' /proc/lock_stat | head -12
      }
    done
  done
  unload
done
