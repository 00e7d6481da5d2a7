#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Whether each sentence of the security page names a test that there is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
page=$(sed -n '/^## Who may do what/,/^### The same/p' "$here/../README.md" | grep '^- ')
failed=0
while read -r line; do
  names=$(grep -oE '\(`[a-z-]+`(, `[a-z-]+`)*\)' <<< "$line" | grep -oE '[a-z-]+' || true)
  [ -n "$names" ] || { echo "the security page names no test: $line"; failed=1; }
  for name in $names; do
    [ -e "$here/guest/$name.sh" ] || grep -qE "(^|[ \"])$name([ \";]|\$)" "$here"/guest/{limits,bounds}.sh ||
      { echo "the security page names a test that is not there: $name"; failed=1; }
  done
done <<< "$page"
exit $failed
