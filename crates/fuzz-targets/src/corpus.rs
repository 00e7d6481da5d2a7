//! The inputs in `fuzz/corpus`: kept in the tree, replayed by the tests, and made from the vectors.
//! The conformance scripts are inputs too, from where they are.

use crate::mutate::digest;
use onym_sync::psync::Form;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest input that is kept in the tree, in octets.
const KEPT_LEN_MAX: usize = 16 << 10;

/// A folder of the repository.
fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// The folder of a target's inputs.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    repository("fuzz/corpus").join(target)
}

/// Where inputs go that made a target fail.
#[must_use]
pub fn failures(target: &str) -> PathBuf {
    repository("fuzz/artifacts").join(target)
}

/// The files of a folder with their octets, by name. An absent folder has none.
///
/// # Errors
/// A file cannot be read.
pub fn load(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, fs::read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

/// What `target` starts from, by name: the files of its folder, and for `pull_script` the
/// conformance scripts too.
///
/// # Errors
/// A file cannot be read.
pub fn inputs(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = load(&folder(target))?;
    if target == "pull_script" {
        found.append(&mut load(&repository("spec/conformance/pull"))?);
    }
    Ok(found)
}

/// Writes `octets` into `folder` under a name made of them; returns the path.
///
/// # Errors
/// The file cannot be written.
pub fn store(folder: &Path, kind: &str, octets: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{kind}-{:016x}", digest(octets)));
    fs::write(&path, octets)?;
    Ok(path)
}

/// Inputs for `target` that follow from the vectors and the conformance scripts.
///
/// # Errors
/// A file of the specification cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let vectors = vectors()?;
    let mut seeds = match target {
        "decode" => vectors,
        "dissect" => vectors.iter().enumerate().map(|(n, v)| capture(n, v)).collect(),
        "names" => names(),
        "reassembly" => vectors.iter().map(|v| reassembly(v)).chain([sent_both_ways()]).collect(),
        "pull_script" => choices(),
        "management" => vectors.iter().map(|v| delivered(v)).chain(commands()).collect(),
        "trust_model" => octets_in("spec/vectors/trust/lvs-cases.json")?,
        "trust_text" => trust_texts()?,
        "sync" => sync_states(),
        "route" => routing(),
        "ndncert" => issuance()?,
        "keys" => key_files()?,
        _ => Vec::new(),
    };
    seeds.retain(|seed| !seed.is_empty() && seed.len() <= KEPT_LEN_MAX);
    Ok(seeds)
}

/// The packets of `spec/vectors/ndn.json`.
fn vectors() -> io::Result<Vec<Vec<u8>>> {
    octets_in("spec/vectors/ndn.json")
}

/// Vectors of both versions, one with mapping data behind it; history; a table of PSync.
fn sync_states() -> Vec<Vec<u8>> {
    let mut table = onym_sync::psync::Iblt::new(10);
    table.insert(0xF6A7_7ABA);
    vec![
        b"\xc9\x17\xca\x15\x07\x08\x08\x03net\x08\x01a\xd2\x09\xd4\x04\x6b\x04\x4d\xc2\xd6\x01\x01"
            .to_vec(),
        b"\xc9\x0a\xca\x08\x07\x03\x08\x01a\xcc\x01\x03\xcd\x05\x07\x03\x08\x01a".to_vec(),
        b"\x82\x06\xd6\x01\x01\x83\x01x".to_vec(),
        b"\x84\x01\x01\x84\x01\x0b".to_vec(),
        table.encode(Form::Plain),
        table.encode(Form::Zlib),
    ]
}

