//! TLV reading and writing.

/// Appends a TLV number in its shortest form.
pub fn put_number(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=0xfc => out.push(n as u8),
        0xfd..=0xffff => {
            out.push(0xfd);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xfe);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(0xff);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// Appends one TLV.
pub fn put(out: &mut Vec<u8>, typ: u64, value: &[u8]) {
    put_number(out, typ);
    put_number(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// One TLV as a new buffer.
#[must_use]
pub fn tlv(typ: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 10);
    put(&mut out, typ, value);
    out
}

/// A NonNegativeInteger in its shortest form.
#[must_use]
pub fn nni(n: u64) -> Vec<u8> {
    match n {
        0..=0xff => vec![n as u8],
        0x100..=0xffff => (n as u16).to_be_bytes().to_vec(),
        0x1_0000..=0xffff_ffff => (n as u32).to_be_bytes().to_vec(),
        _ => n.to_be_bytes().to_vec(),
    }
}

/// Reads a NonNegativeInteger: exactly 1, 2, 4 or 8 octets.
#[must_use]
pub fn read_nni(value: &[u8]) -> Option<u64> {
    matches!(value.len(), 1 | 2 | 4 | 8)
        .then(|| value.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// Reads a number; gives it and its length.
fn read_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let len = match *bytes.first()? {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => return Some((u64::from(small), 1)),
    };
    let value = bytes.get(1..1 + len)?.iter().fold(0, |n, &b| n << 8 | u64::from(b));
    Some((value, 1 + len))
}

/// Splits the first TLV off: type, value, rest.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (typ, a) = read_number(bytes)?;
    let (len, b) = read_number(&bytes[a..])?;
    let start = a + b;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    Some((typ, bytes.get(start..end)?, &bytes[end..]))
}

/// The TLVs of `bytes` in order, or nothing if they do not fill it exactly.
#[must_use]
pub fn children(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (typ, value, rest) = split(bytes)?;
        out.push((typ, value));
        bytes = rest;
    }
    Some(out)
}

/// The length of the first TLV of a stream, once its header is there.
#[must_use]
pub fn frame_len(bytes: &[u8]) -> Option<usize> {
    let (_, a) = read_number(bytes)?;
    let (len, b) = read_number(&bytes[a..])?;
    Some(a + b + usize::try_from(len).ok()?)
}

/// SHA-256 of the parts, joined.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut ctx = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    for part in parts {
        ctx.update(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(ctx.finish().as_ref());
    out
}

/// Octets as lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Octets from hexadecimal.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tlv_is_read_as_it_was_written() {
        for (typ, len) in [(5, 0), (252, 252), (253, 253), (65536, 70_000)] {
            let value = vec![7; len];
            let bytes = tlv(typ, &value);
            assert_eq!(split(&bytes), Some((typ, &value[..], &[][..])));
            assert_eq!(frame_len(&bytes), Some(bytes.len()));
        }
    }

    #[test]
    fn truncated_input_gives_nothing() {
        let bytes = tlv(253, &[1; 300]);
        for end in 0..bytes.len() {
            assert_eq!(split(&bytes[..end]), None, "cut at {end}");
        }
    }
}
