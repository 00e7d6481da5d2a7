# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What a stranger can cost: each law on a module of its own.
failed=0
# ONLY: which laws, for those who look at one.
only() { case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }
law() {
  only "${1%% *}" || return 0
  insmod /nnet.ko $LOAD $2
  if nnet-test $1; then echo "holds: $1"; else echo "DOES NOT HOLD: $1"; failed=1; fi
  unload || failed=1
}
law cached-prefix
law cached-name
law forged
law dumps
law digest
law publications
law pending-lifetime
law pending-octets
law pending-close
law pending-drain
law pending-share
law pending-user owner_bytes=8388608
law pending-variants
law parts
law "downs lo"
law hostsum host_bytes=16777216
[ $failed = 0 ]
