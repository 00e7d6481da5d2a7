//! `onym key` and `onym cert` as a person types them: results, exit codes, files.

#![allow(clippy::unwrap_used)] // helpers of tests

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `onym ARGS` in `dir` with the key store `dir/STORE`.
fn onym(dir: &Path, store: &str, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onym"))
        .args(args.split(' '))
        .current_dir(dir)
        .env("ONYM_KEYSTORE", dir.join(store))
        .env("ONYM_PASSPHRASE", "a passphrase")
        .output()
        .unwrap()
}

/// The JSON that a command which ends well prints.
fn json(dir: &Path, store: &str, args: &str) -> Value {
    let output = onym(dir, store, &format!("{args} --json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "onym {args}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn code(dir: &Path, args: &str) -> i32 {
    onym(dir, "store", args).status.code().unwrap()
}

#[test]
fn a_certificate_is_requested_issued_and_installed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    json(dir, "root", "key new /root --id 1");
    json(dir, "store", "key new /root/alice --id 1");
    json(dir, "store", "cert export /root/alice -o request.ndncert");
    let issued = json(dir, "root", "cert issue request.ndncert -o issued.ndncert --days 1");
    assert_eq!(issued["valid_now"], true);
    assert!(issued["issuer"].as_str().unwrap().starts_with("/root/KEY/1/self/"));
    json(dir, "store", "cert install issued.ndncert");
    let shown = json(dir, "store", "cert show /root/alice");
    assert_eq!(shown["name"], issued["name"], "a certificate by another is preferred");
    let text = std::fs::read_to_string(dir.join("issued.ndncert")).unwrap();
    assert!(text.lines().all(|line| line.len() <= 64) && !text.contains('-'));
}

#[test]
fn a_key_leaves_and_enters_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    json(dir, "store", "key new /alice --id 1");
    json(dir, "store", "key export -o alice.safebag");
    json(dir, "other", "key import alice.safebag");
    let keys = json(dir, "other", "key list");
    assert_eq!(keys[0]["name"], "/alice/KEY/1");
    assert_eq!(keys[0]["default"], true);
    assert_eq!(code(dir, "key export -o alice.safebag"), 1, "files are not overwritten");
}

#[test]
fn failures_have_the_exit_codes_of_the_registry() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(code(dir, "key list"), 0);
    assert_eq!(code(dir, "key default"), 5);
    assert_eq!(code(dir, "key delete /nobody"), 5);
    assert_eq!(code(dir, "key new not//a//name"), 2);
    assert_eq!(code(dir, "cert show missing.ndncert"), 5);
    assert_eq!(code(dir, "key new /alice --id 1"), 0);
    assert_eq!(code(dir, "key new /alice --id 1"), 1);
    std::fs::write(dir.join("junk"), "AAAA").unwrap();
    assert_eq!(code(dir, "cert install junk"), 1);
    assert_eq!(code(dir, "key delete /alice"), 0);
}

