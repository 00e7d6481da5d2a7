#!/usr/bin/env bash
# paho-mqtt, unmodified, against two bridges: tests/mqtt/paho.sh ONYM
# `fetch` in place of ONYM installs only. It is installed from PyPI under target/, a tool of this test
# (EPL-2.0 or BSD-3-Clause) and of nothing that is shipped. Exit status 77 when it cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${CARGO_TARGET_DIR:-target}/mqtt-venv needs=tests/mqtt/requirements.txt

# What is there is that of this list.
if ! cmp -s "$needs" "$venv/ready"; then
  { python3 -m venv --clear "$venv" &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$needs" &&
    cp "$needs" "$venv/ready"; } || { echo "skipped: paho-mqtt cannot be installed" >&2; exit 77; }
fi
[ "${1:?usage: tests/mqtt/paho.sh ONYM|fetch}" = fetch ] || exec "$venv/bin/python" tests/mqtt/paho_cases.py "$1"
