#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# sparse, checkpatch, and whether what is generated is fresh: check.sh TARGET
# Left out of checkpatch, with the reason: MEMORY_BARRIER (acquire and release
# pairs are explained where their variable is declared), LINUX_VERSION_CODE (one
# source for two kernels, in compat.h), MACRO_WITH_FLOW_CONTROL (LAW() of the
# self-test), COMPLEX_MACRO and BRACKET_SPACE (lists of counters),
# EMBEDDED_FILENAME (names of other files in comments), CONSTANT_COMPARISON (the
# macro of kernel versions), LONG_LINE (words of module parameters and counters),
# NEW_TYPEDEFS (names of a newer kernel, for an older one).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$here/..
target=$(realpath -m "$1")
failed=0
if python3 -c 'import yaml' 2>/dev/null; then
  "$kernel/tools/nlgen.py" --check || failed=1
else
  echo "freshness of generated files not checked: no python3-yaml"
fi
version=$(ls -d /usr/src/linux-headers-6.1.*-amd64 2>/dev/null | sed 's|.*/linux-headers-||' | tail -1)
if [ -n "$version" ] && command -v sparse >/dev/null; then
  rm -rf "$target/sparse" && mkdir -p "$target/sparse"
  "$here/build.sh" "$version" "$target/sparse" C=2 CF=-D__CHECK_ENDIAN__ 2>&1 | grep -E 'warning|error' | grep -v "/usr/src/" && failed=1
  echo "sparse: done"
else
  echo "sparse skipped: sparse or headers are missing"
fi
tarball=$(ls /usr/src/linux-source-6.1.tar.xz 2>/dev/null || true)
if [ -n "$tarball" ]; then
  scripts=$target/scripts
  [ -x "$scripts/checkpatch.pl" ] || { mkdir -p "$scripts"; tar xf "$tarball" -C "$scripts" --strip-components=2 \
    linux-source-6.1/scripts/{checkpatch.pl,const_structs.checkpatch,spelling.txt}; }
  (cd "$kernel" && perl "$scripts/checkpatch.pl" --no-tree --terse --quiet --ignore \
    MEMORY_BARRIER,LINUX_VERSION_CODE,MACRO_WITH_FLOW_CONTROL,COMPLEX_MACRO,BRACKET_SPACE,EMBEDDED_FILENAME,CONSTANT_COMPARISON,LONG_LINE,NEW_TYPEDEFS \
    -f ./*.[ch] selftest/*.c include/uapi/linux/*.h generated/*.[ch]) || failed=1
  echo "checkpatch: done"
else
  echo "checkpatch skipped: linux-source-6.1 is missing"
fi
exit $failed
