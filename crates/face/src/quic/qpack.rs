//! Heads of HTTP/3 messages (QPACK, RFC 9204), without the dynamic table, which we announce not to have.

use super::huffman;

/// One header field. The name is empty where it is one of the static table that nobody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Entries of the static table, which ends before this.
const STATIC_END: usize = 99;
/// What an HTTP message has in its head at most.
const FIELDS_MAX: usize = 128;

/// An entry of the static table as far as somebody here asks for it.
fn entry(index: usize) -> Option<(&'static str, &'static str)> {
    if index >= STATIC_END {
        return None;
    }
    Some(match index {
        0 => (":authority", ""),
        1 => (":path", "/"),
        15 => (":method", "CONNECT"),
        16 => (":method", "DELETE"),
        17 => (":method", "GET"),
        18 => (":method", "HEAD"),
        19 => (":method", "OPTIONS"),
        20 => (":method", "POST"),
        21 => (":method", "PUT"),
        22 => (":scheme", "http"),
        23 => (":scheme", "https"),
        24..=28 => (":status", *["103", "200", "304", "404", "503"].get(index - 24)?),
        63..=71 => {
            let codes = ["100", "204", "206", "302", "400", "403", "421", "425", "500"];
            (":status", *codes.get(index - 63)?)
        }
        90 => ("origin", ""),
        _ => ("", ""),
    })
}

/// The number in the low `bits` of the first octet and, where it does not fit, behind it.
fn integer(bytes: &mut &[u8], bits: u32) -> Option<usize> {
    let (first, mut rest) = bytes.split_first()?;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        // Three more octets say 2 MB, which nobody sends.
        for shift in [0, 7, 14] {
            let octet;
            (octet, rest) = rest.split_first()?;
            value += usize::from(octet & 0x7F) << shift;
            if octet & 0x80 == 0 {
                *bytes = rest;
                return Some(value);
            }
        }
        return None;
    }
    *bytes = rest;
    Some(value)
}

/// A string whose length has `bits` of the first octet; the bit above says that it is compressed.
fn string(bytes: &mut &[u8], bits: u32) -> Option<Vec<u8>> {
    let is_huffman = bytes.first()? >> bits & 1 == 1;
    let len = integer(bytes, bits)?;
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    if is_huffman { huffman::decode(text) } else { Some(text.to_vec()) }
}

/// The fields of a head; `None` when it is malformed or refers to the dynamic table.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let bytes = &mut bytes;
    if integer(bytes, 8)? != 0 {
        return None;
    }
    integer(bytes, 7)?;
    let mut fields = Vec::new();
    while let Some(&first) = bytes.first() {
        if fields.len() == FIELDS_MAX {
            return None;
        }
        let (name, value) = match first {
            0xC0.. => {
                let (name, value) = entry(integer(bytes, 6)?)?;
                (name.into(), value.into())
            }
            0x50..0x60 | 0x70..0x80 => {
                let (name, _) = entry(integer(bytes, 4)?)?;
                (name.into(), string(bytes, 7)?)
            }
            0x20..0x40 => (string(bytes, 3)?, string(bytes, 7)?),
            _ => return None,
        };
        fields.push(Field { name, value });
    }
    Some(fields)
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    Forbidden,
}

