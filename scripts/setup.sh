#!/usr/bin/env bash
# Installs what is missing on a Debian 12 machine: scripts/setup.sh GROUP...
# Groups: base (compiler, Rust, namespaces), test (valgrind, Python and Node.js for the foreign clients),
# kernel (headers and QEMU for nnet.ko; Debian kernels; PyYAML for kernel/tools/nlgen.py),
# kernel-debug (source and tools for a debug kernel, sparse), docs (mdBook, by cargo).
# Nothing is done for what is already there. Without root it uses sudo when that asks no password;
# else it names what is missing and goes on, and what needs it is skipped by name.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

say() { printf 'setup: %s\n' "$*" >&2; }

declare -A commands=(
  [base]="gcc:gcc make:make curl:curl git:git ip:iproute2 unshare:util-linux"
  [test]="valgrind:valgrind python3:python3 node:nodejs npm:npm openssl:openssl socat:socat chromium:chromium etcd:etcd-server tcpdump:tcpdump tshark:tshark mmdebstrap:mmdebstrap rpmbuild:rpm softhsm2-util:softhsm2 iptables:iptables swtpm:swtpm tpm2-abrmd:tpm2-abrmd tpm2_ptool:libtpm2-pkcs11-tools dbus-run-session:dbus-daemon dbus-send:dbus-bin mosquitto_pub:mosquitto-clients ffmpeg:ffmpeg aria2c:aria2"
  [kernel]="qemu-system-x86_64:qemu-system-x86 cpio:cpio xz:xz-utils strip:binutils python3:python3"
  [kernel-debug]="flex:flex bison:bison bc:bc perl:perl sparse:sparse"
)
declare -A files=(
  [base]="/etc/ssl/certs/ca-certificates.crt:ca-certificates /usr/include/stdio.h:libc6-dev"
  [test]="/usr/lib/x86_64-linux-gnu/pkcs11/libtpm2_pkcs11.so:libtpm2-pkcs11-1 /usr/lib/x86_64-linux-gnu/libtss2-tcti-tabrmd.so.0:libtss2-tcti-tabrmd0 /usr/lib/x86_64-linux-gnu/libtss2-tcti-swtpm.so.0:libtss2-tcti-swtpm0"
  [kernel]="/bin/busybox:busybox-static"
  [kernel-debug]="/usr/src/linux-source-6.1.tar.xz:linux-source-6.1 /usr/include/libelf.h:libelf-dev /usr/include/openssl/ssl.h:libssl-dev"
)

# A user may have no use for an engine: its stage is then skipped. CI has one.
[ "${CI:-}" = true ] && commands[test]+=" dockerd:docker.io docker-compose:docker-compose"

missing=()
for group in "$@"; do
  [ "$group" != docs ] || continue
  for pair in ${commands[$group]}; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
  done
  for pair in ${files[$group]}; do
    [ -e "${pair%%:*}" ] || missing+=("${pair##*:}")
  done
  # Headers carry the version in their path.
  if [ "$group" = kernel ] && ! ls -d /usr/src/linux-headers-6.1.*-amd64 >/dev/null 2>&1; then
    missing+=(linux-headers-cloud-amd64)
  fi
  if [ "$group" = kernel ] && ! python3 -c 'import yaml' >/dev/null 2>&1; then
    missing+=(python3-yaml)
  fi
  if [ "$group" = test ] && ! compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; then
    missing+=(libfaketime)
  fi
  # venv may be packaged apart from python3.
  if [ "$group" = test ] && ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    missing+=(python3-venv)
  fi
done

if [ ${#missing[@]} -gt 0 ]; then
  run=()
  if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then run=(sudo -n); else run=(false); fi
  fi
  if [ "${run[0]:-}" = false ] || ! command -v apt-get >/dev/null; then
    say "missing: ${missing[*]}"
    say "install them as root: apt-get install -y --no-install-recommends ${missing[*]}"
    [ "${CI:-}" = true ] && exit 1
  else
    say "installing ${missing[*]}"
    "${run[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends \
      "${missing[@]}" </dev/null >/dev/null
  fi
fi

if ! command -v cargo >/dev/null 2>&1; then
  say "installing Rust for this user (rustup, minimal profile)"
  curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/rustup-init.sh | sh -s -- -y -q --profile minimal >&2
fi
# The compiler of rust-toolchain.toml, where rustup does not bring it by itself.
channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
if command -v rustup >/dev/null 2>&1 && ! rustup run "$channel" rustc --version >/dev/null 2>&1; then
  say "installing Rust $channel"
  rustup toolchain install "$channel" --profile minimal --component clippy --component rustfmt >&2
fi
if [[ " $* " == *" docs "* ]] && ! PATH="$PWD/target/tools/bin:$PATH" command -v mdbook >/dev/null 2>&1; then
  # Without the parts that serve and watch: half of its dependencies.
  say "building mdBook into target/tools (minutes, once)"
  cargo install --quiet --locked --root target/tools --no-default-features --features search mdbook ||
    { say "mdBook cannot be built; the manual is readable as it is: docs/manual/src/README.md"; exit 1; }
fi
# promtool alone: its package has a server beside it, which would be started.
if [[ " $* " == *" test "* ]] && [ "${CI:-}" = true ] && ! command -v promtool >/dev/null 2>&1; then
  say "installing promtool"
  unpacked=$(mktemp -d)
  (cd "$unpacked" && apt-get download -qq prometheus && dpkg-deb -x ./prometheus_*.deb . &&
    install -m 755 usr/bin/promtool /usr/local/bin/promtool) </dev/null >/dev/null 2>&1 ||
    say "promtool cannot be had: the alert rules are not checked by it"
  rm -rf "$unpacked"
fi
if [[ " $* " == *" test "* ]]; then
  for part in rustfmt clippy; do
    cargo "${part/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$part" >&2
  done
fi
