//! Strings compressed by the code of RFC 7541, appendix B.
//!
//! The code is canonical: in the order of lengths, and of symbols of one length, codes count upwards. So
//! the lengths say it all.

/// The symbol that no string holds; a part of its code fills the last octet.
const END: u16 = 256;
const SYMBOLS: usize = 257;
/// The longest code, in bits.
const LONGEST: usize = 30;

/// Length of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Codes of one length: the first, and where its symbol is in [`ORDER`].
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    count: u32,
    at: usize,
}

const RANGES: [Range; LONGEST + 1] = {
    let mut ranges = [Range { first: 0, count: 0, at: 0 }; LONGEST + 1];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        ranges[LENGTHS[symbol] as usize].count += 1;
        symbol += 1;
    }
    let mut len = 1;
    while len <= LONGEST {
        let before = ranges[len - 1];
        ranges[len].first = (before.first + before.count) << 1;
        ranges[len].at = before.at + before.count as usize;
        len += 1;
    }
    ranges
};

/// Symbols in the order of their codes.
const ORDER: [u16; SYMBOLS] = {
    let mut order = [0; SYMBOLS];
    let (mut at, mut len) = (0, 1);
    while len <= LONGEST {
        let mut symbol = 0_u16;
        while symbol <= END {
            if LENGTHS[symbol as usize] as usize == len {
                order[at] = symbol;
                at += 1;
            }
            symbol += 1;
        }
        len += 1;
    }
    order
};

/// The string; `None` when it is not one.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5);
    let (mut code, mut len) = (0_u32, 0_usize);
    for bit in bytes.iter().flat_map(|octet| (0..8).rev().map(move |i| octet >> i & 1)) {
        (code, len) = (code << 1 | u32::from(bit), len + 1);
        let range = RANGES.get(len)?;
        let nth = code.checked_sub(range.first)?;
        if nth < range.count {
            let symbol = ORDER[range.at + nth as usize];
            out.push(u8::try_from(symbol).ok()?);
            (code, len) = (0, 0);
        }
    }
    // What is left is the front of the end's code, ones only.
    (len < 8 && code == (1 << len) - 1).then_some(out)
}
