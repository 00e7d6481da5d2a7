//! Writing elements.

/// Octets of the variable-size number `n`.
#[inline]
#[must_use]
pub const fn num_len(n: u64) -> usize {
    match n {
        0..=252 => 1,
        253..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Octets of the `NonNegativeInteger` `n` in its shortest form.
#[inline]
#[must_use]
pub const fn nni_len(n: u64) -> usize {
    match n {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// Octets of a whole element with a VALUE of `len` octets.
#[inline]
#[must_use]
pub const fn tlv_len(typ: u32, len: usize) -> usize {
    num_len(typ as u64) + num_len(len as u64) + len
}

/// Octets of a whole element that holds the `NonNegativeInteger` `n`.
#[inline]
#[must_use]
pub const fn nni_tlv_len(typ: u32, n: u64) -> usize {
    tlv_len(typ, nni_len(n))
}

/// Appends a variable-size number in its shortest form.
#[inline]
// The casts keep all bits: each arm bounds the value.
#[allow(clippy::cast_possible_truncation)]
pub fn put_num(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=252 => out.push(n as u8),
        253..=0xFFFF => {
            let [a, b] = (n as u16).to_be_bytes();
            out.extend_from_slice(&[253, a, b]);
        }
        0x1_0000..=0xFFFF_FFFF => {
            let [a, b, c, d] = (n as u32).to_be_bytes();
            out.extend_from_slice(&[254, a, b, c, d]);
        }
        _ => {
            out.push(255);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// Appends TYPE and LENGTH of an element whose VALUE the caller appends.
#[inline]
pub fn put_head(out: &mut Vec<u8>, typ: u32, len: usize) {
    put_num(out, u64::from(typ));
    put_num(out, len as u64);
}

/// Appends a whole element.
#[inline]
pub fn put_tlv(out: &mut Vec<u8>, typ: u32, value: &[u8]) {
    put_head(out, typ, value.len());
    out.extend_from_slice(value);
}

/// Appends the shortest `NonNegativeInteger`, without TYPE and LENGTH.
#[inline]
// The casts keep all bits: each arm bounds the value.
#[allow(clippy::cast_possible_truncation)]
pub fn put_nni(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=0xFF => out.push(n as u8),
        0x100..=0xFFFF => out.extend_from_slice(&(n as u16).to_be_bytes()),
        0x1_0000..=0xFFFF_FFFF => out.extend_from_slice(&(n as u32).to_be_bytes()),
        _ => out.extend_from_slice(&n.to_be_bytes()),
    }
}

/// Appends an element that holds the shortest `NonNegativeInteger`.
#[inline]
pub fn put_nni_tlv(out: &mut Vec<u8>, typ: u32, n: u64) {
    put_head(out, typ, nni_len(n));
    put_nni(out, n);
}

/// Appends an element whose VALUE `body` appends; LENGTH is filled in afterwards.
#[inline]
pub fn put_nested<R>(out: &mut Vec<u8>, typ: u32, body: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    put_nested_sized(out, typ, 0, body)
}

/// [`put_nested`] for a VALUE of about `expected` octets: when the guess gives the right size of
/// LENGTH, the VALUE need not be moved afterwards.
#[inline]
pub fn put_nested_sized<R>(
    out: &mut Vec<u8>,
    typ: u32,
    expected: usize,
    body: impl FnOnce(&mut Vec<u8>) -> R,
) -> R {
    put_num(out, u64::from(typ));
    let len_at = out.len();
    put_num(out, expected as u64);
    let body_at = out.len();
    let result = body(out);
    close_nested(out, len_at, body_at);
    result
}

fn close_nested(out: &mut Vec<u8>, len_at: usize, body_at: usize) {
    let end = out.len();
    let len = end - body_at;
    let needed = num_len(len as u64);
    let reserved = body_at - len_at;
    if needed > reserved {
        out.resize(end + needed - reserved, 0);
    }
    if needed != reserved {
        out.copy_within(body_at..end, len_at + needed);
        out.truncate(len_at + needed + len);
    }
    let bytes = len.to_be_bytes();
    let marker = match needed {
        1 => None,
        3 => Some(253),
        5 => Some(254),
        _ => Some(255),
    };
    let digits = if needed == 1 { 1 } else { needed - 1 };
    let (_, low) = bytes.split_at(bytes.len() - digits);
    let number = marker.iter().chain(low);
    for (slot, byte) in out.iter_mut().skip(len_at).zip(number) {
        *slot = *byte;
    }
}
