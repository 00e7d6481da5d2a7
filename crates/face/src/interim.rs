//! What `onym_wire::faceuri` will offer, until they are there: the face URI.

use std::fmt;
use std::str::FromStr;

/// The URI of a face, as management shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceUri(String);

impl FromStr for FaceUri {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
