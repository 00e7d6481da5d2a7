#!/usr/bin/env bash
# An archive with the program, pages, completions, units and an install script:
# scripts/archive.sh BINARY [FOLDER]
# Writes FOLDER/onym-VERSION-MACHINE.tar.gz (target/archive). Two runs give the same octets.
# `make archive` hands it the static program, which needs no library of the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
out=$(realpath -m "${2:-target/archive}")
version=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
machine=$(uname -m)
command -v objcopy >/dev/null || { echo "archive: skipped, there is no objcopy (binutils)" >&2; exit 77; }
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
name=onym-$version-$machine
tree=$root/$name

install -D -m 755 "$binary" "$tree/bin/onym"
objcopy --strip-unneeded "$tree/bin/onym"
printf '%s\n' "$machine" >"$tree/architecture"
install -m 755 packaging/archive/install.sh "$tree/"
install -m 644 LICENSE-APACHE LICENSE-MIT "$tree/"
install -d "$tree/share/man/man1"
"$binary" man "$tree/share/man/man1" >/dev/null
gzip -9n "$tree"/share/man/man1/*
complete() { install -d "$(dirname "$tree/$2")" && "$binary" completions "$1" >"$tree/$2"; }
complete bash share/bash-completion/completions/onym
complete zsh share/zsh/site-functions/_onym
complete fish share/fish/vendor_completions.d/onym.fish
for unit in onym onym-manager onym-repo; do
  install -D -m 644 "packaging/debian/$unit.service" "$tree/lib/systemd/system/$unit.service"
done
install -m 644 packaging/debian/onym.socket "$tree/lib/systemd/system/"
install -D -m 755 packaging/archive/restart "$tree/lib/onym/restart"
doc=$tree/share/doc/onym
install -D -m 644 packaging/debian/onym.toml "$doc/onym.toml"
install -m 644 README.md CHANGELOG.md docs/config.md docs/security.md docs/glossary.md "$doc/"
mkdir -p "$out"
tar -C "$root" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -cf - "$name" |
  gzip -9n >"$out/$name.tar.gz"
ls "$out/$name.tar.gz"
