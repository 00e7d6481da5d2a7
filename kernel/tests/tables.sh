#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the tables gain from a second processor, and which locks are waited for: pit.c, record.c, cs.c
# and table.c under threads of a process (tables/tables.c): tables.sh TARGET
# REPEAT, MS: of the windows (40, 5). OTHER: ns of other work between operations, a table
# for each (0 3000). SANITIZE: sanitizers to build with, for a look.
# Exit status 77 where the kernel's source, for its red-black tree, is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$here/..
out=$(realpath -m "$1")/tables
tarball=/usr/src/linux-source-6.1.tar.xz
mkdir -p "$out"/include/{linux,net/netns,crypto,asm}
if [ ! -e "$out/whole" ]; then
  [ -e "$tarball" ] || { echo "skipped, missing: linux-source-6.1 (scripts/setup.sh kernel-debug)" >&2; exit 77; }
  tar xf "$tarball" -C "$out" --strip-components=1 --occurrence=1 \
    linux-source-6.1/{lib/rbtree.c,include/linux/rbtree.h,include/linux/rbtree_augmented.h,include/linux/rbtree_types.h}
  touch "$out/whole"
fi
# Every other header of the kernel is in shim.h.
for h in $(sed -nE 's/^#include <((linux|net|asm|crypto)\/[^>]+)>.*/\1/p' "$kernel"/*.[ch] "$out/lib/rbtree.c" "$out"/include/linux/rbtree*.h | sort -u); do
  case $h in linux/errno.h | linux/types.h | linux/stddef.h) ;; *) [ -e "$out/include/$h" ] || touch "$out/include/$h" ;; esac
done
flags=(-O2 -g -std=gnu11 -D_GNU_SOURCE -pthread -Wall -Wno-unused -I "$out/include" -include "$here/tables/shim.h")
[ -z "${SANITIZE:-}" ] || flags+=("-fsanitize=$SANITIZE")
gcc "${flags[@]}" -o "$out/tables" "$here/tables/tables.c" "$kernel"/{pit,record,cs,table,wire,packet}.c "$out/lib/rbtree.c"
for other in ${OTHER:-0 3000}; do
  echo "$other ns of other work"
  "$out/tables" "${REPEAT:-40}" "${MS:-5}" "$other"
done