/// `onym ARGS` with these variables, and without a passphrase otherwise.
fn with(dir: &Path, variables: &[(&str, &Path)], args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onym"));
    command.args(args.split(' ')).current_dir(dir).env("ONYM_KEYSTORE", dir.join("store"));
    command.envs(variables.iter().copied()).stdin(std::process::Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// All files of a folder, with what is in them.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_protected_key_is_encrypted_on_disk_and_signs_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let [right, wrong] = [dir.join("right"), dir.join("wrong")];
    std::fs::write(&right, "correct horse\n").unwrap();
    std::fs::write(&wrong, "wrong donkey\n").unwrap();
    let made = with(dir, &[], "key new /alice --protect --passphrase-file right");
    assert!(made.status.success(), "{}", said(&made));
    let on_disk = contents(&dir.join("store"));
    let (_, file) =
        on_disk.iter().find(|(p, _)| p.extension().is_some_and(|e| e == "key")).unwrap();
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.contains("protection: passphrase"), "{text}");
    // Listing needs no passphrase; signing does.
    let list = with(dir, &[], "key list --json");
    assert!(said(&list).contains("\"protection\": \"passphrase\""), "{}", said(&list));
    let sign = "cert self-sign /alice";
    let closed = with(dir, &[], sign);
    assert!(!closed.status.success());
    assert!(said(&closed).contains("onym key unlock"), "{}", said(&closed));
    let refused = with(dir, &[("ONYM_KEY_PASSPHRASE_FILE", &wrong)], sign);
    assert!(said(&refused).contains("this is not its passphrase"), "{}", said(&refused));
    let opened = with(dir, &[("ONYM_KEY_PASSPHRASE_FILE", &right)], sign);
    assert!(opened.status.success(), "{}", said(&opened));
    // What was said never holds the secret.
    for output in [&made, &list, &closed, &refused, &opened] {
        assert!(!said(output).contains("correct horse") && !said(output).contains("wrong donkey"));
    }
    // The public half beside it is not believed: a changed one is found out.
    json(dir, "other", "key new /mallory --id 1");
    let mallory = onym_crypto::store::KeyStore::new(dir.join("other"));
    let name: onym_wire::Name = "/mallory/KEY/1".parse().unwrap();
    let false_half = onym_crypto::text::encode(mallory.key(name.as_ref()).unwrap().spki());
    let line = text.lines().find(|line| line.starts_with("public: ")).unwrap();
    let changed = text.replace(line, &format!("public: {}", false_half.replace('\n', "")));
    let (path, _) = on_disk.iter().find(|(_, octets)| octets == file).unwrap();
    std::fs::write(path, changed).unwrap();
    let deceived = with(dir, &[("ONYM_KEY_PASSPHRASE_FILE", &right)], sign);
    assert!(said(&deceived).contains("another key than its file says"), "{}", said(&deceived));
    std::fs::write(path, file).unwrap();
    let off = with(dir, &[("ONYM_KEY_PASSPHRASE_FILE", &right)], "key protect /alice --off");
    assert!(off.status.success(), "{}", said(&off));
    assert!(with(dir, &[], sign).status.success(), "it needs none any more");
}

#[test]
fn an_unlocked_key_is_in_the_kernels_keyring_until_it_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let right = dir.join("right");
    std::fs::write(&right, "correct horse\n").unwrap();
    // Another run of this test has another key: the keyring is the user's.
    let made = with(dir, &[], "key new /alice --protect --passphrase-file right");
    assert!(made.status.success(), "{}", said(&made));
    let sign = "cert self-sign /alice";
    assert!(!with(dir, &[], sign).status.success());
    let unlock = with(dir, &[("ONYM_KEY_PASSPHRASE_FILE", &right)], "key unlock /alice --hours 1");
    if said(&unlock).contains("the kernel's keyring:") {
        return eprintln!("skipped: this kernel has no keyring for this user: {}", said(&unlock));
    }
    assert!(unlock.status.success(), "{}", said(&unlock));
    let signed = with(dir, &[], sign);
    assert!(signed.status.success(), "{}", said(&signed));
    let lock = with(dir, &[], "key lock /alice");
    assert!(said(&lock).contains("needs its passphrase again"), "{}", said(&lock));
    assert!(!with(dir, &[], sign).status.success(), "locked");
}

