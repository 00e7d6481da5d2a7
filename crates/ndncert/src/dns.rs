//! Questions for TXT records and their answers (RFC 1035), as far as the challenge `dns` needs them.

/// Longest name, in octets of text.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;
const TXT: u16 = 16;
const IN: u16 = 1;
/// Records of an answer that are looked at, at most.
const RECORDS_MAX: u16 = 64;

/// Whether `domain` is one of letters, digits and hyphens, of at least two labels.
#[must_use]
pub fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=LABEL_MAX).contains(&label.len())
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.len() <= NAME_MAX - 20 && domain.contains('.') && domain.split('.').all(label)
}

/// The question for the TXT records of `name`; `None` when that is no name.
#[must_use]
pub fn question(id: u16, name: &str) -> Option<Vec<u8>> {
    if name.is_empty() || name.len() > NAME_MAX {
        return None;
    }
    let mut out = id.to_be_bytes().to_vec();
    // Recursion is desired; one question.
    out.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?;
        out.push(len);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    out.extend_from_slice(&[0, 16, 0, 1]);
    Some(out)
}

/// The texts of the TXT records in the answer to [`question`]; `None` when it is not that answer, or
/// cut short. A name without such records has none.
#[must_use]
pub fn texts(question: &[u8], answer: &[u8]) -> Option<Vec<String>> {
    let head = answer.first_chunk::<12>()?;
    let is_answer = head[..2] == *question.get(..2)? && head[2] & 0x82 == 0x80;
    if !is_answer || u16::from_be_bytes([head[4], head[5]]) != 1 {
        return None;
    }
    let asked = question.get(12..)?;
    let mut rest = answer.get(12..)?;
    if !rest.get(..asked.len())?.eq_ignore_ascii_case(asked) {
        return None;
    }
    rest = rest.get(asked.len()..)?;
    let count = u16::from_be_bytes([head[6], head[7]]).min(RECORDS_MAX);
    let mut found = Vec::new();
    for _ in 0..count {
        rest = past_name(rest)?;
        let (fixed, tail) = rest.split_first_chunk::<10>()?;
        let len = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        let (value, tail) = tail.split_at_checked(len)?;
        rest = tail;
        let kind =
            [u16::from_be_bytes([fixed[0], fixed[1]]), u16::from_be_bytes([fixed[2], fixed[3]])];
        if kind == [TXT, IN] {
            found.push(joined(value)?);
        }
    }
    Some(found)
}

/// What follows a name, which ends with a root label or a pointer.
fn past_name(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let (len, tail) = rest.split_first()?;
        match len {
            0 => return Some(tail),
            1..=63 => rest = tail.get(usize::from(*len)..)?,
            192..=255 => return tail.get(1..),
            64..=191 => return None,
        }
    }
}

/// The character strings of a record, one behind the other.
fn joined(mut value: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    while let Some((len, tail)) = value.split_first() {
        let (part, tail) = tail.split_at_checked(usize::from(*len))?;
        text.extend_from_slice(part);
        value = tail;
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: &[u8], records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = question.to_vec();
        out[2] |= 0x80;
        out[7] = u8::try_from(records.len()).unwrap();
        for (kind, value) in records {
            out.extend_from_slice(&[0xC0, 12]);
            out.extend_from_slice(&kind.to_be_bytes());
            out.extend_from_slice(&[0, 1, 0, 0, 0, 60, 0, u8::try_from(value.len()).unwrap()]);
            out.extend_from_slice(value);
        }
        out
    }

    #[test]
    fn texts_are_those_of_the_question_and_of_nobody_else() {
        let asked = question(7, "_ndncert-challenge.example.net").unwrap();
        let came = answer(&asked, &[(5, b"\x01a\x00"), (16, b"\x02ab\x01c"), (16, b"\x00")]);
        assert_eq!(texts(&asked, &came).unwrap(), ["abc", ""]);
        let other = question(8, "_ndncert-challenge.example.net").unwrap();
        assert_eq!(texts(&other, &came), None, "another identifier");
        let other = question(7, "_ndncert-challenge.example.org").unwrap();
        assert_eq!(texts(&other, &came), None, "another name");
        assert_eq!(texts(&asked, &asked), None, "no answer");
        for end in 0..came.len() {
            assert!(texts(&asked, &came[..end]).is_none(), "cut at {end}");
        }
    }

    #[test]
    fn domains_are_names_of_hosts() {
        assert!(is_domain("example.net") && is_domain("a-b.c0.d"));
        for wrong in ["", "net", "a..b", "-a.net", "a-.net", "a b.net", "ä.net", "a.net."] {
            assert!(!is_domain(wrong), "{wrong}");
        }
        assert!(!is_domain(&"a.".repeat(200)));
        assert_eq!(question(1, "a..b"), None);
    }
}
