# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Sourced, with `state` (a folder) and `apt` (options of apt-get, an array) set:
# kernel headers of Debian's archive, unpacked below $state/root and not installed.

# have PACKAGE: downloaded and unpacked, once.
have() {
  [ ! -e "$state/root/.$1" ] || return 0
  mkdir -p "$state/root"
  (cd "$state" && apt-get "${apt[@]}" download "$1" > /dev/null 2>&1 && dpkg-deb -x "$1"_*.deb root && rm -f "$1"_*.deb) || return 1
  touch "$state/root/.$1"
}

# headers KERNEL: sets `build` to the folder that a module is built in; says what cannot be had.
headers() {
  local p=linux-headers-$1 d
  # shellcheck disable=SC2034
  kbuild=
  for d in $p $(apt-cache "${apt[@]}" show "$p" | sed -n 's/^Depends: //p' | head -1 | tr ',' '\n' | grep -oE 'linux-(headers|kbuild)-[^ ]+' | sort -u); do
    have "$d" || { echo "not to be had: $d"; return 1; }
    case $d in linux-kbuild-*) kbuild=$d ;; esac
  done
  build=$state/root/usr/src/$p
  # The packages name places of an installed system.
  grep -q "$state" "$build/Makefile" || sed -i "s|/usr/src|$state/root/usr/src|g" "$build/Makefile"
}

# kernels: those that there are headers of, oldest first.
kernels() {
  apt-cache "${apt[@]}" search --names-only '^linux-headers-[0-9].*amd64$' | awk '{ print $1 }' | sed 's/^linux-headers-//' |
    grep -vE '^[0-9]+\.[0-9]+-(cloud-|rt-)?amd64$' | sort -V
}
