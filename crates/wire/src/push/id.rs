//! Labels and absolute identifiers.

use super::DEPTH_MAX;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use thiserror::Error;

/// Eight octets without meaning; also the identifier of a node (P-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Label(pub [u8; 8]);

impl Label {
    /// The label with this number, big-endian.
    #[must_use]
    pub const fn from_u64(n: u64) -> Self {
        Self(n.to_be_bytes())
    }

    /// The number that the label is, big-endian.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

impl fmt::Display for Label {
    /// Without the zeros in front, at least four digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.to_u64())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Does not begin with a slash.
    #[error("an identifier begins with '/', got {0:?}")]
    NoSlash(String),
    /// A label that is no hexadecimal number of 1 to 16 digits.
    #[error("a label has 1 to 16 hexadecimal digits, got {0:?}")]
    Label(String),
    /// A part of a path that is neither a label nor a word.
    #[error(
        "a part of a path is a label of 1 to 16 hexadecimal digits, or a word of 1 to 64 octets, got {0:?}"
    )]
    Word(String),
    /// More than [`DEPTH_MAX`] labels.
    #[error("more than 255 labels")]
    TooDeep,
}

impl FromStr for Label {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::Label(text.to_owned());
        if text.is_empty() || text.len() > 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        u64::from_str_radix(text, 16).map(Self::from_u64).map_err(|_| bad())
    }
}

/// An absolute identifier; without labels it stands for the place above all roots.
///
/// Hash, equality and order are those of its octets, by which tables are asked, too.
#[derive(PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Id(Labels);

/// So many labels that most identifiers ask for no memory.
type Labels = SmallVec<[[u8; 8]; 4]>;

impl Id {
    /// The identifier of a root.
    #[must_use]
    pub fn root(label: Label) -> Self {
        Self(Labels::from_slice(&[label.0]))
    }

    /// The identifier with these labels, at most [`DEPTH_MAX`].
    #[must_use]
    pub fn from_labels(labels: &[[u8; 8]]) -> Self {
        Self(Labels::from_slice(labels.get(..DEPTH_MAX).unwrap_or(labels)))
    }

    /// The identifier that `octets` concatenate; `None` when that is no whole number of labels or
    /// too many.
    #[must_use]
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        match octets.as_chunks() {
            (labels, []) if labels.len() <= DEPTH_MAX => Some(Self(Labels::from_slice(labels))),
            _ => None,
        }
    }

    /// Its labels.
    #[must_use]
    pub fn labels(&self) -> &[[u8; 8]] {
        &self.0
    }

    /// Its octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.0.as_flattened()
    }

    /// Number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels of its parent; empty for a root.
    #[must_use]
    pub fn parent(&self) -> &[[u8; 8]] {
        self.0.split_last().map_or(&[], |(_, parent)| parent)
    }

    /// The first label.
    #[must_use]
    pub fn first(&self) -> Option<Label> {
        self.0.first().copied().map(Label)
    }

    /// The last label.
    #[must_use]
    pub fn last(&self) -> Option<Label> {
        self.0.last().copied().map(Label)
    }

    /// The identifier of the child `label`; beyond [`DEPTH_MAX`] the same identifier.
    #[must_use]
    pub fn child(&self, label: Label) -> Self {
        let Self(mut labels) = self.clone();
        if labels.len() < DEPTH_MAX {
            labels.push(label.0);
        }
        Self(labels)
    }

    /// Whether `self` is `prefix` or beneath it.
    #[must_use]
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl Clone for Id {
    /// All octets at once: what is derived takes label for label.
    fn clone(&self) -> Self {
        Self(Labels::from_slice(&self.0))
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.octets().hash(state);
    }
}

impl Borrow<[u8]> for Id {
    fn borrow(&self) -> &[u8] {
        self.octets()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|label| write!(f, "/{}", Label(*label)))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let rest = text.strip_prefix('/').ok_or_else(|| IdError::NoSlash(text.to_owned()))?;
        if rest.is_empty() {
            return Ok(Self::default());
        }
        let labels = rest.split('/').map(|label| label.parse::<Label>().map(|l| l.0));
        let labels = labels.collect::<Result<Labels, _>>()?;
        if labels.len() > DEPTH_MAX { Err(IdError::TooDeep) } else { Ok(Self(labels)) }
    }
}
