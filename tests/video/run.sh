#!/usr/bin/env bash
# A live stream of ffmpeg, published by one command, in a real browser: tests/video/run.sh PROGRAM
# `fetch` in place of PROGRAM installs the players (npm) only. Exit status 77: a program is missing.
set -euo pipefail
for need in node npm chromium ffmpeg; do
  command -v "$need" >/dev/null || { echo "skipped: no $need"; exit 77; }
done
program=$1
[ "$program" = fetch ] || program=$(realpath "$program")
cd "$(dirname "$0")"
[ -e node_modules/shaka-player ] || npm install --silent --no-package-lock --no-audit --no-fund
[ "$program" != fetch ] || exit 0
mkdir -p ../../target
npx esbuild page.mjs --bundle --format=esm --outfile=../../target/video-page.js --log-level=error
ONYM=$program CHROMIUM=$(command -v chromium) PAGE=$PWD/../../target/video-page.js node --test --test-reporter=spec live.test.mjs
