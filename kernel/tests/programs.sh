# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Sourced, with `here` and `target` set: builds what guests run beside nnet-test,
# gathers the packet scripts and the Python module, and exports EXTRA and DATA for vm.sh.
# ONYM: a binary to take instead. Without a release build the programs are those of the dev profile.
root=$here/../..
profile=dev built=debug
[ ! -x "$root/target/release/onym" ] || profile=release built=release
onym=${ONYM:-$root/target/$built/onym}
wanted="--bin onym-testkit"
[ -n "${ONYM:-}" ] || wanted="$wanted --bin onym"
build() { cargo build --quiet --locked --profile $profile --manifest-path "$root/Cargo.toml" "$@"; }
# Of the whole workspace, as a release is: packages by themselves have other features, and most
# of the workspace would be compiled and linked once more. Without examples, for the same reason.
# shellcheck disable=SC2086
build --workspace $wanted
# An example that makes every call of the Rust crate.
build --workspace --example calls
EXTRA="$onym $root/target/$built/onym-testkit $root/target/$built/examples/calls"
DATA=$target/guest-data
rm -rf "$DATA" && mkdir -p "$DATA/python"
cp -r "$root/spec/conformance/pull" "$here/deviations" "$DATA/"
cp -r "$root/clients/python/onym" "$DATA/python/"
"$here/guest-python.sh" "$DATA/py"
[ ! -x "$DATA/py/bin/python3" ] || EXTRA="$DATA/py/bin/python3 $EXTRA"
for tc in /sbin/tc /usr/sbin/tc; do [ -x $tc ] && EXTRA="$tc $EXTRA" && break; done
export EXTRA DATA
