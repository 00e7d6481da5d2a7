#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The folder with Debian's image and modules of a kernel, had once: image.sh VERSION TARGET
set -euo pipefail
image=$2/images/$1
if [ ! -e "$image/boot/vmlinuz-$1" ]; then
  mkdir -p "$image"
  (cd "$image" && apt-get download -q "linux-image-$1" >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm -f ./*.deb) || {
    echo "the image of $1 cannot be had" >&2
    rm -rf "$image"
    exit 1
  }
fi
echo "$image"
