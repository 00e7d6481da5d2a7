#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Makes the source tree that DKMS takes, and builds it with DKMS in a tree of its own:
#   dkms.sh TARGET          the test: every installed kernel's module is built and told by modinfo
#   dkms.sh TARGET --tree   the source tree only: TARGET/dkms/nnet-VERSION, for /usr/src
# Exit status 77 where the archive does not give DKMS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$here/.. target=$(realpath -m "$1")
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$kernel/../packaging/kernel/dkms.conf")
grep -q "MODULE_VERSION(\"$version\")" "$kernel/main.c" || { echo "main.c and dkms.conf have different versions" >&2; exit 1; }
tree=$target/dkms/nnet-$version
rm -rf "$target/dkms" && mkdir -p "$tree"
cp -r "$kernel"/*.[ch] "$kernel/Kbuild" "$kernel/generated" "$kernel/include" "$kernel/selftest" "$kernel/man" \
  "$kernel/../packaging/kernel/dkms.conf" "$tree/"
[ "${2:-}" != --tree ] || { echo "$tree"; exit 0; }
state=$target/apt-dkms apt=(-q)
mkdir -p "$state"
. "$here/apt.sh"
for p in dkms kmod; do have "$p" || { echo "skipped, not to be had: $p" >&2; exit 77; }; done
dkms=$state/root/usr/sbin/dkms
[ -e "$dkms" ] || dkms=$state/root/usr/bin/dkms
# kmod is one program of several names.
mkdir -p "$state/bin"
for n in modinfo depmod modprobe lsmod; do ln -sf "$(readlink -f "$state"/root/bin/kmod "$state"/root/usr/bin/kmod 2>/dev/null | head -1)" "$state/bin/$n"; done
export PATH=$state/bin:$PATH
run() { "$dkms" "$@" --dkmstree "$target/dkms/tree" --sourcetree "$target/dkms" --installtree "$target/dkms/modules"; }
mkdir -p "$target/dkms/tree" "$target/dkms/modules"
run add -m nnet -v "$version"
built=0
for k in $(ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sed 's|.*/linux-headers-||'); do
  run build -m nnet -v "$version" -k "$k" --kernelsourcedir "/usr/src/linux-headers-$k" || { find "$target/dkms/tree" -name make.log -exec tail -20 {} + >&2; exit 1; }
  ko=$(find "$target/dkms/tree/nnet/$version/$k" -name 'nnet.ko*' | head -1)
  modinfo "$ko" | tee "$target/dkms/modinfo"
  for field in license description author version alias vermagic; do
    grep -q "^$field:" "$target/dkms/modinfo" || { echo "modinfo lacks $field" >&2; exit 1; }
  done
  for p in $(sed -n 's/^module_param_named(\([a-z_]*\),.*/\1/p' "$kernel"/*.c); do
    grep -qE "^parm: +$p:.+" "$target/dkms/modinfo" || { echo "modinfo lacks the parameter $p" >&2; exit 1; }
  done
  built=$((built + 1))
done
[ $built -gt 0 ] || { echo "skipped, missing: linux-headers-cloud-amd64" >&2; exit 77; }
echo "DKMS built nnet $version for $built kernels"