/// An advertisement, a hello with what ours add, operations with networks that a prefix came through, a
/// hello by which routers find each other; then rounds of them for a border.
fn routing() -> Vec<Vec<u8>> {
    let advertisement =
        b"\xca\x1e\xcc\x0a\x07\x08\x08\x03net\x08\x01a\xce\x0a\x07\x08\x08\x03net\x08\x01a\
        \xd0\x01\x00\xd2\x01\x10";
    let hello =
        b"\xc9\x17\xca\x15\x07\x08\x08\x03net\x08\x01p\xd2\x09\xd4\x04\x6b\x04\x4d\xc2\xd6\x01\x02\
        \xfd\xff\x08\x10\xfd\xff\x0a\x01\x01\xfd\xff\x0c\x07\x07\x05\x08\x03abc";
    let operations =
        b"\xcc\x0a\x07\x08\x08\x03net\x08\x01p\xfd\x01\x2e\x00\xfd\x01\x30\x18\x07\x03\x08\x01n\
        \xd0\x01\x00\xfd\xff\x12\x0c\x07\x05\x08\x03net\x07\x03\x08\x01n";
    let removal = b"\xcc\x0a\x07\x08\x08\x03net\x08\x01p\xfd\x01\x32\x05\x07\x03\x08\x01n";
    let greeting = b"\xfd\xff\x12\x15udp4://192.0.2.1:6363\xfd\xff\x14\x02\x13\x88";
    let contents: [&[u8]; 5] = [advertisement, hello, operations, removal, greeting];
    let rounds = (0..contents.len()).map(|first| {
        let mut choices = Vec::new();
        for step in 0..6usize {
            let content = contents[(first + step) % contents.len()];
            let kind = u8::try_from((first + step) % 4).unwrap_or(0);
            let len = u16::try_from(content.len()).unwrap_or(0).to_be_bytes();
            choices.extend_from_slice(&[0, 100, kind]);
            choices.extend_from_slice(&len);
            choices.extend_from_slice(content);
        }
        choices
    });
    contents.iter().map(|content| content.to_vec()).chain(rounds).collect()
}

/// Texts that `trust_text` reads, behind the octet that says as what.
fn trust_texts() -> io::Result<Vec<Vec<u8>>> {
    let schemas = [
        "#root: \"a\"/#KEY #user: \"a\"/u/#KEY <= #root #data: \"a\"/u/_ <= #user #KEY: \"KEY\"/_/_/_",
        "#d: \"d\"/#V/#V <= #k #V: _v & {_v: \"1\"|\"v=2\"} #k: \"k\"",
        "#a: x/y & {y: x|$eq(\"32=b\", x), x: \"%41\"} | {x: \"\"} <= #k | #l // end\n#k: \"k\" #l: \"l\"",
    ];
    let patterns = [
        "^(<>*)<KEY><>{1,3}$",
        "^((<a>*)*)*<b>$",
        "<R(.)-(.)>[^<a><b.>]+<c>?",
        "^<localhop><nfd><rib>[<register><unregister>]<>{,3}",
    ];
    let mut configurations = Vec::new();
    for preset in ["hierarchy", "localhop"] {
        let path = repository("crates/trust/src/conf").join(format!("{preset}.conf"));
        configurations.push(fs::read_to_string(path)?);
    }
    let kinds = [(b'0', schemas.map(str::to_owned).to_vec()), (b'1', configurations)];
    let kinds = kinds.into_iter().chain([(b'2', patterns.map(str::to_owned).to_vec())]);
    let seed = |kind: u8, text: String| [&[kind], text.as_bytes()].concat();
    Ok(kinds
        .flat_map(|(kind, texts)| texts.into_iter().map(move |text| seed(kind, text)))
        .collect())
}

/// The packets of both recorded runs of certificate issuance, and what was encrypted in them.
fn issuance() -> io::Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for file in ["pin", "pin-decoded", "possession", "possession-decoded"] {
        let path = repository("spec/vectors/trust").join(format!("ndncert-{file}.txt"));
        let text = fs::read_to_string(path)?;
        let lines =
            text.lines().filter(|line| ["I ", "D ", "PLAIN "].iter().any(|w| line.starts_with(w)));
        seeds.extend(lines.filter_map(|line| line.rsplit(' ').next().and_then(unhex)));
    }
    // An answer with a text record.
    let mut answer = b"\0\0\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x01b\0\0\x10\0\x01".to_vec();
    answer.extend_from_slice(b"\xc0\x0c\0\x10\0\x01\0\0\0\x3c\0\x03\x02hi");
    seeds.push(answer);
    Ok(seeds)
}

