# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The sockets of one host.
set -e
insmod /nnet.ko $LOAD
nnet-test binding
nnet-test refused
nnet-test published
nnet-test pair
grep -q 'interest forwarded' /proc/net/nnet/stats
unload
