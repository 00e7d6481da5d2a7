//! Who uses a bucket: a key and its secret, from the environment or from a file, never from a command
//! line, where others could read them.

use crate::Error;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A key, its secret, and the token of a session that is to end.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.key)
    }
}

/// Longest file.
const FILE_MAX: u64 = 64 << 10;

impl Credentials {
    /// Those of `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and perhaps `AWS_SESSION_TOKEN`.
    ///
    /// # Errors
    /// [`Error::Credentials`].
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let (key, secret) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"));
        match (key, secret) {
            (Some(key), Some(secret)) if !key.is_empty() && !secret.is_empty() => {
                let token = variable("AWS_SESSION_TOKEN").filter(|token| !token.is_empty());
                Ok(Self { key, secret, token })
            }
            _ => Err(Error::Credentials(
                "the environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and the bucket \
                 names no file with credentials"
                    .into(),
            )),
        }
    }

    /// Those of a file as the tools of Amazon have it: the first `aws_access_key_id` and
    /// `aws_secret_access_key` in it. It must not be readable by everybody.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Credentials`].
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let fault = |error| Error::File(shown.clone(), error);
        let of = std::fs::metadata(path).map_err(fault)?;
        if of.mode() & 0o007 != 0 {
            let why = format!("{shown}: everybody may use it; `chmod o= {shown}` mends that");
            return Err(Error::Credentials(why));
        }
        if of.len() > FILE_MAX {
            return Err(Error::Credentials(format!("{shown}: it is longer than 64 KiB")));
        }
        let text = std::fs::read_to_string(path).map_err(fault)?;
        Self::from_text(&text).ok_or_else(|| {
            let why = "it has no aws_access_key_id and aws_secret_access_key";
            Error::Credentials(format!("{shown}: {why}"))
        })
    }

    fn from_text(text: &str) -> Option<Self> {
        let value = |wanted: &str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                let value = value.trim();
                (name.trim() == wanted && !value.is_empty()).then(|| value.to_owned())
            })
        };
        let (key, secret) = (value("aws_access_key_id")?, value("aws_secret_access_key")?);
        Some(Self { key, secret, token: value("aws_session_token") })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_read_as_the_tools_of_amazon_write_it() {
        let text = "[default]\naws_access_key_id = AK\naws_secret_access_key=se=cret\n";
        let read = Credentials::from_text(text).unwrap();
        assert_eq!((read.key.as_str(), read.secret.as_str()), ("AK", "se=cret"));
        assert_eq!(Credentials::from_text("aws_access_key_id = AK\n"), None);
        assert!(!format!("{read:?}").contains("cret"), "a secret is not shown");
    }

    #[test]
    fn a_file_that_everybody_reads_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("key");
        std::fs::write(&path, "aws_access_key_id = a\naws_secret_access_key = b\n").unwrap();
        for (mode, is_good) in [(0o640, true), (0o644, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Credentials::from_file(&path).is_ok(), is_good, "{mode:o}");
        }
        assert!(Credentials::from_file(&place.path().join("none")).is_err());
    }

    #[test]
    fn the_environment_has_both_or_nothing() {
        let with = |names: &'static [&'static str]| {
            Credentials::from_environment(|name| names.contains(&name).then(|| "x".to_owned()))
        };
        assert!(with(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]).unwrap().token.is_none());
        assert!(with(&["AWS_ACCESS_KEY_ID"]).is_err());
    }
}
