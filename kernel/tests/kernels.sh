#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Compiles the module against the kernels whose headers Debian's archive has, and
# prints a table: kernels.sh TARGET [PATTERN]
# Packages come into TARGET with lists of their own and are unpacked, not installed.
# RELEASES: bookworm with its updates, security and backports, what is newer, and
# bullseye for 5.10.
# A kernel of a newer release is compiled by this machine's compiler, without the
# options that this does not know; its tools run with that release's C library.
# BOOT: guest scripts that the newest that compiles is booted with (a cloud kernel).
# A row says so where headers are listed that the archive does not give.
# Fails when one does not compile but those newer than bookworm, when none does, and when a script fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "$1")
pattern=${2:-.}
state=$target/kernels
mkdir -p "$state"/{lists/partial,cache/archives/partial,bin}
key=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg
# The archives that this machine asks.
archive() { apt-get indextargets --format '$(REPO_URI)' "Release: $1" | sort -u | head -1; }
for r in ${RELEASES:-bullseye bullseye-security bookworm bookworm-updates bookworm-backports bookworm-security trixie-backports}; do
  of=bookworm
  case $r in *-security) of=bookworm-security ;; esac
  echo "deb [$key] $(archive "$of") $r main"
done > "$state/sources.list"
apt=(-q -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache")
apt-get "${apt[@]}" update > /dev/null
# What gcc 12 does not know, and what it has in its place.
cat > "$state/bin/cc" <<'C'
#!/usr/bin/env bash
a=()
for x in "$@"; do
  case $x in
    -fmin-function-alignment=*) a+=("-falign-functions=${x#*=}") ;;
    -fstrict-flex-arrays* | -fzero-init-padding-bits* | -fdiagnostics-show-context*) ;;
    *) a+=("$x") ;;
  esac
done
exec gcc "${a[@]}"
C
chmod +x "$state/bin/cc"

. "$here/apt.sh"
# The tools of a newer release want its C library.
adapt() {
  local f libc=$state/libc
  for f in $(find "$state/root/usr/lib/$1" -type f -perm -1 ! -name '*.whole'); do
    # Not by a pipe to grep -q: it ends at the first line, and what writes to it may be told so.
    [[ $(ldd "$f" 2>&1) =~ GLIBC_[^[:space:]]*.*not\ found ]] || continue
    if [ ! -d "$libc" ]; then
      (cd "$state" && echo "deb [$key] $(archive bookworm) trixie main" >> sources.list &&
        apt-get "${apt[@]}" update > /dev/null && apt-get "${apt[@]}" download libc6/trixie > /dev/null 2>&1 &&
        dpkg-deb -x libc6_*.deb libc && rm -f libc6_*.deb)
    fi
    mv "$f" "$f.whole"
    printf '#!/bin/sh\nexec %s --library-path %s:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu %s "$@"\n' \
      "$libc/usr/lib64/ld-linux-x86-64.so.2" "$libc/usr/lib/x86_64-linux-gnu" "$f.whole" > "$f"
    chmod +x "$f"
  done
}
# compile KERNEL: its row. Exit status 77: its headers cannot be had.
compile() {
  local k=$1 p=linux-headers-$1 version d said=$state/$1.log how="gcc $(gcc -dumpversion)" need
  version=$(apt-cache "${apt[@]}" show "$p" | sed -n 's/^Version: //p' | head -1)
  headers "$k" > "$said" || { echo "| $k | $version | $(cat "$said") | |"; return 77; }
  adapt "$kbuild"
  need=$(sed -n 's/^CC = .*gcc-//p' "$build/.kernelvariables")
  if [ "$need" = "$(gcc -dumpversion)" ]; then set --; else set -- CC="$state/bin/cc"; how="$how for $need"; fi
  if "$here/build.sh" "$build" "$state/out" "$@" > "$said" 2>&1; then
    d="$(grep -c "$state/out.*warning" "$said") warnings"
    d="$d, $(size "$state/out/$p/src/nnet.ko" | awk 'NR == 2 { print $1 }') octets of text"
  else
    d="does not compile: $(grep -m1 -E 'error|Error' "$said" | sed "s|$state/||g" | cut -c1-90)"
  fi
  case $k in *cloud*) [ ! -e "$state/out/$p/src/nnet.ko" ] || { cp "$state/out/$p/src/nnet.ko" "$state/newest.ko"; newest=$k; } ;; esac
  rm -rf "$state/out/$p"
  echo "| $k | $version | $how | $d |"
  case $d in *warnings*) ;; *) return 1 ;; esac
}
failed=0 compiled=0 absent=0 newest=
echo "| kernel | package | compiler | module |"
echo "|---|---|---|---|"
for k in $(kernels | grep -E "$pattern"); do
  how=0
  compile "$k" || how=$?
  case $how:$k in 0:*) compiled=$((compiled + 1)) ;; 77:*) absent=$((absent + 1)) ;; *deb13* | *deb14*) ;; *) failed=1 ;; esac
done
echo "$compiled compile, $absent are not to be had"
[ "$compiled" -gt 0 ] || failed=1
if [ -n "${BOOT:-}" ] && [ -n "$newest" ]; then
  image=$state/images/$newest
  if [ ! -e "$image/boot/vmlinuz-$newest" ]; then
    mkdir -p "$image"
    # The newest have kernel and modules in packages of their own, and both in one folder.
    parts=$(apt-cache "${apt[@]}" show "linux-image-$newest" | sed -n 's/^Depends: //p' | head -1 | grep -oE 'linux-(binary|modules)-[^ ,]+' || true)
    # shellcheck disable=SC2086
    (cd "$image" && apt-get "${apt[@]}" download "linux-image-$newest" $parts > /dev/null 2>&1 &&
      for f in ./*.deb; do dpkg-deb -x "$f" .; done && rm -f ./*.deb && mkdir -p boot &&
      { [ -e "boot/vmlinuz-$newest" ] || ln "usr/lib/modules/$newest/vmlinuz" "boot/vmlinuz-$newest"; }) ||
      { echo "not to be had: linux-image-$newest"; exit 1; }
  fi
  # Newer packages have their modules below /usr.
  EXTRA=${EXTRA:-/sbin/tc} LIMIT=${LIMIT:-900} "$here/vm.sh" "$state/newest.ko" "$image/boot/vmlinuz-$newest" "$(ls -d "$image"{/usr,}/lib/modules/"$newest" 2>/dev/null | head -1)" "$BOOT" || failed=1
fi
exit $failed
