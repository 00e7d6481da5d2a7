# SPDX-License-Identifier: GPL-2.0-only OR MIT
# busybox's shell prefers its own applets to programs: these are iproute2's.
ip() { /sbin/ip "$@"; }
tc() { /sbin/tc "$@"; }