#[test]
fn a_key_that_others_can_read_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    json(dir, "store", "key new /alice --id 1");
    assert!(!said(&onym(dir, "store", "key list")).contains("others reach"));
    for (path, _) in contents(&dir.join("store")) {
        if path.extension().is_some_and(|e| e == "key") {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
    // Negative 41: a key file that the world reads.
    let list = said(&onym(dir, "store", "key list"));
    assert!(list.contains("others reach") && list.contains("mode 644"), "{list}");
    assert!(list.contains("chmod 600"), "{list}");
    let doctor = said(&onym(dir, "store", "doctor"));
    assert!(doctor.contains("mode 644"), "{doctor}");
}

/// Makes a PIB and TPM as ndn-cxx does, out of keys exported by `onym`, with Python's SQLite.
const MAKE_PIB: &str = r#"
import base64, hashlib, os, sqlite3, sys
folder, locator, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(os.path.join(folder, "pib.db"))
db.execute("PRAGMA page_size = 512")
db.executescript("""
CREATE TABLE tpmInfo(tpm_locator BLOB);
CREATE TABLE identities(id INTEGER PRIMARY KEY, identity BLOB NOT NULL, is_default INTEGER DEFAULT 0);
CREATE UNIQUE INDEX identityIndex ON identities(identity);
CREATE TABLE keys(id INTEGER PRIMARY KEY, identity_id INTEGER NOT NULL, key_name BLOB NOT NULL, key_bits BLOB NOT NULL, is_default INTEGER DEFAULT 0, FOREIGN KEY(identity_id) REFERENCES identities(id) ON DELETE CASCADE);
CREATE UNIQUE INDEX keyIndex ON keys(key_name);
CREATE TABLE certificates(id INTEGER PRIMARY KEY, key_id INTEGER NOT NULL, certificate_name BLOB NOT NULL, certificate_data BLOB NOT NULL, is_default INTEGER DEFAULT 0, FOREIGN KEY(key_id) REFERENCES keys(id) ON DELETE CASCADE);
CREATE UNIQUE INDEX certIndex ON certificates(certificate_name);
""")
db.execute("INSERT INTO tpmInfo VALUES(?)", (locator.encode(),))
def tlv(t, v):
    return bytes([t]) + (bytes([len(v)]) if len(v) < 253 else b"\xfd" + len(v).to_bytes(2, "big")) + v
def name(*parts):
    return tlv(7, b"".join(tlv(8, p) for p in parts))
tpm = os.path.join(folder, "ndnsec-key-file")
os.makedirs(tpm)
for i in range(count):
    who = b"user%d" % i
    cert = base64.b64decode(open(os.path.join(folder, "user%d.ndncert" % i)).read())
    db.execute("INSERT INTO identities(identity, is_default) VALUES(?, ?)", (name(who), i == 1))
    key = name(who, b"KEY", b"1")
    db.execute("INSERT INTO keys(identity_id, key_name, key_bits, is_default) VALUES(?,?,?,1)", (i + 1, key, b"bits"))
    # The name of the certificate is the first element of the Data.
    body = cert[4:] if cert[1] == 253 else cert[2:]
    length = body[1]
    db.execute("INSERT INTO certificates(key_id, certificate_name, certificate_data, is_default) VALUES(?,?,?,1)", (i + 1, body[:2 + length], cert))
    secret = open(os.path.join(folder, "user%d.tpm" % i)).read()
    path = os.path.join(tpm, hashlib.sha256(key).hexdigest() + ".privkey")
    open(path, "w").write(secret)
    os.chmod(path, 0o400)
    os.remove(os.path.join(folder, "user%d.tpm" % i))
db.commit()
"#;

#[test]
fn a_pib_and_tpm_of_others_are_read_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no python3 to make a PIB");
    }
    // More than one page of each table, and rows that are longer than a page holds.
    const COUNT: usize = 10;
    let ndn = dir.join("ndn");
    std::fs::create_dir(&ndn).unwrap();
    for i in 0..COUNT {
        let kind = if i == 7 { " --type rsa" } else { "" };
        json(dir, "theirs", &format!("key new /user{i} --id 1{kind}"));
        json(dir, "theirs", &format!("cert export /user{i} -o ndn/user{i}.ndncert"));
        json(dir, "theirs", &format!("key export /user{i} --as tpm -o ndn/user{i}.tpm"));
    }
    // Negative 41: python-ndn writes a path there, for which ndn-cxx wipes the store.
    let locator = format!("tpm-file:{}", ndn.join("ndnsec-key-file").display());
    let made = Command::new("python3")
        .args(["-c", MAKE_PIB, ndn.to_str().unwrap(), &locator, &COUNT.to_string()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(ndn.join("client.conf"), "transport=unix:///run/nfd.sock\n").unwrap();
    let before = contents(&ndn);
    let imported = json(dir, "store", "key import ndn");
    assert_eq!(imported["keys"].as_array().unwrap().len(), COUNT, "{imported}");
    assert_eq!(imported["certificates"].as_array().unwrap().len(), COUNT);
    assert_eq!(imported["left"].as_array().unwrap().len(), 0, "{imported}");
    assert_eq!(contents(&ndn), before, "nothing is changed, nothing is wiped");
    assert_eq!(json(dir, "store", "key default")["name"], "/user1/KEY/1");
    // They sign as they did.
    let (ours, theirs) = ("cert show /user7", json(dir, "theirs", "cert show /user7"));
    assert_eq!(json(dir, "store", ours)["key_digest"], theirs["key_digest"]);
    json(dir, "store", "cert self-sign /user7");
    let again = json(dir, "store", "key import ndn");
    assert_eq!(again["left"].as_array().unwrap().len(), COUNT, "they are there: {again}");
    // A PIB that is damaged anywhere is an error and no panic; the key store stays.
    let octets = std::fs::read(ndn.join("pib.db")).unwrap();
    for at in (0..octets.len()).step_by(octets.len() / 24) {
        let mut changed = octets.clone();
        changed[at] ^= 0x55;
        std::fs::write(ndn.join("pib.db"), &changed).unwrap();
        let output = onym(dir, "damaged", "key import ndn");
        assert!(output.status.code().is_some_and(|code| code < 6), "{at}: {}", said(&output));
    }
}

#[test]
fn a_folder_of_ndnd_is_read_and_nothing_in_it_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ndnd = dir.join("ndnd");
    std::fs::create_dir(&ndnd).unwrap();
    for (who, kind) in [("alice", "ecdsa"), ("bob", "ed25519"), ("rita", "rsa")] {
        json(dir, "theirs", &format!("key new /{who} --id 1 --type {kind}"));
        json(dir, "theirs", &format!("key export /{who} --as ndnd -o ndnd/{who}.key"));
    }
    // Negative 41: foreign files in the folder.
    std::fs::write(ndnd.join("notes.txt"), "do not delete me").unwrap();
    std::fs::write(ndnd.join("odd.key"), "no key").unwrap();
    std::fs::create_dir(ndnd.join("sub.key")).unwrap();
    let before = contents(&ndnd);
    let imported = json(dir, "store", "key import ndnd");
    assert_eq!(imported["keys"].as_array().unwrap().len(), 3, "{imported}");
    assert_eq!(imported["certificates"].as_array().unwrap().len(), 3, "{imported}");
    assert_eq!(imported["left"].as_array().unwrap().len(), 1, "{imported}");
    assert!(imported["left"][0].as_str().unwrap().contains("odd.key"), "{imported}");
    assert_eq!(contents(&ndnd), before);
    std::fs::create_dir(dir.join("empty")).unwrap();
    assert_eq!(code(dir, "key import empty"), 5);
}

