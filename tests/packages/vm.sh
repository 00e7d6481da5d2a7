#!/usr/bin/env bash
# The package's units under a real systemd, in a virtual machine of a stock Debian kernel:
# tests/packages/vm.sh BINARY [target/kernel] (root; minutes by emulation). Installed, started with
# the machine, ready and watched; a node that hangs or is killed is started anew; purged under it.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1")
target=$(realpath -m "${2:-target/kernel}")
limit=${LIMIT:-400}
for tool in mmdebstrap dpkg-deb objcopy qemu-system-x86_64 cpio; do
  command -v $tool >/dev/null || { echo "packages-vm: skipped, there is no $tool (scripts/setup.sh test kernel)" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "packages-vm: skipped, a root for packages is made by root" >&2; exit 77; }
kernel=$(find /usr/src -maxdepth 1 -name 'linux-headers-6.1.*-cloud-amd64' -printf '%f\n' | sed 's/linux-headers-//' | sort -V | tail -1)
boot=$(kernel/tests/image.sh "$kernel" "$target")/boot/vmlinuz-$kernel
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
COMPRESS=gzip scripts/deb.sh "$binary" "$work/deb" >/dev/null
mmdebstrap --quiet --variant=minbase --include=systemd-sysv,adduser,libgcc-s1 bookworm "$work/root" >/dev/null
root=$work/root
cp "$work"/deb/onym_*.deb "$root/root/onym.deb"
cp tests/packages/vm-guest.sh "$root/usr/local/bin/onym-test"
cat >"$root/etc/systemd/system/onym-test.service" <<'END'
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/usr/local/bin/onym-test
ExecStopPost=/bin/systemctl poweroff --force --force
StandardOutput=file:/dev/ttyS0
StandardError=file:/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
END
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s /etc/systemd/system/onym-test.service "$root/etc/systemd/system/multi-user.target.wants/"
# Sooner than a person would wait for it.
for unit in onym onym-repo onym-manager; do
  mkdir -p "$root/etc/systemd/system/$unit.service.d"
  printf '[Service]\nWatchdogSec=20\n' >"$root/etc/systemd/system/$unit.service.d/test.conf"
done
rm -rf "$root"/usr/share/{doc,locale,man,info} "$root"/var/cache/apt "$root"/var/lib/apt/lists
ln -sf /lib/systemd/systemd "$root/init"
(cd "$root" && find . -xdev | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"
timeout "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults -no-user-config \
  -display none -serial stdio -no-reboot -kernel "$boot" -initrd "$work/initrd" \
  -append "console=ttyS0 quiet no_timer_check panic=-1 systemd.show_status=false systemd.mask=serial-getty@ttyS0.service" </dev/null |
  tee "$work/console" | grep -a --line-buffered '^onym-vm: ' || true
grep -aq '^onym-vm: passed' "$work/console" || { tail -60 "$work/console" >&2; echo "packages-vm: FAILED" >&2; exit 1; }
