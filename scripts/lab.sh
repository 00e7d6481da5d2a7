#!/usr/bin/env bash
# The laboratory in a Python environment of its own (lab/.venv, made when it is missing or old):
#   scripts/lab.sh test                 format, lint, types and tests
#   scripts/lab.sh experiments [NAME…]  the whole library, or the named ones, at the commit that is checked
#                                       out; goes on where it was (--dry-run: what it would do)
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
    # Each file of the project says who may use it (REUSE.toml).
    reuse --root .. lint --quiet || { reuse --root .. lint --lines; exit 1; }
    # Two at a time: most of them wait for processes.
    exec pytest --numprocesses 2 --dist loadfile
    ;;
  experiments)
    shift
    cd ..
    cargo build --quiet --release --locked --package onym --package onym-bench
    # What is measured together is of one commit; changes of the sources that are not committed are told.
    commit=$(git describe --always --abbrev=12 --exclude '*' --dirty=+changes 2>/dev/null || echo none)
    printf 'lab: results go to results/%s\n' "$commit" >&2
    exec onym-lab --results "results/$commit" all --plain "$@"
    ;;
  *)
    cd ..
    exec onym-lab "$@"
    ;;
esac