#[test]
fn what_is_exported_is_what_openssl_and_ndnd_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for kind in ["ecdsa", "ed25519", "rsa"] {
        json(dir, "store", &format!("key new /{kind} --id 1 --type {kind}"));
        json(dir, "store", &format!("key export /{kind} --as pem -o {kind}.pem"));
        json(dir, "store", &format!("key export /{kind} --as tpm -o {kind}.tpm"));
        let digest = json(dir, "store", &format!("cert show /{kind}"))["key_digest"].clone();
        let openssl = |args: &str| {
            let output = Command::new("openssl").args(args.split(' ')).current_dir(dir).output();
            output.ok().map(|output| {
                assert!(output.status.success(), "{args}: {}", said(&output));
                output.stdout
            })
        };
        let Some(spki) = openssl(&format!("pkey -in {kind}.pem -pubout -outform DER")) else {
            return eprintln!("skipped: there is no openssl");
        };
        let spki_digest: String =
            onym_crypto::sha256(&[&spki]).iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(digest, spki_digest.as_str(), "{kind}");
        // The traditional forms, which ndn-cxx's TPM has.
        let text = std::fs::read_to_string(dir.join(format!("{kind}.tpm"))).unwrap();
        let der = onym_crypto::text::decode(&text).unwrap();
        std::fs::write(dir.join("key.der"), der).unwrap();
        let read = openssl("pkey -inform DER -in key.der -pubout -outform DER").unwrap();
        assert_eq!(read, spki, "{kind}");
    }
    // The program of ndnd lists what was written for it, where it is on PATH.
    std::fs::create_dir(dir.join("ndnd")).unwrap();
    for kind in ["ecdsa", "ed25519", "rsa"] {
        json(dir, "store", &format!("key export /{kind} --as ndnd -o ndnd/{kind}.key"));
    }
    let list = Command::new("ndnd")
        .args(["sec", "key-list", &format!("dir://{}", dir.join("ndnd").display())])
        .output();
    match list {
        Err(_) => eprintln!("skipped: ndnd is not on PATH"),
        Ok(list) => {
            for kind in ["ecdsa", "ed25519", "rsa"] {
                assert!(said(&list).contains(&format!("/{kind}/KEY/1")), "{}", said(&list));
            }
        }
    }
}

