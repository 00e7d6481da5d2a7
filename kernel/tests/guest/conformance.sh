# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The packet scripts of the pull path; known differences are in the deviations.
set -e
insmod /nnet.ko $LOAD
cd /data
export ONYM_CONFORMANCE=/data
onym-testkit --subject kernel --threads 1 --brief --deviations kernel pull/*.pkt
unload
