//! Questions for TXT and SRV records and their answers (RFC 1035, RFC 2782), as far as the challenge
//! `dns` and the discovery of a hub need them.

/// Longest name, in octets of text.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;
const TXT: u16 = 16;
const SRV: u16 = 33;
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
    ask(id, name, TXT)
}

/// The question for the SRV records of `name`; `None` when that is no name.
#[must_use]
pub fn service_question(id: u16, name: &str) -> Option<Vec<u8>> {
    ask(id, name, SRV)
}

fn ask(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
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
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&IN.to_be_bytes());
    Some(out)
}

/// Where a service is: an SRV record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Lower is preferred.
    pub priority: u16,
    /// Port.
    pub port: u16,
    /// Host.
    pub host: String,
}

/// The SRV records in the answer to [`service_question`], preferred first; `None` when it is not that
/// answer, or cut short.
#[must_use]
pub fn services(question: &[u8], answer: &[u8]) -> Option<Vec<Service>> {
    let mut found = Vec::new();
    for value in records(question, answer, SRV)? {
        let (fixed, host) = value.split_first_chunk::<6>()?;
        let priority = u16::from_be_bytes([fixed[0], fixed[1]]);
        let port = u16::from_be_bytes([fixed[4], fixed[5]]);
        found.push(Service { priority, port, host: spelt(answer, host)? });
    }
    // Records of one priority stay in the order of the answer, which servers turn around.
    found.sort_by_key(|service| service.priority);
    Some(found)
}

/// A name as text. It may end in a pointer into the message, which leads backward.
fn spelt<'a>(message: &'a [u8], mut rest: &'a [u8]) -> Option<String> {
    let mut text = String::new();
    let mut before = message.len();
    loop {
        let (len, tail) = rest.split_first()?;
        match len {
            0 => return Some(text),
            1..=63 => {
                let (label, tail) = tail.split_at_checked(usize::from(*len))?;
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(std::str::from_utf8(label).ok()?);
                if text.len() > NAME_MAX {
                    return None;
                }
                rest = tail;
            }
            192..=255 => {
                let at = usize::from(*len & 0x3F) << 8 | usize::from(*tail.first()?);
                if at >= before {
                    return None;
                }
                before = at;
                rest = message.get(at..)?;
            }
            64..=191 => return None,
        }
    }
}

/// The texts of the TXT records in the answer to [`question`]; `None` when it is not that answer, or
/// cut short. A name without such records has none.
#[must_use]
pub fn texts(question: &[u8], answer: &[u8]) -> Option<Vec<String>> {
    records(question, answer, TXT)?.into_iter().map(joined).collect()
}

/// The values of the records of this kind in the answer to `question`.
fn records<'a>(question: &[u8], answer: &'a [u8], wanted: u16) -> Option<Vec<&'a [u8]>> {
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
        if kind == [wanted, IN] {
            found.push(value);
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
    fn services_have_host_and_port_by_priority_and_pointers_lead_backward() {
        let asked = service_question(7, "_ndn._udp.example.net").unwrap();
        let far = b"\x00\x14\x00\x00\x18\xdb\x03hub\xc0\x16";
        let near = b"\x00\x0a\x00\x00\x18\xdc\x01h\x03net\x00";
        let came = answer(&asked, &[(33, far), (16, b"\x01x"), (33, near)]);
        let found = services(&asked, &came).unwrap();
        assert_eq!(found[0], Service { priority: 10, port: 6364, host: "h.net".into() });
        assert_eq!(found[1], Service { priority: 20, port: 6363, host: "hub.example.net".into() });
        let at = u8::try_from(asked.len() + 12 + 6).unwrap();
        let ring = answer(&asked, &[(33, &[0, 0, 0, 0, 0, 1, 0xC0, at])]);
        assert_eq!(services(&asked, &ring), None, "a pointer to itself");
        for end in 0..came.len() {
            assert!(services(&asked, &came[..end]).is_none(), "cut at {end}");
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