#[test]
fn a_key_of_a_token_signs_and_cannot_be_exported() {
    const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
    if !Path::new(MODULE).exists() {
        return eprintln!("skipped: {MODULE} is not there (Debian: softhsm2)");
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (conf, pin, wrong) = (dir.join("softhsm2.conf"), dir.join("pin"), dir.join("wrong"));
    std::fs::create_dir(dir.join("tokens")).unwrap();
    let tokens = dir.join("tokens");
    std::fs::write(&conf, format!("directories.tokendir = {}\n", tokens.display())).unwrap();
    std::fs::write(&pin, "123456\n").unwrap();
    std::fs::write(&wrong, "654321\n").unwrap();
    let init = "--init-token --free --label desk --so-pin 0000 --pin 123456";
    let mut made = Command::new("softhsm2-util");
    made.args(init.split(' ')).env("SOFTHSM2_CONF", &conf);
    assert!(made.output().unwrap().status.success());
    let by = |pin: &Path, args: &str| {
        with(dir, &[("SOFTHSM2_CONF", &conf), ("ONYM_TOKEN_PIN_FILE", pin)], args)
    };
    let new = format!("key new /alice --id 1 --token desk --module {MODULE}");
    let refused = by(&wrong, &new);
    assert!(said(&refused).contains("does not take the PIN"), "{}", said(&refused));
    let made = by(&pin, &new);
    assert!(made.status.success(), "{}", said(&made));
    let list = said(&by(&pin, "key list --json"));
    assert!(list.contains("\"protection\": \"token\""), "{list}");
    let signed = by(&pin, "cert self-sign /alice --days 3");
    assert!(signed.status.success(), "{}", said(&signed));
    std::fs::write(dir.join("file"), "content").unwrap();
    for form in ["safebag", "pem", "ndnd", "tpm"] {
        let out = by(&pin, &format!("key export /alice --as {form} --passphrase-file pin"));
        assert!(!out.status.success() && said(&out).contains("does not leave"), "{}", said(&out));
    }
    // What is on disk says where the key is, and is of no use without the token.
    let on_disk = contents(&dir.join("store"));
    assert!(!on_disk.iter().any(|(_, octets)| String::from_utf8_lossy(octets).contains("123456")));
    let elsewhere = with(dir, &[("ONYM_TOKEN_PIN_FILE", &pin)], "cert self-sign /alice");
    assert!(!elsewhere.status.success(), "{}", said(&elsewhere));
    for output in [&refused, &made, &signed] {
        assert!(!said(output).contains("123456") && !said(output).contains("654321"));
    }
}