/// Files of keys of each kind, behind the octet that says which.
fn key_files() -> io::Result<Vec<Vec<u8>>> {
    let folder = repository("spec/vectors/trust");
    let basic = fs::read_to_string(folder.join("basic.txt"))?;
    let word = |word: &str| {
        let mut words = basic.split_whitespace().skip_while(|w| *w != word).skip(1);
        words.find(|octets| octets.len() > 20).and_then(unhex).unwrap_or_default()
    };
    let flat = |octets: &[u8]| onym_crypto::text::encode(octets).replace('\n', "");
    let (pkcs8, spki) = (word("PKCS8"), word("SPKI"));
    let reading =
        onym_access::envelope::ReadingKey::from_seed(&[7; 32]).map_err(io::Error::other)?;
    let group = format!(
        "onym-group 1\nname: /a/NAC/b\nform: authenticated\nowner: /a\nkey: 5 {}\nmember: 5 {} /b/KEY/1\n",
        flat(&onym_access::card::to_pkcs8(&reading)),
        flat(&reading.public().0)
    );
    let own = |more: &str, body: &str| {
        format!("onym-key 1\nname: /a/KEY/1\ntype: ecdsa\n{more}\n{body}").into_bytes()
    };
    let public = format!("public: {}\n", flat(&spki));
    let token = format!("protection: token\n{public}module: /m.so\ntoken: t\nobject: 0102\n");
    let sealed = format!("protection: passphrase\n{public}");
    let kinds = [
        (0, basic.clone().into_bytes()),
        (0, word("NDNDKEY")),
        (1, onym_crypto::text::encode(&word("SEC1")).into_bytes()),
        (2, pkcs8.clone()),
        (2, word("SEC1")),
        (3, fs::read(folder.join("pib.db"))?),
        (4, word("SAFEBAG")),
        (5, own("", &onym_crypto::text::encode(&pkcs8))),
        (5, own(&token, "")),
        (5, own(&sealed, "AAAA")),
        (6, group.into_bytes()),
    ];
    let mut seeds: Vec<Vec<u8>> =
        kinds.into_iter().map(|(kind, file)| [&[kind], file.as_slice()].concat()).collect();
    let nac = fs::read_to_string(folder.join("nac.txt"))?;
    let contents = nac.lines().filter(|line| line.starts_with("APPDATA-CONTENT "));
    let contents = contents.filter_map(|line| unhex(line.rsplit(' ').next()?));
    seeds.extend(contents.map(|content| [&[7], content.as_slice()].concat()));
    Ok(seeds)
}

/// Every string behind a key `hex`.
fn octets_in(file: &str) -> io::Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(repository(file))?;
    let strings = text.split("\"hex\"").skip(1).filter_map(|rest| rest.split('"').nth(1));
    Ok(strings.filter_map(unhex).collect())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let octet = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(octet).collect()
}

fn names() -> Vec<Vec<u8>> {
    let uris = [
        "/",
        "/a/b/c",
        "ndn://authority/a/.../....",
        "/%00%FF/8=x/9=y/65535=z/32=keyword",
        "/seg=0/off=255/v=256/t=65536/seq=18446744073709551615",
        "/sha256digest=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "/params-sha256=ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff/a",
        "/50=%00%01/54=%FF/~user_name-1.0",
    ];
    let mut seeds: Vec<Vec<u8>> = uris.iter().map(|uri| uri.as_bytes().to_vec()).collect();
    for uri in uris {
        if let Ok(name) = uri.parse::<onym_wire::Name>() {
            // Where the input is split in two, then two names.
            let len = u8::try_from(name.value().len()).unwrap_or(255);
            let twice = [&[len], name.value(), name.value()].concat();
            seeds.push(twice);
        }
    }
    seeds
}

