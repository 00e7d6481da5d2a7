#!/usr/bin/env bash
# Two builds of the last commit, each from nothing, give the same program and the same packages:
# scripts/reproducible.sh [PROFILE] (release). Both are made in one folder: the identifier that the linker
# gives a program depends on the paths in its line tables.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --local . "$work/onym"
cd "$work/onym"
export CARGO_TARGET_DIR=$work/onym/target
for build in first second; do
  rm -rf target
  cargo build --quiet --profile "$profile" --locked --package onym --features s3
  scripts/deb.sh "target/$profile/onym" "$work/$build" >/dev/null
  scripts/archive.sh "target/$profile/onym" "$work/$build" >/dev/null
  cp "target/$profile/onym" "$work/$build/"
  echo "reproducible: the $build build is made"
done
for file in "$work"/first/*; do
  name=$(basename "$file")
  cmp "$file" "$work/second/$name" || { echo "reproducible: FAILED: two builds of $name differ" >&2; exit 1; }
  echo "reproducible: $name: $(sha256sum <"$file" | cut -c1-64)"
done
