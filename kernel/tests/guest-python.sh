#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What of Debian's Python a guest needs to run clients/python: guest-python.sh FOLDER
# Nothing is made where there is none; the guest then leaves the Python calls out.
set -euo pipefail
out=$1 from=/usr/lib/python3.11
[ -x /usr/bin/python3.11 ] && [ -e $from/lib-dynload ] || exit 0
lib=$out/lib/python3.11
mkdir -p "$out/bin" "$lib/lib-dynload"
cp /usr/bin/python3.11 "$out/bin/python3"
cp $from/*.py "$lib/"
cp -r $from/{collections,ctypes,encodings,importlib,re} "$lib/"
find "$lib" -name __pycache__ -prune -exec rm -rf {} +
for so in "$from"/lib-dynload/_{ctypes,hashlib}.*.so; do
  cp "$so" "$lib/lib-dynload/"
  for l in $(ldd "$so" | grep -oE '/[^ ]+/lib(ffi|crypto)[^ ]+' || true); do cp -L "$l" "$out/lib/"; done
done
