//! Words for labels (P-72): a path of words is a path of labels by a stated hash.

use super::{DEPTH_MAX, Id, IdError, Label};
use std::fmt;
use std::str::FromStr;

/// Most octets of a word.
pub const WORD_MAX: usize = 64;

/// What stands before a word that would be read as hexadecimal digits.
const MARK: char = '=';

impl Label {
    /// The label of a word: FNV-1a of 64 bits over its octets, as Blackadder's programs have it.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        let step =
            |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3);
        Self::from_u64(word.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }
}

/// Whether `text` may stand for a label: 1 to [`WORD_MAX`] octets, and none of them a slash, a mark
/// in front or a control character.
#[must_use]
pub fn is_word(text: &str) -> bool {
    let is_sound = |c: char| c != '/' && !c.is_control();
    !text.is_empty()
        && text.len() <= WORD_MAX
        && text.chars().all(is_sound)
        && !text.starts_with([MARK, '*'])
}

/// A word as it stands in a path: marked where it would be read as hexadecimal digits.
#[must_use]
pub fn written(word: &str) -> String {
    let is_label = word.parse::<Label>().is_ok();
    if is_label { format!("{MARK}{word}") } else { word.to_owned() }
}

/// An identifier with the words that it was written with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// The identifier.
    pub id: Id,
    /// The word of each label; none: it was written as digits.
    pub words: Vec<Option<String>>,
}

impl Path {
    /// The word of the last label.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        self.words.last()?.as_deref()
    }

    /// The path with one more word.
    #[must_use]
    pub fn beneath(&self, word: &str) -> Self {
        let mut words = self.words.clone();
        words.push(Some(word.to_owned()));
        Self { id: self.id.child(Label::of_word(word)), words }
    }

    /// The paths of all scopes above it, the highest first.
    pub fn above(&self) -> impl Iterator<Item = Self> {
        (1..self.words.len()).map(|depth| {
            let labels: Vec<[u8; 8]> = self.id.labels().iter().take(depth).copied().collect();
            let words = self.words.iter().take(depth).cloned().collect();
            Self { id: Id::from_labels(&labels), words }
        })
    }
}

impl From<Id> for Path {
    fn from(id: Id) -> Self {
        let words = vec![None; id.len()];
        Self { id, words }
    }
}

impl FromStr for Path {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let rest = text.strip_prefix('/').ok_or_else(|| IdError::NoSlash(text.to_owned()))?;
        let mut path = Self::default();
        if rest.is_empty() {
            return Ok(path);
        }
        for part in rest.split('/') {
            let (label, word) = match (part.parse(), part.strip_prefix(MARK)) {
                (Ok(label), _) => (label, None),
                (Err(_), marked) => {
                    let word = marked.unwrap_or(part);
                    if !is_word(word) {
                        return Err(IdError::Word(part.to_owned()));
                    }
                    (Label::of_word(word), Some(word.to_owned()))
                }
            };
            if path.words.len() >= DEPTH_MAX {
                return Err(IdError::TooDeep);
            }
            path.id = path.id.child(label);
            path.words.push(word);
        }
        Ok(path)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.words.is_empty() {
            return f.write_str("/");
        }
        for (label, word) in self.id.labels().iter().zip(&self.words) {
            match word {
                Some(word) => write!(f, "/{}", written(word))?,
                None => write!(f, "/{}", Label(*label))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_words_is_a_path_of_labels() {
        let path: Path = "/sensors/1/roof".parse().unwrap();
        assert_eq!(path.id, "/7c874d9a3405a0f8/1/a3550b1ff0c47f8f".parse().unwrap());
        assert_eq!((path.to_string(), path.word()), ("/sensors/0001/roof".into(), Some("roof")));
        let above: Vec<String> = path.above().map(|path| path.to_string()).collect();
        assert_eq!(above, ["/sensors", "/sensors/0001"]);
        assert_eq!("/".parse(), Ok(Path::default()));
    }

    #[test]
    fn what_is_digits_is_a_label_and_marked_it_is_a_word() {
        let of = |text: &str| text.parse::<Path>().unwrap();
        assert_eq!(of("/cafe"), Path::from("/cafe".parse::<Id>().unwrap()));
        assert_eq!(of("/=cafe").id, Id::root(Label::of_word("cafe")));
        for text in ["/=cafe/caffè", "/00112233445566778"] {
            assert_eq!(of(text), of(&of(text).to_string()), "{text}");
        }
        assert_eq!(of("/=sensors"), of("/sensors"));
    }

    #[test]
    fn what_is_no_word_is_refused() {
        let long = format!("/{}", "x".repeat(WORD_MAX + 1));
        for text in ["sensors", "/a//b", "/x/", "/a\nb", "/==x", "/=", "/*", &long] {
            assert!(text.parse::<Path>().is_err(), "{text:?}");
        }
        // These two have one label.
        let (a, b) = ("8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ");
        assert_eq!(Label::of_word(a), Label::of_word(b));
    }
}
