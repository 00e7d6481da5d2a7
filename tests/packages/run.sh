#!/usr/bin/env bash
# The Debian package in a clean root, as a user meets it: installed, used, upgraded with a changed
# configuration, removed and purged: tests/packages/run.sh BINARY (root).
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1")
for tool in mmdebstrap dpkg-deb objcopy; do
  command -v $tool >/dev/null || { echo "packages: skipped, there is no $tool (scripts/setup.sh test)" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "packages: skipped, a root for packages is made by root" >&2; exit 77; }
export COMPRESS=gzip
work=$(mktemp -d)
daemon=
finish() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() { echo "packages: FAILED: $*" >&2; exit 1; }

scripts/deb.sh "$binary" "$work/new" >/dev/null
VERSION=0.0.9 scripts/deb.sh "$binary" "$work/old" >/dev/null
new=$(ls "$work"/new/onym_*.deb) old=$(ls "$work"/old/onym_*.deb)
# The next version and the one after it, with another program in them.
for version in 0.2.0 0.3.0; do
  dpkg-deb --raw-extract "$new" "$work/$version"
  printf '#!/bin/sh\n' >"$work/$version/usr/bin/onym"
  rm "$work/$version/DEBIAN/md5sums"
  sed -i "s/^Version: .*/Version: $version/; s/^  own=.*/  own=$version/" "$work/$version"/DEBIAN/{control,preinst}
  dpkg-deb --root-owner-group -Znone --build "$work/$version" "$work/$version.deb" >/dev/null
done
echo "package: $(stat -c %s "$new") octets, program $(dpkg-deb --fsys-tarfile "$new" | tar -tvf - ./usr/bin/onym | awk '{print $3}')"
[ "$(dpkg-deb --fsys-tarfile "$new" | tar -tvf - ./usr/bin/onym | awk '{print $3}')" -lt 40000000 ] || fail "the program has 40 MB or more"
mkdir "$work/again"
scripts/deb.sh "$binary" "$work/again" >/dev/null
cmp "$new" "$work"/again/onym_*.deb || fail "two packages of one program differ"

# Rust's libraries need what every Debian has, and adduser.
mmdebstrap --quiet --variant=apt --include=adduser,libgcc-s1 bookworm "$work/root" >/dev/null
root=$work/root
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
listing() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./run -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/dpkg -o -path ./var/lib/apt \) -prune -o -printf '%P\n' | sort); }
listing >"$work/before"