/// A packet in a capture: of old and new form, as a frame of Ethernet, a datagram, in a stream.
fn capture(number: usize, packet: &[u8]) -> Vec<u8> {
    let len = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes();
    let ip = |proto: u8, rest: &[u8]| {
        let total = len(20 + rest.len());
        let fixed = [0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&[0x45, 0], &total[..], &fixed, rest].concat()
    };
    let (link_type, frame) = match number % 4 {
        0 => (1_u32, [&[2; 12], &[0x86, 0x24][..], packet].concat()),
        1 => (
            101,
            ip(
                17,
                &[&[0x18, 0xDB, 0x18, 0xDB], &len(8 + packet.len())[..], &[0, 0], packet].concat(),
            ),
        ),
        2 => {
            let head = [0xC3, 0x50, 0x18, 0xDB, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 16, 0, 0, 0, 0, 0, 0];
            (101, ip(6, &[&head, packet].concat()))
        }
        _ => (147, packet.to_vec()),
    };
    let size = u32::try_from(frame.len()).unwrap_or(0).to_le_bytes();
    let mut out = Vec::new();
    if number.is_multiple_of(2) {
        out.extend(0xA1B2_C3D4_u32.to_le_bytes());
        out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0]);
        out.extend(link_type.to_le_bytes());
        out.extend([&[1, 0, 0, 0, 2, 0, 0, 0], &size[..], &size, &frame].concat());
        return out;
    }
    let mut block = |typ: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = u32::try_from(12 + body.len()).unwrap_or(0).to_le_bytes();
        out.extend([&typ.to_le_bytes()[..], &len, &body, &len].concat());
    };
    let version = [1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    block(0x0A0D_0D0A, &[&0x1A2B_3C4D_u32.to_le_bytes()[..], &version].concat());
    block(1, &[&link_type.to_le_bytes()[..], &[0; 4], &[9, 0, 1, 0, 9, 0, 0, 0]].concat());
    block(6, &[&[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0], &size[..], &size, &frame].concat());
    out
}

/// A frame as a stranger sends it.
fn reassembly(frame: &[u8]) -> Vec<u8> {
    let len = u8::try_from(frame.len()).unwrap_or(255);
    [&[0, 4, 6 << 1, len], frame].concat()
}

/// Packets in both directions over a path of small frames, with what becomes of the frames.
fn sent_both_ways() -> Vec<u8> {
    let mut choices = vec![4, 1];
    for round in 0..8u8 {
        choices.extend([round & 1, 1, round]);
        choices.extend([3, 0, 2, 1, 4, 3, 1, 8, 2, 3, 0, 2, 0]);
    }
    choices
}

/// Choices of every kind, beside the scripts that [`inputs`] adds.
fn choices() -> Vec<Vec<u8>> {
    let seed = |seed: u8| {
        let mut choices = vec![seed];
        for step in 0..40u8 {
            choices.extend([step.wrapping_mul(37).wrapping_add(seed), step % 5, seed, step, 1, 0]);
        }
        choices
    };
    (0..16).map(seed).collect()
}

/// An Interest as it is.
fn delivered(packet: &[u8]) -> Vec<u8> {
    let len = u16::try_from(packet.len()).unwrap_or(0).to_be_bytes();
    [&[0, 0], &len[..], packet].concat()
}

/// A command of every verb with some parameters.
fn commands() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for module in 0..6u8 {
        for verb in 0..20u8 {
            let mut choices = vec![1, 4, module, verb, 24];
            choices.extend([0x0f | verb << 4, 0xff]);
            choices.extend((0..22).map(|n: u8| n.wrapping_mul(verb + 1) % 9));
            choices.extend([2, 0]);
            seeds.push(choices);
        }
    }
    seeds
}
