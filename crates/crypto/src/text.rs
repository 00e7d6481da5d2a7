//! Base64 text of one packet, as certificates and safe bags are kept in files.

use crate::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const COLUMNS: usize = 64;

/// Largest text that is read, in octets: a packet of 8800 octets is 12 KB of text.
const TEXT_LEN_MAX: usize = 64 * 1024;

/// Base64 in lines of 64 characters, each ended by a newline, without armour.
#[must_use]
pub fn encode(packet: &[u8]) -> String {
    let flat = STANDARD.encode(packet);
    let mut text = String::with_capacity(flat.len() + flat.len() / COLUMNS + 1);
    let mut rest = flat.as_str();
    while !rest.is_empty() {
        // Base64 is ASCII: every index is a character boundary.
        let (line, tail) = rest.split_at(rest.len().min(COLUMNS));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text
}

/// The packet in `text`: plain base64 with any white space, or with the armour lines and headers
/// that ndnd writes (`-----BEGIN NDN CERT-----`).
///
/// # Errors
/// [`Error::Text`] when it is too long or not base64.
pub fn decode(text: &str) -> Result<Vec<u8>, Error> {
    if text.len() > TEXT_LEN_MAX {
        return Err(Error::Text(format!("longer than {TEXT_LEN_MAX} octets")));
    }
    let body: String = if text.trim_start().starts_with("-----BEGIN ") {
        // Armour headers look like `Name: value`; base64 has no colon.
        let lines = text.lines().filter(|l| !l.starts_with("-----") && !l.contains(':'));
        lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
    } else {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    };
    if body.is_empty() {
        return Err(Error::Text("it is empty".into()));
    }
    STANDARD.decode(&body).map_err(|e| Error::Text(format!("not base64: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_64_columns_and_come_back() {
        let packet: Vec<u8> = (0..=255).collect();
        let text = encode(&packet);
        assert!(text.lines().all(|l| l.len() <= 64) && text.lines().next().unwrap().len() == 64);
        assert_eq!(decode(&text).unwrap(), packet);
        let armoured = format!(
            "-----BEGIN NDN CERT-----\nName: /a/KEY/b\nSigType: Ed25519\n\n{text}-----END NDN CERT-----\n"
        );
        assert_eq!(decode(&armoured).unwrap(), packet);
        assert!(decode("no base64!").is_err() && decode(" \n").is_err());
    }
}