# The archive first: installed, used, taken away; and what its script says where that cannot be.
scripts/archive.sh "$binary" "$work/archive" >/dev/null
scripts/archive.sh "$binary" "$work/archive2" >/dev/null
cmp "$work"/archive/*.tar.gz "$work"/archive2/*.tar.gz || fail "two archives of one program differ"
if command -v rpmbuild >/dev/null; then
  for folder in rpm rpm2; do
    scripts/rpm.sh "$work"/archive/*.tar.gz "$work/$folder" >/dev/null 2>"$work/said" || fail "no RPM: $(cat "$work/said")"
  done
  cmp "$work"/rpm/*.rpm "$work"/rpm2/*.rpm || fail "two RPMs of one archive differ"
  mkdir "$work/other"
  # Debian has no packages of the names that it asks for.
  rpm_() { rpm --root "$work/other" --dbpath /db "$@" 2>"$work/said"; }
  rpm_ --initdb && rpm_ --install --nodeps --noscripts "$work"/rpm/*.rpm || fail "the RPM does not install: $(cat "$work/said")"
  "$work/other/usr/bin/onym" check-config "$work/other/etc/onym/onym.toml" >/dev/null || fail "the program of the RPM refuses its configuration"
  rpm_ --erase --nodeps --noscripts onym || fail "the RPM is not erased: $(cat "$work/said")"
  [ -z "$(find "$work/other" -path "$work/other/db" -prune -o -type f -print)" ] || fail "erasing the RPM left something"
  echo "package: an RPM of $(stat -c %s "$work"/rpm/*.rpm) octets"
fi
if python3 -m pip --version >/dev/null 2>&1; then
  scripts/wheel.sh "$work/wheel" >/dev/null || fail "no wheel"
  # Imported from where it is packed, with its mark for type checkers.
  (cd "$work" && PYTHONPATH=$(ls "$work"/wheel/*.whl) python3 -P -c '
import onym, onym.kernel, onym.pull, onym.push.aio, onym.sync, pkgutil
assert ".whl" in onym.__file__, onym.__file__
assert pkgutil.get_data("onym", "py.typed") is not None') || fail "the wheel lacks something"
fi
mkdir "$root/tmp/archive"
tar -C "$root/tmp/archive" --strip-components=1 -xzf "$work"/archive/*.tar.gz
inside /tmp/archive/install.sh >/dev/null || fail "the archive does not install"
inside /usr/local/bin/onym --version >/dev/null || fail "the installed program does not start"
grep -q '^ExecStart=/usr/local/bin/onym' "$root/usr/local/lib/systemd/system/onym.service" || fail "the unit starts another program"
inside /tmp/archive/install.sh >/dev/null || fail "a second install fails"
inside /tmp/archive/install.sh --uninstall >/dev/null || fail "the archive does not uninstall"
inside /tmp/archive/install.sh --uninstall 2>"$work/said" && fail "nothing is uninstalled twice"
grep -q 'next: name the folder' "$work/said" || fail "no next step: $(cat "$work/said")"
inside setpriv --reuid 65534 --clear-groups /tmp/archive/install.sh 2>"$work/said" && fail "a user installs to /usr/local"
grep -q -- '--prefix ~/.local' "$work/said" || fail "no next step: $(cat "$work/said")"
echo riscv64 >"$root/tmp/archive/architecture"
inside /tmp/archive/install.sh 2>"$work/said" && fail "a program of another machine is installed"
grep -q 'is for riscv64' "$work/said" || fail "not told: $(cat "$work/said")"
rm -rf "$root/tmp/archive"
listing >"$work/after"
diff "$work/before" "$work/after" || fail "uninstalling left something"

cp "$old" "$root/tmp/old.deb"
cp "$new" "$root/tmp/onym.deb"
inside dpkg --install /tmp/old.deb >/dev/null || fail "the package does not install"
# The best of ten: how long it takes before anything is done.
least=$(for _ in $(seq 10); do
  begun=$(date +%s%N); inside onym --version >/dev/null; echo $((($(date +%s%N) - begun) / 1000000))
done | sort -n | head -1)
echo "start: $least ms"
[ "$least" -lt 50 ] || fail "the program takes $least ms to start, which is 50 or more"
inside getent passwd onym >/dev/null || fail "there is no user onym"
inside getent group onym >/dev/null || fail "there is no group onym"
inside onym check-config /etc/onym/onym.toml || fail "the configuration of the package is wrong"
[ -L "$root/etc/systemd/system/multi-user.target.wants/onym.service" ] || fail "the unit is not enabled"
for file in lib/systemd/system/onym.socket usr/share/man/man1/onym.1.gz usr/share/bash-completion/completions/onym usr/share/zsh/vendor-completions/_onym usr/share/fish/vendor_completions.d/onym.fish usr/share/doc/onym/copyright; do
  [ -s "$root/$file" ] || fail "$file is missing"
done

# The daemon as the unit starts it, its user and its folder, without a service manager.
start() {
  mkdir -p "$root/run/nfd"
  inside chown onym:onym /run/nfd
  unshare --net sh -c 'ip link set lo up && exec "$@"' sh chroot --userspec onym:onym "$root" /usr/bin/onym daemon --config /etc/onym/onym.toml 2>"$work/said" &
  daemon=$!
  for _ in $(seq 300); do
    grep -q '^ready' "$work/said" && return
    kill -0 $daemon 2>/dev/null || break
    sleep 0.1
  done
  cat "$work/said" >&2
  fail "the daemon does not start"
}
stop() {
  kill "$daemon"
  wait "$daemon" 2>/dev/null || true
  daemon=
}
start
[ "$(inside onym strategy list --format nfdc | grep -c -e 'prefix=/ndn/broadcast .*/multicast/' -e 'prefix=/localhost .*/multicast/' -e 'prefix=/localhost/nfd .*/best-route/')" = 3 ] || fail "the strategies are not those of NFD"
printf 'hello\n' >"$root/tmp/hello"
chroot "$root" /usr/bin/env -i PATH=/usr/bin HOME=/root onym put /example/hello /tmp/hello >"$work/put" 2>&1 &
put=$!
for _ in $(seq 300); do grep -q ready "$work/put" && break; sleep 0.1; done
[ "$(inside onym get /example/hello)" = hello ] || fail "what was put is not got"
inside setpriv --reuid 65534 --clear-groups onym cs erase / >/dev/null 2>"$work/refused" && fail "a stranger emptied the cache"
grep -q 'group' "$work/refused" || fail "the refusal does not name the group: $(cat "$work/refused")"
kill $put; wait $put 2>/dev/null || true
# What an upgrade does to a node that runs: what was changed by hand is there again.
inside onym face create udp4://127.0.0.1:7000 >/dev/null
inside onym route add /by-hand --via udp4://127.0.0.1:7000 --cost 7 >/dev/null
inside onym strategy set /by-hand multicast >/dev/null
by_hand() { inside onym route list --format nfdc | grep -c 'prefix=/by-hand .*origin=static cost=7 '; inside onym strategy list --format nfdc | grep -c 'prefix=/by-hand .*/multicast/'; }
[ "$(by_hand | tr -d '\n')" = 11 ] || fail "what was changed by hand is not there"
printf '#!/bin/sh\ntouch /tmp/stopped\nuntil [ -e /tmp/started ]; do sleep 0.1; done\n' >"$root/tmp/again"
chmod +x "$root/tmp/again"
inside /usr/lib/onym/restart /tmp/again >"$work/said" 2>&1 &
restarts=$!
for _ in $(seq 300); do [ ! -e "$root/tmp/stopped" ] || break; sleep 0.1; done
stop
start
[ "$(by_hand | tr -d '\n')" = 00 ] || fail "the node was not started anew"
touch "$root/tmp/started"
wait $restarts || fail "the node is not started anew: $(cat "$work/said")"
[ "$(by_hand | tr -d '\n')" = 11 ] || fail "what was changed by hand is lost: $(cat "$work/said")"
rm "$root/tmp/again" "$root/tmp/stopped" "$root/tmp/started"
stop

