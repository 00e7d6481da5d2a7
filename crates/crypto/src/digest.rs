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

/// SHA-256 of what comes piece by piece.
pub struct Sha256(digest::Context);

impl Sha256 {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Adds `part` at the end.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The digest of all parts.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(self.0.finish().as_ref());
        out
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha256")
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
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
