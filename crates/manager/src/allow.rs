//! Where functions may listen. The manager's own configuration decides, not a description.
//!
//! A description comes from whoever may command the manager; the addresses and folders at which
//! its services open doors are the administrator's.

use crate::describe::Description;
use crate::network::{Fault, Function};
use onym_http::folders::Folders;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// One place that is allowed: `tcp4://ADDRESS[:PORT]`, `udp4://`, `tcp6://`, `udp6://`,
/// `unix:///FOLDER`, `ether://INTERFACE`. The address 0.0.0.0 or `[::]` stands for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// An address, with the scheme, and a port when it is one only.
    Address(String, IpAddr, Option<u16>),
    /// A folder and all within it.
    Folder(PathBuf),
    /// An Ethernet interface.
    Interface(String),
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    rules: Vec<Rule>,
    folders: Folders,
}

const NEXT: &str = "start the manager with --allow-listen";

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no place such as tcp4://192.0.2.1, udp6://[::]:6363, unix:///run/ndn or ether://eth0"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        match scheme {
            "tcp4" | "udp4" | "tcp6" | "udp6" => {
                let (ip, port) = address(rest).ok_or_else(wrong)?;
                Ok(Self::Address(scheme.to_owned(), ip, port))
            }
            "unix" if rest.starts_with('/') => Ok(Self::Folder(PathBuf::from(rest))),
            "ether" if !rest.is_empty() => Ok(Self::Interface(rest.to_owned())),
            _ => Err(wrong()),
        }
    }
}

/// An address with or without a port.
fn address(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(both) = text.parse::<SocketAddr>() {
        return Some((both.ip(), Some(both.port())));
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|ip| (ip, None))
}

impl Allowed {
    /// Loopback addresses, sockets within `folders`, and what the rules name.
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = PathBuf>, rules: Vec<Rule>) -> Self {
        let named = rules.iter().filter_map(|rule| match rule {
            Rule::Folder(folder) => Some(folder.clone()),
            _ => None,
        });
        let folders = Folders::new(folders.into_iter().chain(named));
        Self { rules, folders }
    }

    /// Everything that a description asks for and is not allowed.
    #[must_use]
    pub fn faults(&self, description: &Description) -> Vec<Fault> {
        let functions = description.graph.functions.iter();
        functions.flat_map(|(name, function)| self.faults_of(name, function)).collect()
    }

    /// The same of one function.
    pub(crate) fn faults_of(&self, name: &str, function: &Function) -> Vec<Fault> {
        let uris = function.listen.values().flatten();
        let refused = uris.filter_map(|uri| Some((uri, self.check(uri).err()?)));
        refused
            .map(|(uri, (what, next))| {
                Fault::new(format!("function {name}"), format!("listen: {uri}: {what}"), next)
            })
            .collect()
    }

    fn check(&self, uri: &str) -> Result<(), (String, String)> {
        let (scheme, rest) = uri.split_once("://").unwrap_or((uri, ""));
        let not = |next: String| Err(("the manager does not allow it".to_owned(), next));
        match scheme {
            "unix" => self.folders.check(Path::new(rest)).map_err(|why| {
                let folder = Path::new(rest).parent().unwrap_or(Path::new("/")).display();
                (why.to_string(), format!("{NEXT} unix://{folder}"))
            }),
            "ether" => {
                let rule = Rule::Interface(rest.to_owned());
                if self.rules.contains(&rule) { Ok(()) } else { not(format!("{NEXT} {uri}")) }
            }
            _ => {
                let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
                let at =
                    if host == "localhost" { rest.replace(host, "127.0.0.1") } else { rest.into() };
                match address(&at) {
                    Some((ip, port)) if self.admits(scheme, ip, port) => Ok(()),
                    Some((IpAddr::V6(ip), _)) => not(format!("{NEXT} {scheme}://[{ip}]")),
                    Some((ip, _)) => not(format!("{NEXT} {scheme}://{ip}")),
                    None => not(format!("write an address; {NEXT} {scheme}://ADDRESS allows it")),
                }
            }
        }
    }

    fn admits(&self, scheme: &str, ip: IpAddr, port: Option<u16>) -> bool {
        ip.is_loopback()
            || self.rules.iter().any(|rule| match rule {
                Rule::Address(of, at, only) => {
                    of == scheme
                        && (*at == ip || at.is_unspecified())
                        && (only.is_none() || *only == port)
                }
                _ => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rules: &[&str]) -> Allowed {
        Allowed::new(["/run".into()], rules.iter().map(|r| r.parse().unwrap()).collect())
    }

    #[test]
    fn without_a_rule_only_loopback_and_the_managers_folders_are_allowed() {
        let none = allowed(&[]);
        for uri in
            ["tcp4://127.0.0.1:0", "udp6://[::1]:6363", "tcp4://localhost:1", "unix:///run/x"]
        {
            assert_eq!(none.check(uri), Ok(()), "{uri}");
        }
        for uri in [
            "tcp4://0.0.0.0:0",
            "udp6://[::]:6363",
            "tcp4://192.0.2.1:1",
            "tcp4://host.example:1",
            "tcp4://localhost.example:1",
            "unix:///etc/x",
            "unix:///run/../etc/x",
            "unix://x",
            "ether://eth0",
        ] {
            let (_, next) = none.check(uri).unwrap_err();
            assert!(next.contains("--allow-listen"), "{uri}: {next}");
        }
    }

    #[test]
    fn a_rule_allows_what_it_names_and_no_more() {
        let some =
            allowed(&["tcp4://0.0.0.0:6363", "udp4://192.0.2.1", "unix:///etc", "ether://e0"]);
        for uri in [
            "tcp4://0.0.0.0:6363",
            "tcp4://192.0.2.9:6363",
            "udp4://192.0.2.1:5",
            "unix:///etc/x",
            "ether://e0",
        ] {
            assert_eq!(some.check(uri), Ok(()), "{uri}");
        }
        for uri in [
            "tcp4://0.0.0.0:6364",
            "udp4://192.0.2.2:5",
            "udp4://0.0.0.0:5",
            "unix:///usr/x",
            "ether://e1",
        ] {
            assert!(some.check(uri).is_err(), "{uri}");
        }
        for text in ["tcp4://", "http://a", "unix://x", "ether://", "tcp4://host"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