# An upgrade keeps what was changed, and what a site added.
printf '\n[cs]\npackets_max = 1234\n' >>"$root/etc/onym/onym.toml"
printf 'shards = 1\n' >"$root/etc/onym/onym.toml.d/10-site.toml"
mkdir -p "$root/var/lib/onym"
echo kept >"$root/var/lib/onym/state"
cat >"$root/etc/apt/apt.conf.d/99test" <<'END'
APT::Get::Assume-Yes "true";
APT::Sandbox::User "root";
Dpkg::Use-Pty "0";
Dpkg::Options:: "--force-confold";
END
inside apt-get install /tmp/onym.deb >"$work/said" 2>&1 || fail "the upgrade fails: $(cat "$work/said")"
rm "$root/etc/apt/apt.conf.d/99test"
[ "$(inside dpkg-query -W -f '${Version}' onym)" != 0.0.9 ] || fail "the version is the old one"
inside onym daemon --config /etc/onym/onym.toml --print-config | grep 'packets_max = 1234' >/dev/null || fail "the upgrade lost a changed key"
inside onym daemon --config /etc/onym/onym.toml --print-config | grep '^shards = 1$' >/dev/null || fail "the upgrade lost a drop-in"
[ "$(cat "$root/var/lib/onym/state")" = kept ] || fail "the upgrade lost state"
start
stop

# One version back; further back is refused with a sentence, and nothing is changed.
cp "$work/0.2.0.deb" "$work/0.3.0.deb" "$root/tmp/"
inside dpkg --force-confold --install /tmp/0.2.0.deb >/dev/null || fail "the next version does not install"
inside dpkg --force-confold --install /tmp/onym.deb >/dev/null 2>&1 || fail "there is no way back from the next version"
inside onym daemon --config /etc/onym/onym.toml --print-config | grep 'packets_max = 1234' >/dev/null || fail "going back lost a changed key"
inside dpkg --force-confold --install /tmp/0.3.0.deb >/dev/null || fail "a later version does not install"
inside dpkg --force-confold --install /tmp/onym.deb >/dev/null 2>"$work/said" && fail "two versions back in one step"
grep -q 'next: install the version before 0.3.0' "$work/said" || fail "no next step: $(cat "$work/said")"
[ "$(inside dpkg-query -W -f '${Version} ${db:Status-Status}' onym)" = "0.3.0 installed" ] || fail "a refused package changed something"
inside dpkg --force-confold --install /tmp/0.2.0.deb >/dev/null 2>&1 || fail "there is no way back by one step"
inside dpkg --force-confold --install /tmp/onym.deb >/dev/null 2>&1 || fail "there is no way back by a second step"
[ "$(cat "$root/var/lib/onym/state")" = kept ] || fail "going back lost state"
start
stop

# The repository's unit without a service manager: its user, its folder, its configuration.
start
mkdir -p "$root/var/lib/onym-repo"
inside chown onym:onym /var/lib/onym-repo
. packaging/debian/onym-repo.default
chroot --userspec onym:onym "$root" /usr/bin/env HOME=/var/lib/onym-repo /usr/bin/onym repo run \
  --store /var/lib/onym-repo --name "$NAME" $OPTIONS >"$work/repo" 2>&1 &
repo=$!
for _ in $(seq 300); do grep -q '^ready' "$work/repo" && break; sleep 0.1; done
inside onym repo add /etc/onym/onym.toml --store /var/lib/onym-repo --as /kept/conf >/dev/null || fail "the repository takes no file: $(cat "$work/repo")"
inside onym get /kept/conf | cmp - "$root/etc/onym/onym.toml" || fail "what the repository keeps is not got"
kill $repo; wait $repo 2>/dev/null || true
stop

inside dpkg --remove onym >/dev/null
[ -e "$root/etc/onym/onym.toml" ] || fail "removing took the configuration away"
inside dpkg --purge onym >/dev/null
rm -f "$root/tmp/hello" "$root"/tmp/*.deb
rm -rf "$root/run/nfd"
listing >"$work/after"
# The shadow files of users have copies of the tools that keep them.
diff <(grep -v -e '^etc/.*-$' -e '^etc/.*\.lock$' "$work/before") <(grep -v -e '^etc/.*-$' -e '^etc/.*\.lock$' "$work/after") || fail "purging left something"
inside getent passwd onym >/dev/null && fail "purging left the user"

if command -v systemd-analyze >/dev/null; then
  for unit in onym onym-manager onym-repo; do
    score=$(systemd-analyze security --offline=true --no-pager "packaging/debian/$unit.service" 2>/dev/null | tail -1)
    echo "$unit.service: ${score#*→ }"
  done
  systemd-analyze security --offline=true --threshold=30 packaging/debian/onym*.service >/dev/null 2>&1 || fail "a unit is exposed by more than 3.0"
fi
echo "packages: installed, used, upgraded, removed, purged"
