#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The folder of the headers of the newest cloud kernel of a series, had once:
# headers.sh SERIES TARGET. Unpacked, not installed: the packages would bring an
# image and its boot loader hooks with them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
series=$1 state=$(realpath -m "$2")/headers
apt=(-q)
. "$here/apt.sh"
kernel=$(kernels | grep -E "^${series//./\\.}\\..*-cloud-amd64$" | tail -1)
[ -n "$kernel" ] || { echo "the archive has no headers of $series" >&2; exit 1; }
headers "$kernel" >&2
echo "$build"
