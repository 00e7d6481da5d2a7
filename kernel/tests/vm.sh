#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Boots a kernel with the module and runs guest scripts:
#   vm.sh MODULE IMAGE MODULES_DIR SCRIPT[,SCRIPT...]
# Environment: MEM (megabytes), SMP, LIMIT (seconds), EXTRA (files for /bin),
# PROGRAMS (a folder that keeps what was compiled for guests after this one),
# APPEND (kernel command line), QEMU (more arguments); ARM64=1 for arm64, with
# BUSYBOX (a static one of that architecture) and OVERLAY (a folder with its tools).
# Exit status 0 when every script passed and no checker said anything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
module=$1 image=$2 modules=$3 scripts=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,sbin,modules,tests,lib,lib64,etc}
cp "${BUSYBOX:-/bin/busybox}" "$root/bin/busybox"
install -m 755 "$here/guest/init" "$root/init"
cp "$here"/guest/*.sh "$here"/guest/*.py "$here"/guest/*.seeds "$root/tests/"
cc=${CC:-gcc}
[ -z "${ARM64:-}" ] || cc=aarch64-linux-gnu-gcc
programs=${PROGRAMS:-$work/programs}
mkdir -p "$programs/bin"
# Guests that start together share what is compiled for them.
exec 8> "$programs/lock"
flock 8
if [ ! -e "$programs/bin/whole" ]; then
  $cc -O2 -static -o "$programs/qexit" "$here/qexit.c"
  clients=$here/../../clients/c
  include=(-I "$clients/include" -I "$clients/src" -I "$here/../include/uapi" -I "$here/../generated")
  $cc -O2 -static "${include[@]}" -o "$programs/bin/nnet-test" "$clients"/src/*.c "$here"/nnet-test/*.c -lm
  for example in nnet_store nfd_bridge file_server file_fetch video_stream; do
    $cc -O2 -static "${include[@]}" -o "$programs/bin/$example" "$clients"/src/*.c "$clients/examples/$example.c"
  done
  touch "$programs/bin/whole"
fi
exec 8>&-
cp "$programs/qexit" "$root/qexit"
cp "$programs"/bin/* "$root/bin/"
tools="/sbin/ip ${EXTRA:-}"
[ -z "${ARM64:-}" ] || tools=
for f in $tools; do
  # Beside busybox, which has applets of these names in /bin.
  case $f in */ip | */tc) cp "$f" "$root/sbin/" ;; *) cp "$f" "$root/bin/" ;; esac
  for l in $(ldd "$f" 2>/dev/null | grep -oE '/[^ ]+' || true); do
    mkdir -p "$root$(dirname "$l")"; cp -L "$l" "$root$l"
  done
done
n=10
for m in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net \
         veth udp_tunnel ip6_udp_tunnel sch_netem; do
  f=$(find "$modules" -name "$m.ko*" -print -quit 2>/dev/null || true)
  case $f in
    *.xz) xz -dc "$f" > "$root/modules/$n-$m.ko" ;;
    ?*) cp "$f" "$root/modules/$n-$m.ko" ;;
  esac
  n=$((n + 1))
done
cp "$module" "$root/nnet.ko"
cp "$here"/../../packaging/kernel/nnet{.conf,-upgrade} "$root/"
for f in onym ndnd onym-testkit calls; do [ ! -e "$root/bin/$f" ] || strip "$root/bin/$f"; done
[ -n "${ARM64:-}" ] || strip --strip-debug "$root/nnet.ko" "$root"/modules/*.ko 2>/dev/null || true
[ -z "${OVERLAY:-}" ] || cp -r "$OVERLAY"/. "$root/"
[ -z "${DATA:-}" ] || cp -r "$DATA" "$root/data"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$work/initrd"
machine="qemu-system-x86_64 -cpu max -device isa-debug-exit,iobase=0xf4,iosize=0x04" console=ttyS0 good=1
if [ -n "${ARM64:-}" ]; then
  # No exit device there: the guest powers off, and its last line tells.
  machine="qemu-system-aarch64 -M virt -cpu cortex-a57" console=ttyAMA0 good=0
fi
status=0
# no_timer_check: where the host is loaded the first ticks may come too late for it.
timeout --foreground "${LIMIT:-400}" $machine -accel "${ACCEL:-tcg,thread=multi}" -smp "${SMP:-2}" -m "${MEM:-512}" \
  -nodefaults -no-user-config -display none -serial stdio -no-reboot \
  ${QEMU:-} -kernel "$image" -initrd "$work/initrd" \
  -append "console=$console quiet log_buf_len=2M no_timer_check panic=-1 oops=panic nnet.run=$scripts ${APPEND:-}" </dev/null 2>&1 |
  sed -u 's/\r//g' | tee "$work/console" || status=${PIPESTATUS[0]}
# qemu ends with (status << 1) | 1; a panic ends it with 0, a hang with 124.
if [ "$status" = "$good" ] && grep -q '^NNET-RESULT rc=0 ' "$work/console"; then exit 0; fi
echo "the guest failed: qemu ended with $status" >&2
exit 1