/// Writes a head.
#[derive(Debug)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn new() -> Self {
        Self(vec![0, 0])
    }

    fn integer(&mut self, mark: u8, bits: u32, value: usize) {
        let most = (1_usize << bits) - 1;
        let low = |value: usize| u8::try_from(value & 0xFF).unwrap_or_default();
        if value < most {
            return self.0.push(mark | low(value));
        }
        self.0.push(mark | low(most));
        let mut left = value - most;
        while left >= 0x80 {
            self.0.push(low(left & 0x7F) | 0x80);
            left >>= 7;
        }
        self.0.push(low(left));
    }

    fn text(&mut self, mark: u8, bits: u32, text: &str) {
        self.integer(mark, bits, text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn status(&mut self, status: Status) {
        let index = match status {
            Status::Ok => 25,
            Status::BadRequest => 67,
            Status::Forbidden => 68,
        };
        self.integer(0xC0, 6, index);
    }

    /// The head of a request for a WebTransport session.
    pub(super) fn connect(&mut self, authority: &str, path: &str) {
        self.integer(0xC0, 6, 15);
        self.integer(0xC0, 6, 23);
        for (index, value) in [(0, authority), (1, path)] {
            self.integer(0x50, 4, index);
            self.text(0, 7, value);
        }
        self.field(":protocol", "webtransport");
    }

    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.text(0x20, 3, name);
        self.text(0, 7, value);
    }

    pub(super) fn end(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> Option<Vec<(String, String)>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(decode(bytes)?.iter().map(|f| (text(&f.name), text(&f.value))).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        let mut head = Encoder::new();
        head.connect("192.0.2.1:6367", "/ndn");
        let long = "v".repeat(5000);
        head.field("a-name-of-more-than-seven", &long);
        let fields = texts(&head.end()).unwrap();
        let expected = [
            (":method", "CONNECT"),
            (":scheme", "https"),
            (":authority", "192.0.2.1:6367"),
            (":path", "/ndn"),
            (":protocol", "webtransport"),
            ("a-name-of-more-than-seven", &long),
        ];
        assert!(fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).eq(expected), "{fields:?}");
        for (status, code) in
            [(Status::Ok, "200"), (Status::BadRequest, "400"), (Status::Forbidden, "403")]
        {
            let mut head = Encoder::new();
            head.status(status);
            assert_eq!(texts(&head.end()).unwrap(), [(":status".to_owned(), code.to_owned())]);
        }
    }

    #[test]
    fn a_head_of_the_standard_and_a_compressed_one_are_read() {
        // RFC 9204, B.1.
        let path = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(texts(path).unwrap(), [(":path".to_owned(), "/index.html".to_owned())]);
        // RFC 7541, C.4.1: www.example.com by Huffman.
        let host = b"\x00\x00\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        let expected = (":authority".to_owned(), "www.example.com".to_owned());
        assert_eq!(texts(host).unwrap(), [expected]);
    }

    #[test]
    fn what_strangers_may_send_is_refused_or_read_and_never_more() {
        for bad in [
            &b""[..],
            b"\x00",
            // A reference to what is in no table: dynamic entries, and an index beyond the static ones.
            b"\x01\x00",
            b"\x00\x00\x80",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x00",
            b"\x00\x00\xff\x24",
            // Lengths without an end, and beyond the end.
            b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x00\x00\x50\x7f\xff\xff\xff\x7f",
            b"\x00\x00\x50\x05abc",
            b"\x00\x00\x27",
            // Huffman: padding of more than seven bits, of zeros, and the end's own symbol.
            b"\x00\x00\x50\x81\xff\xff",
            b"\x00\x00\x50\x82\xff\xff",
            b"\x00\x00\x50\x81\x00",
            b"\x00\x00\x50\x84\xff\xff\xff\xff",
        ] {
            assert_eq!(decode(bad), None, "{bad:02x?}");
        }
        // As many fields as there may be, and one more.
        let mut many = vec![0, 0];
        many.resize(2 + FIELDS_MAX, 0xC1);
        assert_eq!(decode(&many).unwrap().len(), FIELDS_MAX);
        many.push(0xC1);
        assert_eq!(decode(&many), None);
        // Whatever comes ends in one or the other.
        let mut seed = 1_u64;
        for len in (0..2000_usize).map(|i| i % 200) {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                u8::try_from(seed >> 56).unwrap()
            };
            let mut noise: Vec<u8> = (0..len).map(|_| next()).collect();
            noise.splice(0..0, [0, 0]);
            let _ = decode(&noise);
        }
    }
}
