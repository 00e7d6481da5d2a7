#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage() {
  cat <<'U'
bench.sh EXPERIMENT [--json FILE] [--csv FILE] [--target FOLDER]

Boots a guest for each of several short runs and gathers their rows
{bench, case, subject, metric, value, unit}; FILE is written at the end. The bench
is istack-EXPERIMENT. The guest's clock counts instructions (-icount shift=1: 2 ns
each), so the machine need not be quiet, and times are instructions of the whole
guest. With two processors they take turns under that clock: a second is a second
of both, and what parallel work gains cannot be seen, only what it costs.

Experiments:
  table1    delay of a cache hit, in the kernel and in user space (SIZES="10 100 1024")
  fig5      Data a second by dispatcher, on one processor and on two
  fig6      goodput by content size: applications, and a router beside onym daemon
  fig7      memory and processor time of 15 consumers
  table2    a router beside onym daemon and, when on PATH, ndnd: frames of 1500 octets
  cost      instructions of an exchange, a cache hit and a publication of one host
  parallel  exchanges and hits a second, of one process and of one on each of two
            processors, and of a router by dispatcher, whose frames come in on one
            processor or where they may: by wall clock, with a thread of QEMU for
            each processor, so the machine must be quiet and have two; REPEAT
            times (5)

COUNT: Data of a run. RUNNER: a command that runs each guest. ONYM, NDND: binaries. MEM: megabytes of the guest (table1).
LIMIT: seconds of the machine that a guest may take (900; table1 with 1 GB takes some 10 minutes on a quiet one).
A release build of onym is wanted: target/release/onym, or ONYM.
U
}
root=$here/../.. json='' csv='' target=$root/target/kernel experiment=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --json) json=$2; shift 2 ;;
    --csv) csv=$2; shift 2 ;;
    --target) target=$2; shift 2 ;;
    *) experiment=$1; shift ;;
  esac
done
case $experiment in table1 | fig5 | fig6 | fig7 | table2 | cost | parallel) ;; *) usage >&2; exit 2 ;; esac
target=$(realpath -m "$target")
# Before 6.5 a second processor does not come up under -icount; both numbers of
# processors are measured on one kernel, and all else on the oldest.
which=head
case $experiment in fig5) which=tail ;; esac
version=$(ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sed 's/.*linux-headers-//' | sort -V | $which -n 1)
[ -n "$version" ] || { echo "missing: linux-headers-cloud-amd64 (scripts/setup.sh kernel)" >&2; exit 77; }
if [ "$experiment" = fig5 ] && ! printf '%s\n' 6.5 "$version" | sort -VC; then
  echo "missing: headers of Linux 6.5 or newer, such as linux-headers-cloud-amd64 of bookworm-backports; found $version" >&2
  exit 77
fi
"$here/build.sh" "$version" "$target" >&2
image=$("$here/image.sh" "$version" "$target")
# What a guest does not run makes its start longer.
EXTRA=
case $experiment in fig6 | table2)
  for f in "${ONYM:-$root/target/release/onym}" "${NDND:-$(command -v ndnd || true)}"; do [ ! -x "$f" ] || EXTRA="$EXTRA $f"; done ;;
esac
export EXTRA
rows=$(mktemp)
PROGRAMS=$(mktemp -d)
export PROGRAMS
trap 'rm -rf "$rows" "$PROGRAMS"' EXIT

accel=tcg,thread=single clock="-icount shift=1"
# guest PROCESSORS SCRIPT KEY=VALUE…: one run; its rows are kept, the rest is shown.
guest() {
  local smp=$1 script=$2 settings='' said
  shift 2
  for s in "$@"; do settings="$settings nnet.${s// /,}"; done
  said=$(mktemp)
  MEM=${MEM:-1024} SMP=$smp LIMIT=${LIMIT:-900} ACCEL=$accel QEMU=$clock APPEND="$settings" \
    ${RUNNER:-} "$here/vm.sh" "$target/$version/src/nnet.ko" "$image/boot/vmlinuz-$version" "$image/lib/modules/$version" "$script" \
    > "$said" || { cat "$said" >&2; rm -f "$said"; exit 1; }
  grep '^ROW ' "$said" >> "$rows" || { cat "$said" >&2; echo "no rows" >&2; rm -f "$said"; exit 1; }
  grep -vE '^(ROW|guest:|ok |NNET-RESULT)' "$said" || true
  rm -f "$said"
}

case $experiment in
  table1)
    for size in ${SIZES:-10 100 1024}; do
      for place in ${PLACES:-kernel user}; do
        MEM=${MEM:-$((700 + size * 6))} LIMIT=${LIMIT:-$((900 + size * 3))} guest 1 table1 "SIZES=$size" "PLACES=$place" "COUNT=${COUNT:-2000}"
      done
    done ;;
  fig5)
    for smp in ${PROCESSORS:-1 2}; do
      guest "$smp" relay "DISPATCH=${DISPATCH:-0:0 1:0 2:0 3:0 1:1 2:1 3:1}" "COUNT=${COUNT:-1000}"
    done ;;
  fig6)
    guest 1 hosts "COUNT=${COUNT:-2000}"
    for size in ${CONTENTS:-200 400 600 800 1000 1200 1400}; do
      guest 1 relay "CONTENTS=$size" "SUBJECTS=nnet onym" "COUNT=${COUNT:-2000}"
    done ;;
  fig7) guest 1 consumers ;;
  cost) guest 1 cost "COUNT=${COUNT:-2000}" ;;
  parallel)
    accel=tcg,thread=multi clock=
    guest 2 parallel "REPEAT=${REPEAT:-5}" "MS=${MS:-1000}"
    for again in $(seq "${REPEAT:-5}"); do
      for pin in 1 ''; do
        guest 2 relay "PIN=$pin" "LINKS=ether udp4" "DISPATCH=${DISPATCH:-0:0 1:0 1:1 2:1 3:1}" "COUNT=${COUNT:-40000}"
      done
    done ;;
  table2)
    for s in nnet onym ndnd; do
      # ndnd has no Ethernet faces.
      links="ether udp4"; [ $s != ndnd ] || links=udp4
      case " $EXTRA" in *ndnd*) ;; *) [ $s != ndnd ] || continue ;; esac
      guest 1 relay "SUBJECTS=$s" "LINKS=$links" CONTENTS=f1500 "COUNT=${COUNT:-3000}"
    done ;;
esac
"$here/rows.py" "istack-$experiment" ${json:+--json "$json"} ${csv:+--csv "$csv"} < "$rows"
