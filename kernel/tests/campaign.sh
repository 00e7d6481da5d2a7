#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The long campaign and a thousand faults of each kind on the debug kernel (KASAN,
# lockdep, kmemleak, failslab), and the campaign and the scripts on one with KCSAN:
# campaign.sh TARGET
# HOURS: of the campaign, a third of it with allocations that fail and a third under KCSAN
# (6); ROUNDS: of faults (1000).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
third=$((${HOURS:-6} * 1200)) failed=0
run() { PARTS=$1 LIMIT=$2 APPEND=$3 "$here/kernel-debug-test.sh" "$target" || failed=1; }
target=$(realpath -m "$1")
run campaign $((third * 2 + 900)) "nnet.FOR=$third nnet.COUNT=5000"
run campaign $((third * 2 + 900)) "nnet.FOR=$third nnet.COUNT=5000 nnet.FAILING=20"
CHECKERS=kcsan run campaign,sockets,limits,bounds,release,netns,store,stress $((third * 2 + 1800)) "nnet.FOR=$third nnet.COUNT=5000"
run faults $((${ROUNDS:-1000} * 60 + 900)) "nnet.ROUNDS=${ROUNDS:-1000}"
exit $failed
