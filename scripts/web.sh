#!/usr/bin/env bash
# The pages of node and manager: types, whether the committed files are of this source, and a real
# browser.
# scripts/web.sh PROGRAM. Exit status 77: Node.js or Chromium is missing.
set -euo pipefail
program=$(realpath "${1:-$(dirname "$0")/../target/release/onym}")
cd "$(dirname "$0")/../web"
for need in node npm chromium; do
  command -v "$need" >/dev/null || { echo "skipped: no $need"; exit 77; }
done
npm ci --no-audit --no-fund --silent
npx tsc --noEmit
node build.mjs --check
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
ONYM=$program CHROMIUM=$(command -v chromium) FIGURES=$figures node --test --test-reporter=dot test/*.test.mjs
cat "$figures"
