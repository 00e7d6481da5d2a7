#!/bin/bash
# In the virtual machine, by its systemd: what tests/packages/vm.sh looks at.
set -uo pipefail
export HOME=/root
say() { echo "onym-vm: $*"; }
fail() {
  say "FAILED: $*"
  systemctl --no-pager status onym onym-repo onym-manager 2>&1 | tail -40
  journalctl --no-pager -u onym -u onym-repo -u onym-manager 2>/dev/null | tail -40
  exit 1
}
wait_for() { # WHAT COMMAND…
  local what=$1
  shift
  for _ in $(seq 600); do "$@" && return; sleep 0.2; done
  fail "$what"
}
pid() { systemctl show --property MainPID --value "$1"; }
active() { [ "$(systemctl is-active "$1")" = active ]; }

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
dpkg --install /root/onym.deb >/tmp/said 2>&1 || fail "the package does not install: $(cat /tmp/said)"
active onym || fail "the node is not active after installation"
say "installed; the node is ready"
systemctl enable --quiet --now onym-repo onym-manager || fail "repository or manager do not start"
for unit in onym onym-repo onym-manager; do
  [ "$(systemctl show --property Type --value $unit)" = notify ] || fail "$unit is not Type=notify"
  active $unit || fail "$unit is not active"
  [ "$(stat -c %U "/proc/$(pid $unit)")" = onym ] || fail "$unit does not run as onym"
done
say "node, repository and manager are ready, as the user onym"
echo hello >/tmp/hello
onym repo add /tmp/hello --store /var/lib/onym-repo --as /kept/hello >/dev/null || fail "the repository takes nothing"
[ "$(onym get /kept/hello)" = hello ] || fail "what the repository keeps is not got"
onym net show >/dev/null || fail "the manager does not answer"
systemctl reload onym || fail "the node does not reload"
before=$(pid onym)
kill -KILL "$before"
again() { active onym && [ "$(pid onym)" != "$before" ] && [ "$(pid onym)" != 0 ]; }
wait_for "a killed node is not started anew" again
say "a killed node was started anew"
before=$(pid onym)
kill -STOP "$before"
wait_for "a node that hangs is not started anew" again
say "a node that hung was started anew by the watchdog"
got() { [ "$(onym get /kept/hello 2>/dev/null)" = hello ]; }
wait_for "the repository is not found again after its node" got
onym face create udp4://127.0.0.1:7000 >/dev/null && onym route add /by-hand --via udp4://127.0.0.1:7000 >/dev/null || fail "no route by hand"
before=$(pid onym)
dpkg --install /root/onym.deb >/tmp/said 2>&1 || fail "the package does not upgrade: $(cat /tmp/said)"
again || fail "the upgrade did not start the node anew"
onym route list --format nfdc | grep 'prefix=/by-hand ' >/dev/null || fail "the upgrade lost a route: $(cat /tmp/said)"
wait_for "the upgrade lost a stored object" got
say "upgraded: no route and no object is lost"
systemctl stop onym-manager onym-repo onym || fail "the units do not stop"
systemctl start onym.socket || fail "its socket does not start"
! active onym || fail "the node runs before anybody comes"
onym status >/dev/null || fail "who comes first is not answered"
active onym || fail "the node was not started by its socket"
say "a node was started by who came first"
for unit in onym onym-repo onym-manager; do
  say "$(systemd-analyze security --no-pager $unit 2>/dev/null | tail -1 | sed 's/[^[:print:]]//g')"
done
dpkg --purge onym >/dev/null 2>&1 || fail "the package is not purged"
! grep -lsx onym /proc/[0-9]*/comm >/dev/null || fail "a process goes on after purging"
[ ! -e /var/lib/onym-repo ] && [ ! -e /etc/onym ] && ! getent passwd onym >/dev/null || fail "purging left something"
say "purged"
say "passed"
