use super::*;

fn written(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tape = Writer::new(Vec::new(), 1);
    for (path, octets) in files {
        tape.add(path, 0o644, octets.len() as u64, *octets).unwrap();
    }
    tape.finish().unwrap()
}

fn read(tape: &[u8], bytes_max: u64) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let mut reader = Reader::new(tape, bytes_max);
    let mut files = Vec::new();
    while let Some(entry) = reader.next()? {
        let mut octets = Vec::new();
        reader.copy(&entry, &mut octets)?;
        files.push((entry.path, octets));
    }
    reader.finish()?;
    Ok(files)
}

/// An archive with one entry as somebody else would write it, its sums in order.
fn foreign(path: &str, kind: u8, link: &str) -> Vec<u8> {
    let mut block = header("x", 0o644, 0, 1).unwrap();
    block[..100].fill(0);
    block[..path.len()].copy_from_slice(path.as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    sum(&mut block);
    let mut tape = block.to_vec();
    tape.extend(&written(&[("y", b"")])[512..]);
    tape
}

fn sum(block: &mut [u8; BLOCK]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

#[test]
fn what_is_written_is_read() {
    let long = format!("state/{}/{}", "a".repeat(90), "b".repeat(90));
    let files: &[(&str, &[u8])] = &[("keys/a", b"one"), ("keys/b", b""), (&long, &[7; 1500])];
    let got = read(&written(files), 1 << 20).unwrap();
    let got: Vec<(&str, &[u8])> = got.iter().map(|(p, o)| (&p[..], &o[..])).collect();
    assert_eq!(got, files);
}

#[test]
fn paths_that_leave_their_folder_links_and_devices_are_refused() {
    for path in ["../a", "/etc/passwd", "a/../../b", "a//b", "a/.", "a\\b", ""] {
        let fault = read(&foreign(path, b'0', ""), 1 << 20).unwrap_err().to_string();
        assert!(fault.contains("outside of its folder"), "{path}: {fault}");
        assert!(Writer::new(Vec::new(), 1).add(path, 0, 0, &b""[..]).is_err(), "{path}");
    }
    for kind in [b'1', b'2', b'3', b'4', b'5', b'6', b'L', b'x', b'g', b'S'] {
        let fault = read(&foreign("keys/a", kind, "/etc"), 1 << 20).unwrap_err().to_string();
        assert!(fault.contains("no regular file"), "{kind}: {fault}");
    }
}

#[test]
fn sizes_and_numbers_beyond_the_bounds_are_refused() {
    let tape = written(&[("a", &[0; 1000]), ("b", &[0; 1000])]);
    assert!(read(&tape, 2000).is_ok());
    assert!(read(&tape, 1999).unwrap_err().to_string().contains("--size-max"));
    let deep = vec!["a"; DEPTH_MAX + 1].join("/");
    assert!(read(&foreign(&deep, b'0', ""), 9).unwrap_err().to_string().contains("too long"));
    // A file that says it has more octets than there are numbers.
    let mut block = header("a", 0, 0, 1).unwrap();
    block[124..136].copy_from_slice(b"77777777777\0");
    sum(&mut block);
    assert!(read(&block, u64::MAX).unwrap_err().to_string().contains("ends early"));
    block[124..136].copy_from_slice(b"-1         \0");
    sum(&mut block);
    assert!(read(&block, u64::MAX).unwrap_err().to_string().contains("not octal"));
    let twice = [&written(&[("a", b"")])[..512], &written(&[("a", b"")])[..]].concat();
    assert!(read(&twice, 9).unwrap_err().to_string().contains("twice"));
}

#[test]
fn every_cut_and_every_changed_octet_is_seen() {
    let tape = written(&[("a", b"content"), ("b", b"more")]);
    // What follows the digests is padding of tar.
    let end = tape.len() - 2 * BLOCK;
    for cut in 0..end - (BLOCK - 1) {
        assert!(read(&tape[..cut], 1 << 20).is_err(), "cut at {cut}");
    }
    let good = read(&tape, 1 << 20).unwrap();
    for at in 0..end {
        let mut other = tape.clone();
        other[at] ^= 1;
        // A changed octet may be in padding, or in a field that nobody reads; then nothing changes.
        if let Ok(files) = read(&other, 1 << 20) {
            assert_eq!(files, good, "octet {at}");
        }
    }
}
