//! What viewers ask: `onym dump` and `onym top`. A question is one component, `key=value` with `&`
//! between; what it means is in the README.

use onym_tables::FaceId;
use onym_watch::Filter;

/// Octets of a question.
const QUESTION_MAX: usize = 2048;
/// Faces of an answer.
const FACES_MAX: usize = 500;
/// Components of a prefix.
const DEPTH_MAX: usize = 8;

/// `/localhost/onym/dump/<viewer=…&…>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpQuestion {
    /// Who asks, a number of its own.
    pub viewer: u64,
    /// What it wants to see.
    pub filter: Filter,
    /// Whether it asks for the last time.
    pub is_last: bool,
}

/// By what faces are chosen and ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FaceOrder {
    /// Packets a second, both ways.
    #[default]
    Packets,
    /// Octets a second received.
    In,
    /// Octets a second sent.
    Out,
    /// Packets a second that were not sent.
    Losses,
    /// Octets that wait to be sent.
    Queue,
    /// Round trip.
    RoundTrip,
    /// The number of the face.
    Number,
}

impl FaceOrder {
    const WORDS: [(&'static str, Self); 7] = [
        ("packets", Self::Packets),
        ("in", Self::In),
        ("out", Self::Out),
        ("losses", Self::Losses),
        ("queue", Self::Queue),
        ("rtt", Self::RoundTrip),
        ("face", Self::Number),
    ];
}

/// `/localhost/onym/top/<viewer=…&…>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopQuestion {
    /// Who asks, a number of its own.
    pub viewer: u64,
    /// Most faces to be told.
    pub faces: usize,
    /// By what they are chosen.
    pub order: FaceOrder,
    /// One face only.
    pub face: Option<FaceId>,
    /// Only faces with this in one of their URIs or as their number, and prefixes with it; all when it
    /// is empty.
    pub text: String,
    /// Components of prefixes.
    pub depth: usize,
    /// Whether faces with which something is wrong are to be told, too, of all that there are.
    pub is_why: bool,
}

/// What of the traffic somebody may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Which names are asked for, too.
    Names,
    /// Counts of faces and of the node.
    Counts {
        /// Why no more.
        why: String,
    },
}

/// The pairs of a question.
///
/// # Errors
/// It is none.
fn pairs(question: &[u8]) -> Result<Vec<(&str, &str)>, String> {
    if question.len() > QUESTION_MAX {
        return Err(format!("a question has at most {QUESTION_MAX} octets"));
    }
    let text = std::str::from_utf8(question).map_err(|_| "a question is text".to_owned())?;
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').ok_or_else(|| format!("{pair}: it is no key=value")))
        .collect()
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{key}: it is a number"))
}

fn unknown(key: &str) -> String {
    format!("{key}: there is no such key")
}

impl DumpQuestion {
    /// Reads a question.
    ///
    /// # Errors
    /// A sentence with the key.
    pub fn parse(question: &[u8]) -> Result<Self, String> {
        let mut asked = Self { viewer: 0, filter: Filter::default(), is_last: false };
        for (key, value) in pairs(question)? {
            match key {
                "viewer" => asked.viewer = number(key, value)?,
                // So that no two questions are alike.
                "n" => {}
                "last" => asked.is_last = value == "1",
                _ => match asked.filter.set(key, value) {
                    Ok(true) => {}
                    Ok(false) => return Err(unknown(key)),
                    Err(error) => return Err(error.to_string()),
                },
            }
        }
        Ok(asked)
    }
}

impl TopQuestion {
    /// Reads a question.
    ///
    /// # Errors
    /// A sentence with the key.
    pub fn parse(question: &[u8]) -> Result<Self, String> {
        let order = FaceOrder::default();
        let text = String::new();
        let mut asked =
            Self { viewer: 0, faces: 50, order, face: None, text, depth: 2, is_why: false };
        let usize =
            |key, value| number(key, value).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        for (key, value) in pairs(question)? {
            match key {
                "viewer" => asked.viewer = number(key, value)?,
                "n" => {}
                "faces" => asked.faces = usize(key, value)?.min(FACES_MAX),
                "text" => asked.text = value.replace("%26", "&").replace("%25", "%"),
                "ailing" => asked.is_why = value == "1",
                "depth" => asked.depth = usize(key, value)?.clamp(1, DEPTH_MAX),
                "face" => {
                    let id = u32::try_from(number(key, value)?);
                    asked.face = Some(FaceId(id.map_err(|_| format!("{key}: it is too large"))?));
                }
                "order" => {
                    let found = FaceOrder::WORDS.iter().find(|(word, _)| *word == value);
                    let words = FaceOrder::WORDS.map(|(word, _)| word).join(", ");
                    asked.order = found.ok_or_else(|| format!("order: one of {words}"))?.1;
                }
                _ => return Err(unknown(key)),
            }
        }
        Ok(asked)
    }
}

/// Reads the question of `/localhost/onym/history/<since=…>`: after which moment, in milliseconds of
/// Unix time, rows are wanted; all without it.
///
/// # Errors
/// A sentence with the key.
pub(crate) fn history_since(question: &[u8]) -> Result<u64, String> {
    let mut since = 0;
    for (key, value) in pairs(question)? {
        match key {
            "since" => since = number(key, value)?,
            "n" => {}
            _ => return Err(unknown(key)),
        }
    }
    Ok(since)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_with_its_bounds() {
        let asked = TopQuestion::parse(b"viewer=7&n=3&faces=100000&order=rtt&depth=99").unwrap();
        assert_eq!((asked.viewer, asked.faces, asked.depth), (7, FACES_MAX, DEPTH_MAX));
        assert_eq!(asked.order, FaceOrder::RoundTrip);
        let asked = TopQuestion::parse(b"viewer=7&text=a=b%26c%2526").unwrap();
        assert_eq!((&asked.text[..], asked.is_why), ("a=b&c%26", false));
        assert!(TopQuestion::parse(b"viewer=7&ailing=1").unwrap().is_why);
        let asked = DumpQuestion::parse(b"viewer=1&face=300&kind=interest&last=1").unwrap();
        assert!(asked.is_last && asked.filter.face == Some(FaceId(300)));
        assert_eq!(history_since(b"since=77&n=1"), Ok(77));
        assert_eq!(history_since(b""), Ok(0));
        assert!(history_since(b"since=never").unwrap_err().contains("since"));
        assert!(history_since(b"viewer=1").is_err());
    }

    #[test]
    fn what_is_no_question_is_told_by_its_key() {
        for (question, key) in [
            (&b"viewer=x"[..], "viewer"),
            (b"faces", "faces"),
            (b"order=size", "order"),
            (b"face=99999999999", "face"),
            (b"colour=red", "colour"),
            (b"\xff", "text"),
        ] {
            let told = TopQuestion::parse(question).unwrap_err();
            assert!(told.contains(key), "{told}");
        }
        assert!(DumpQuestion::parse(b"kind=frames").unwrap_err().contains("kind"));
        assert!(DumpQuestion::parse(&[b'a'; QUESTION_MAX + 1]).is_err());
    }
}
