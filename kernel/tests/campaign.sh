#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
# The long campaign and a thousand faults of each kind on the debug kernel (KASAN,
# lockdep, kmemleak, failslab): campaign.sh TARGET
# HOURS: of the campaign, half of it with allocations that fail (4); ROUNDS: of faults (1000).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
half=$((${HOURS:-4} * 1800)) failed=0
run() { PARTS=$1 LIMIT=$2 APPEND=$3 "$here/kernel-debug-test.sh" "$target" || failed=1; }
target=$(realpath -m "$1")
run campaign $((half * 2 + 900)) "nnet.FOR=$half nnet.COUNT=5000"
run campaign $((half * 2 + 900)) "nnet.FOR=$half nnet.COUNT=5000 nnet.FAILING=20"
run faults $((${ROUNDS:-1000} * 60 + 900)) "nnet.ROUNDS=${ROUNDS:-1000}"
exit $failed
