#!/bin/sh
# Puts Onym under a prefix, and takes it away again:
#   ./install.sh [--prefix FOLDER]               /usr/local by default
#   ./install.sh --uninstall [--prefix FOLDER]
# DESTDIR goes before the prefix, for those who make packages.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix=/usr/local
what=install
stop() {
  printf 'install: %s\n' "$1" >&2
  printf '  why:  %s\n  next: %s\n' "$2" "$3" >&2
  exit 1
}
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -gt 1 ] || stop "--prefix has no folder" "it is the last word" "./install.sh --prefix ~/.local"
      prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --uninstall) what=uninstall ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) stop "unknown option $1" "there are --prefix FOLDER and --uninstall" "./install.sh --help" ;;
  esac
  shift
done
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
root=${DESTDIR:-}$prefix
list=$root/share/onym/installed

if [ $what = uninstall ]; then
  [ -f "$list" ] || stop "nothing of Onym is under $root" "there is no $list" "name the folder that it was installed to: --prefix"
  [ -w "$list" ] || stop "Onym is not taken from $root" "you may not write there" "sudo ./install.sh --uninstall"
  # Only what this script wrote: files below the prefix, then the folders that it made, with a / at
  # their end, those within others first.
  sort -r "$list" | while IFS= read -r file; do
    case $file in /* | *..* | */) continue ;; esac
    rm -f "$root/$file"
  done
  folders=$(grep '/$' "$list" | sort -r)
  rm -f "$list"
  for folder in $folders; do
    case $folder in /* | *..*) continue ;; esac
    rmdir "$root/$folder" 2>/dev/null || true
  done
  echo "Onym is gone from $root. Keys and state stay: ~/.local/share/onym, /var/lib/onym."
  exit 0
fi

machine=$(uname -m)
made_for=$(cat "$here/architecture")
[ "$(uname -s)" = Linux ] || stop "this is $(uname -s)" "Onym needs Linux" "use a virtual machine or a container"
[ "$machine" = "$made_for" ] || stop "this machine is $machine" "the program in this archive is for $made_for" "take the archive for $machine, or build: make build"
"$here/bin/onym" --version >/dev/null 2>&1 || stop "bin/onym does not start here" "$("$here/bin/onym" --version 2>&1 | head -1)" "take the archive whose program is static, or build: make static"
mkdir -p "$root" 2>/dev/null && [ -w "$root" ] ||
  stop "nothing was installed to $root" "you may not write there" "sudo ./install.sh, or ./install.sh --prefix ~/.local"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
folder() {
  [ ! -d "$root/$1" ] || return 0
  case $1 in */*) folder "${1%/*}" ;; esac
  mkdir "$root/$1"
  printf '%s/\n' "$1" >>"$new"
}
folder share/onym
[ ! -f "$list" ] || grep '/$' "$list" >>"$new" || true
(cd "$here" && find bin share lib -type f | sort) | while IFS= read -r file; do
  folder "${file%/*}"
  # A running program is replaced, not overwritten.
  cp "$here/$file" "$root/$file.new"
  case $file in *.service) sed -i "s|/usr/bin/onym|$prefix/bin/onym|" "$root/$file.new" ;; esac
  mv -f "$root/$file.new" "$root/$file"
done
(cd "$here" && find bin share lib -type f | sort) >>"$new"
cp "$new" "$list"
echo "Onym is in $root: $("$here/bin/onym" --version)"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "Put it on the PATH: export PATH=$prefix/bin:\$PATH" ;; esac
echo "Start a node: onym daemon. As a service, as root:"
echo "  useradd --system --user-group --home-dir /var/lib/onym --shell /usr/sbin/nologin onym"
echo "  install -D -m 644 $prefix/share/doc/onym/onym.toml /etc/onym/onym.toml"
echo "  systemctl daemon-reload && systemctl enable --now onym"
