# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Instructions of an exchange, a cache hit and a publication. Only under -icount.
set -e
insmod /nnet.ko hash_bits=16
SUBJECT=nnet CASE=cost nnet-test cost ${COUNT:-2000}
unload
