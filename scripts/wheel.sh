#!/usr/bin/env bash
# The package for Python as a wheel, pure Python: scripts/wheel.sh [FOLDER] (target/wheel). Two runs give
# the same octets. Needs pip, which fetches setuptools. Exit status 77: there is no pip.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-target/wheel}")
python3 -m pip --version >/dev/null 2>&1 || { echo "wheel: skipped, there is no pip (python3-pip)" >&2; exit 77; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Setuptools leaves folders beside what it packs.
mkdir "$work/python"
cp -r clients/python/onym clients/python/pyproject.toml clients/python/README.md "$work/python/"
find "$work/python" -name __pycache__ -prune -exec rm -rf {} +
python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" "$work/python"
ls "$out"/onym-*.whl
