//! Where a client looks for its node by default (spec/registry.md).

use super::uri::{NodeUri, UriError};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Who named a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The caller: `--node`.
    Given,
    /// The variable `NDN_CLIENT_TRANSPORT`.
    Environment,
    /// A line `transport=` in this file.
    ClientConf(PathBuf),
    /// One of the usual places.
    Usual,
}

/// A node that was named wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{by} is not a node URI")]
pub struct SearchError {
    /// Who named it.
    by: String,
    /// What is wrong.
    #[source]
    pub source: UriError,
}

/// The surroundings that the search depends on; [`Surroundings::of_process`] reads them.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `NDN_CLIENT_TRANSPORT`.
    pub transport: Option<String>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// Effective user.
    pub uid: u32,
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Self {
            transport: std::env::var("NDN_CLIENT_TRANSPORT").ok().filter(|v| !v.is_empty()),
            home: path("HOME"),
            runtime_dir: path("XDG_RUNTIME_DIR"),
            // The owner of this process's own entry in /proc: no system call binding needed.
            uid: fs::metadata("/proc/self").map_or(0, |m| m.uid()),
        }
    }
}

/// The nodes to try, in order, and who named them. One when somebody named one; else the usual
/// places, of which the first that answers is taken.
///
/// # Errors
/// [`SearchError`] when the node was named but wrongly.
pub fn candidates(
    given: Option<&str>,
    around: &Surroundings,
) -> Result<(Vec<NodeUri>, Origin), SearchError> {
    if let Some(text) = given {
        return named(text, Origin::Given, "--node");
    }
    if let Some(text) = &around.transport {
        return named(text, Origin::Environment, "NDN_CLIENT_TRANSPORT");
    }
    if let Some((file, text)) = client_conf(around.home.as_deref()) {
        let by = format!("`transport` in {}", file.display());
        return named(&text, Origin::ClientConf(file), &by);
    }
    Ok((usual(around), Origin::Usual))
}

fn named(text: &str, origin: Origin, by: &str) -> Result<(Vec<NodeUri>, Origin), SearchError> {
    match text.trim().parse() {
        Ok(uri) => Ok((vec![uri], origin)),
        Err(source) => Err(SearchError { by: by.to_owned(), source }),
    }
}

/// The first `client.conf` there is, if it names a transport.
fn client_conf(home: Option<&Path>) -> Option<(PathBuf, String)> {
    let files = home
        .map(|h| h.join(".ndn/client.conf"))
        .into_iter()
        .chain(["/usr/local/etc/ndn/client.conf", "/etc/ndn/client.conf"].map(PathBuf::from));
    for file in files {
        if let Ok(text) = fs::read_to_string(&file) {
            return transport_of(&text).map(|value| (file, value));
        }
    }
    None
}

/// The value of `transport` in the text of a `client.conf`: lines `key=value`, comments from `;`.
fn transport_of(text: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split(';').next()?.split_once('='))
        .filter(|(key, _)| key.trim() == "transport")
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
        .find(|value| !value.is_empty())
}

fn usual(around: &Surroundings) -> Vec<NodeUri> {
    let mut places = vec![PathBuf::from("/run/nfd/nfd.sock")];
    if let Some(directory) = &around.runtime_dir {
        places.push(directory.join("onym/nfd.sock"));
    }
    // /tmp belongs to everybody: a directory of that name made by another user is not ours.
    let own = PathBuf::from(format!("/tmp/onym-{}", around.uid));
    if fs::symlink_metadata(&own).is_ok_and(|m| m.is_dir() && m.uid() == around.uid) {
        places.push(own.join("nfd.sock"));
    }
    places.push(PathBuf::from("/run/nfd.sock"));
    places.into_iter().map(NodeUri::Unix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(home: &Path) -> Surroundings {
        Surroundings { home: Some(home.to_owned()), uid: u32::MAX, ..Surroundings::default() }
    }

    #[test]
    fn the_option_beats_the_variable_which_beats_the_file_which_beats_the_usual_places() {
        let home = tempfile::tempdir().unwrap();
        let mut around = around(home.path());
        around.runtime_dir = Some("/run/user/7".into());
        let (usual, origin) = candidates(None, &around).unwrap();
        assert_eq!(origin, Origin::Usual);
        let texts: Vec<_> = usual.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "unix:///run/nfd/nfd.sock",
                "unix:///run/user/7/onym/nfd.sock",
                "unix:///run/nfd.sock"
            ]
        );
        let file = home.path().join(".ndn/client.conf");
        fs::create_dir(home.path().join(".ndn")).unwrap();
        fs::write(&file, "; transport=unix:///no\npib=x\n transport = \"tcp://r\" ; why\n")
            .unwrap();
        let (found, origin) = candidates(None, &around).unwrap();
        assert_eq!(
            (found[0].to_string(), origin),
            ("tcp://r:6363".into(), Origin::ClientConf(file))
        );
        around.transport = Some("udp://h".into());
        assert_eq!(candidates(None, &around).unwrap().1, Origin::Environment);
        assert_eq!(candidates(Some("unix:///x"), &around).unwrap().1, Origin::Given);
    }

    #[test]
    fn a_node_named_wrongly_is_an_error_that_says_by_whom() {
        let home = tempfile::tempdir().unwrap();
        let error = candidates(Some("x"), &around(home.path())).unwrap_err();
        assert!(error.to_string().contains("--node"), "{error}");
    }
}
