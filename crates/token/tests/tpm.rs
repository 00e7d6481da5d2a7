//! A key in a TPM 2.0, by the same door: swtpm, the resource manager, and tpm2-pkcs11 of Debian.
//! Skipped where one of them is not installed.

#![allow(clippy::unwrap_used)]

use onym_crypto::PublicKey;
use onym_token::{Place, generate, open};
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/libtpm2_pkcs11.so";
const PROGRAMS: [&str; 4] = ["swtpm", "tpm2-abrmd", "tpm2_ptool", "dbus-run-session"];

/// Runs a TPM at the ports `$1` and the one after, makes a token in it, and then runs the test again.
const SCRIPT: &str = r#"
set -eu
mkdir state store
swtpm socket --tpm2 --tpmstate dir=state --server "type=tcp,port=$1,bindaddr=127.0.0.1" \
  --ctrl "type=tcp,port=$(($1 + 1)),bindaddr=127.0.0.1" --flags not-need-init,startup-clear &
tpm=$!
manager=
trap 'kill $tpm $manager' EXIT
for try in $(seq 100); do (: < "/dev/tcp/127.0.0.1/$(($1 + 1))") 2>/dev/null && break; done
tpm2-abrmd --session --allow-root --flush-all --tcti "swtpm:host=127.0.0.1,port=$1" &
manager=$!
for try in $(seq 200); do
  dbus-send --session --dest=org.freedesktop.DBus --print-reply /org/freedesktop/DBus \
    org.freedesktop.DBus.NameHasOwner string:com.intel.tss2.Tabrmd 2>/dev/null | grep -q true && break
done
export TPM2_PKCS11_STORE=$PWD/store TPM2_PKCS11_TCTI=tabrmd:bus_type=session
export TPM2TOOLS_TCTI=tabrmd:bus_type=session
tpm2_ptool init --path store
tpm2_ptool addtoken --pid 1 --label onym --sopin 0000 --userpin 1234 --path store
ONYM_TEST_TPM=1 "$2" --nocapture
"#;

#[test]
fn a_key_of_a_tpm_signs_by_the_same_door() {
    if std::env::var_os("ONYM_TEST_TPM").is_some() {
        return in_tpm();
    }
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).exists())
    };
    if let Some(absent) = PROGRAMS.into_iter().find(|program| !is_there(program)) {
        return eprintln!("skipped: {absent} is not on PATH");
    }
    if !Path::new(MODULE).exists() {
        return eprintln!("skipped: {MODULE} is not there (Debian: libtpm2-pkcs11-1)");
    }
    let dir = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The control port is the next one.
    let port = port & !1;
    let run = Command::new("dbus-run-session")
        .args(["--", "bash", "-c", SCRIPT, "tpm", &port.to_string()])
        .arg(std::env::current_exe().unwrap())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    assert!(run.status.success(), "{}{}", said(&run.stdout), said(&run.stderr));
    assert!(said(&run.stdout).contains("1 passed"), "{}", said(&run.stdout));
}

fn in_tpm() {
    let place = Place { module: PathBuf::from(MODULE), token: "onym".into(), object: vec![1, 2] };
    let spki = generate(&place, "1234").unwrap();
    let public = PublicKey::from_spki(&spki).unwrap();
    let key = open(&place, "1234", &spki).unwrap();
    for round in 0..3_u8 {
        let mut signature = Vec::new();
        key.sign(&[&[round]], &mut signature).unwrap();
        public.verify(3, &[&[round]], &signature).unwrap();
    }
    assert!(key.to_pkcs8().is_err());
}
