#!/usr/bin/env bash
# Debian packages of a built program: scripts/deb.sh BINARY [FOLDER]
# Writes FOLDER/onym_VERSION_ARCH.deb and, where the program has line tables, onym-dbg with them
# (target/deb). Needs dpkg-deb and binutils. VERSION: another one than that of Cargo.toml;
# COMPRESS: gzip or zstd in place of xz, which is slow. SIZE_MAX: another bound of the program than 40 MB.
# For another machine than this: ARCH, its Debian name, OBJCOPY, and RUNS, a program of the same version
# that runs here.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
out=$(realpath -m "${2:-target/deb}")
version=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
arch=${ARCH:-$(dpkg --print-architecture)}
objcopy=${OBJCOPY:-objcopy}
runs=$(realpath "${RUNS:-$binary}")
for tool in dpkg-deb "$objcopy" readelf; do
  command -v "$tool" >/dev/null || { echo "deb: skipped, there is no $tool" >&2; exit 77; }
done
# The newest version of the C library whose symbols the program uses.
libc=$(readelf --wide --dyn-syms "$binary" | grep -oE '@GLIBC_[0-9.]+' | sort -uV | tail -1)
libc=${libc#@GLIBC_}
# Packed relocations are understood from 2.36 on.
if readelf --wide --dynamic "$binary" | grep '(RELR)' >/dev/null; then libc=$(printf '%s\n2.36\n' "$libc" | sort -V | tail -1); fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tree=$root/onym
# What is packed has one time, that of the commit: two builds of one commit give the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

install -D -m 755 "$binary" "$tree/usr/bin/onym"
"$objcopy" --strip-unneeded "$tree/usr/bin/onym"
octets=$(stat -c %s "$tree/usr/bin/onym")
[ "$octets" -lt "${SIZE_MAX:-40000000}" ] || { echo "deb: the program has $octets octets, and ${SIZE_MAX:-40000000} or more are too many to ship" >&2; exit 1; }
for unit in onym onym-manager onym-repo; do
  install -D -m 644 "packaging/debian/$unit.service" "$tree/lib/systemd/system/$unit.service"
done
install -m 644 packaging/debian/onym.socket "$tree/lib/systemd/system/"
install -D -m 755 packaging/archive/restart "$tree/usr/lib/onym/restart"
install -D -m 644 packaging/debian/onym.toml "$tree/etc/onym/onym.toml"
install -d -m 755 "$tree/etc/onym/onym.toml.d"
install -D -m 644 packaging/debian/onym-manager.default "$tree/etc/default/onym-manager"
install -m 644 packaging/debian/onym-repo.default "$tree/etc/default/onym-repo"
install -D -m 644 packaging/debian/50-onym.conf "$tree/usr/lib/sysctl.d/50-onym.conf"
install -d "$tree/usr/share/man/man1"
"$runs" man "$tree/usr/share/man/man1" >/dev/null
gzip -9n "$tree"/usr/share/man/man1/*
complete() { install -d "$(dirname "$tree/$2")" && "$runs" completions "$1" >"$tree/$2"; }
complete bash usr/share/bash-completion/completions/onym
complete zsh usr/share/zsh/vendor-completions/_onym
complete fish usr/share/fish/vendor_completions.d/onym.fish
doc=$tree/usr/share/doc/onym
install -D -m 644 docs/config.md "$doc/config.md"
install -m 644 docs/security.md docs/glossary.md README.md "$doc/"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
  printf 'Upstream-Name: Onym\n\nFiles: *\nCopyright: The Onym authors\nLicense: Apache-2.0 or MIT\n'
  printf '\nLicense: Apache-2.0\n On Debian systems: /usr/share/common-licenses/Apache-2.0\n'
  printf '\nLicense: MIT\n'
  sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT
} >"$doc/copyright"

install -d "$tree/DEBIAN"
install -m 755 packaging/debian/preinst packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$tree/DEBIAN/"
sed -i "s/@VERSION@/$version/" "$tree/DEBIAN/preinst"
printf '/etc/onym/onym.toml\n/etc/default/onym-manager\n/etc/default/onym-repo\n' >"$tree/DEBIAN/conffiles"
control() { # PACKAGE SECTION DEPENDS DESCRIPTION TREE
  cat >"$5/DEBIAN/control" <<END
Package: $1
Version: $version
Architecture: $arch
Maintainer: The Onym authors <onym@example.invalid>
Section: $2
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$5" | cut -f1)
Depends: $3
Description: $4
END
}
control onym net "libc6 (>= $libc), libgcc-s1, adduser" "information-centric networking: a node for named data
 A forwarder that unmodified NDN programs use, publish/subscribe beside it, functions with a
 manager, and the commands around them." "$tree"
(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
mkdir -p "$out"
pack() { dpkg-deb --root-owner-group -Z"${COMPRESS:-xz}" --build "$1" "$out" >/dev/null; }
pack "$tree"

id=$(readelf -n "$binary" | sed -n 's/.*Build ID: //p')
if [ -n "$id" ] && readelf -S "$binary" | grep '\.debug_line' >/dev/null; then
  debug=$root/onym-dbg
  install -d "$debug/usr/lib/debug/.build-id/${id:0:2}" "$debug/DEBIAN"
  "$objcopy" --only-keep-debug --compress-debug-sections=zlib "$binary" "$debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
  control onym-dbg debug "onym (= $version)" "line tables of onym, for debuggers and profilers
 Backtraces and profiles of onym name files and lines with these." "$debug"
  pack "$debug"
fi
ls -1 "$out"/onym*_"$version"_*.deb
