#!/usr/bin/env bash
# What of the Rust client's interface changed since the last release, by cargo-semver-checks:
# scripts/semver.sh [REVISION]; without one the last tag of a release. Exit status 77: no release has a
# tag yet.
set -euo pipefail
cd "$(dirname "$0")/.."
since=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
[ -n "$since" ] || { echo "skipped: no release has a tag yet, so there is nothing to compare with"; exit 77; }
command -v cargo-semver-checks >/dev/null || cargo install --locked cargo-semver-checks
exec cargo semver-checks --package onym-client --baseline-rev "$since"
