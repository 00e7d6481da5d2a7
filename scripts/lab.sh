#!/usr/bin/env bash
# The laboratory in a Python environment of its own (lab/.venv, made when it is missing or old):
#   scripts/lab.sh test                 format, lint, types and tests
#   scripts/lab.sh experiments [NAME…]  the whole library, or the named ones; goes on where it was
#   scripts/lab.sh ARGUMENTS…           onym-lab with these arguments
set -euo pipefail
cd "$(dirname "$0")/../lab"
venv=.venv
stamp=$venv/made-for
wanted=$(sha256sum pyproject.toml | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  printf 'lab: making the Python environment\n' >&2
  python3 -m venv "$venv"
  # Python compiles what is imported, when it is: less than half of all.
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --editable '.[dev,cluster]'
  printf '%s\n' "$wanted" >"$stamp"
fi
export PATH="$PWD/$venv/bin:$PATH"

case ${1:-} in
  test)
    ruff format --check --quiet .
    ruff check --quiet .
    mypy --no-error-summary
    # Two at a time: most of them wait for processes.
    exec pytest --numprocesses 2 --dist loadfile
    ;;
  experiments)
    shift
    cd ..
    cargo build --quiet --release --locked --package onym --package onym-bench
    if [ $# = 0 ]; then
      mapfile -t files < <(find lab/experiments -name '*.yaml' | sort)
    else
      files=("$@")
    fi
    failed=0
    for file in "${files[@]}"; do
      status=0
      onym-lab run "$file" --plain || status=$?
      # 3: this machine or the source tree lacks a part, which was named; 4: marked in its report.
      case $status in 0 | 3 | 4) ;; *) failed=$((failed + 1)); printf 'lab: %s failed (%d)\n' "$file" "$status" >&2 ;; esac
    done
    exit $((failed > 0))
    ;;
  *)
    cd ..
    exec onym-lab "$@"
    ;;
esac
