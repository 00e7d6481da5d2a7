//! SHA-256 over pieces.

use aws_lc_rs::digest;

/// SHA-256 of the concatenation of `parts`.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let digest = digest_of(parts);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// The digest in the library's form, which its signing calls take.
pub(crate) fn digest_of(parts: &[&[u8]]) -> digest::Digest {
    // One piece needs no context, which the library would allocate.
    if let [one] = parts {
        return digest::digest(&digest::SHA256, one);
    }
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    context.finish()
}

/// Digest of a whole Data packet, its outer TYPE and LENGTH included: the value of the implicit
/// digest component (packet format 0.3, "Implicit Digest Component").
#[must_use]
pub fn implicit_digest(data: &[u8]) -> [u8; 32] {
    sha256(&[data])
}

/// Lower-case hexadecimal text of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hash_as_their_concatenation() {
        let whole = sha256(&[b"abc"]);
        assert_eq!(hex(&whole), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256(&[b"a", b"", b"bc"]), whole);
        assert_eq!(
            hex(&sha256(&[])),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
