//! Which handshakes of browsers are accepted, and which are from an application on this machine.
//!
//! Browsers let every page open a WebSocket or a WebTransport session to every address, and say in `Origin` which page it is
//! and in `Host` by which name it looked for us. A page whose name was pointed at our address after
//! it was loaded (DNS rebinding) is foreign by both. Programs that are no browsers send no Origin.

use crate::bridge::{Ends, is_loopback};
use onym_sys::origin::{host_name, is_loopback_host, is_loopback_origin};
use std::net::IpAddr;
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName, header};

/// Header fields by which a proxy says that it speaks for somebody else.
const FORWARDED: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// Who may open WebSocket connections and WebTransport sessions to a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Origins of pages that may: `loopback` (pages of this machine), `any`, `null`, or
    /// `scheme://host[:port]` as browsers write it.
    pub origins: Vec<String>,
    /// Names by which browsers may look for us beside addresses and `localhost`: a host name
    /// without port, or `any`.
    pub hosts: Vec<String>,
    /// Whether an application on this machine gets a local face.
    pub local: bool,
}

impl Default for Gate {
    /// Pages of this machine and programs that are no browsers, none of them local.
    fn default() -> Self {
        Self { origins: vec!["loopback".to_owned()], hosts: Vec::new(), local: false }
    }
}

impl Gate {
    /// Whether `text` can be an entry of [`Gate::origins`].
    #[must_use]
    pub fn is_origin(text: &str) -> bool {
        matches!(text, "loopback" | "any" | "null") || split_origin(text).is_some()
    }

    /// Whether `text` can be an entry of [`Gate::hosts`].
    #[must_use]
    pub fn is_host(text: &str) -> bool {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/:@".contains(c))
    }

    /// Lets a handshake in, and says whether it comes from an application on this machine.
    ///
    /// # Errors
    /// A sentence for the client.
    pub(crate) fn admit(&self, headers: &HeaderMap, ends: Ends) -> Result<bool, String> {
        let origin = single(headers, &header::ORIGIN)?;
        let host = single(headers, &header::HOST)?;
        if let Some(origin) = origin
            && !self.takes_origin(origin)
        {
            return Err(format!(
                "pages of {} may not connect (faces.websocket.origins)",
                shown(origin)
            ));
        }
        // Who is no browser and comes from elsewhere cannot have been led here by a page.
        let is_asked = origin.is_some() || is_loopback(ends.local.ip());
        if let Some(host) = host.filter(|_| is_asked)
            && !self.takes_host(host, ends)
        {
            return Err(format!(
                "{} is not a name of this node (faces.websocket.hosts)",
                shown(host)
            ));
        }
        let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
        let from_here = origin.is_none_or(is_loopback_origin) && host.is_none_or(is_loopback_host);
        Ok(self.local && ends.are_loopback() && !is_forwarded && from_here)
    }

    fn takes_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|entry| match entry.as_str() {
            "any" => true,
            "loopback" => is_loopback_origin(origin),
            entry => entry.eq_ignore_ascii_case(origin),
        })
    }

    fn takes_host(&self, host: &str, ends: Ends) -> bool {
        let name = host_name(host);
        let listed = |entry: &String| entry == "any" || entry.eq_ignore_ascii_case(name);
        if is_loopback_host(host) || self.hosts.iter().any(listed) {
            return true;
        }
        // No name was looked up for an address, so nobody can have pointed it at us. On loopback
        // another address than its own is what a proxy was asked for.
        name.parse::<IpAddr>().is_ok() && !is_loopback(ends.local.ip())
    }
}

/// The one value of a field; more than one would let two readers see two things.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim())),
        _ => Err(format!("{name} is not one readable value")),
    }
}

/// Scheme, and host without port, of an origin.
fn split_origin(origin: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = origin.split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let host = host_name(rest);
    (is_scheme && !host.is_empty() && !rest.contains(['/', '@', ' '])).then_some((scheme, host))
}

/// What a stranger wrote, short and harmless to print.
fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    fn ends(local: &str, remote: &str) -> Ends {
        Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn here() -> Ends {
        ends("127.0.0.1:9696", "127.0.0.1:40000")
    }

    fn far() -> Ends {
        ends("192.0.2.1:9696", "192.0.2.9:40000")
    }

    fn gate(origins: &[&str], hosts: &[&str], local: bool) -> Gate {
        let list = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
        Gate { origins: list(origins), hosts: list(hosts), local }
    }

    #[test]
    fn pages_of_this_machine_and_programs_may_connect_by_default() {
        let gate = Gate::default();
        for origin in
            ["http://localhost:8080", "https://localhost", "http://127.0.0.1", "http://[::1]:3"]
        {
            let fields = headers(&[("origin", origin), ("host", "localhost:9696")]);
            assert_eq!(gate.admit(&fields, here()), Ok(false), "{origin}");
        }
        assert_eq!(gate.admit(&headers(&[("host", "127.0.0.1:9696")]), here()), Ok(false));
        assert_eq!(gate.admit(&headers(&[]), here()), Ok(false));
        assert_eq!(gate.admit(&headers(&[("host", "node.example")]), far()), Ok(false));
    }

    #[test]
    fn foreign_pages_and_rebound_names_may_not() {
        let gate = Gate::default();
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "http://evil.example#.localhost",
            "http://127.0.0.1.evil.example",
            "file://localhost",
            "localhost",
            "http://evil@localhost",
            "",
        ] {
            let fields = headers(&[("origin", origin), ("host", "localhost:9696")]);
            for ends in [here(), far()] {
                assert!(gate.admit(&fields, ends).is_err(), "{origin:?}");
            }
        }
        // The page came from evil.example, whose name now means 127.0.0.1.
        for host in ["evil.example:9696", "evil.example", "0.0.0.0:9696", "203.0.113.5"] {
            assert!(gate.admit(&headers(&[("host", host)]), here()).is_err(), "{host}");
            let fields = headers(&[("host", host), ("origin", &format!("http://{host}"))]);
            assert!(gate.admit(&fields, here()).is_err(), "{host}");
        }
        let twice = headers(&[("origin", "http://localhost"), ("origin", "https://evil.example")]);
        assert!(gate.admit(&twice, here()).is_err());
    }

    #[test]
    fn lists_open_the_gate_to_who_is_in_them() {
        let gate = gate(&["https://app.example"], &["node.example"], false);
        let page = |origin, host| headers(&[("origin", origin), ("host", host)]);
        assert!(gate.admit(&page("https://app.example", "node.example:9696"), far()).is_ok());
        assert!(gate.admit(&page("https://APP.example", "Node.Example"), here()).is_ok());
        assert!(gate.admit(&page("https://app.example", "192.0.2.1:9696"), far()).is_ok());
        assert!(gate.admit(&page("https://app.example:8443", "node.example"), far()).is_err());
        assert!(gate.admit(&page("https://app.example", "other.example"), far()).is_err());
        assert!(gate.admit(&page("http://localhost", "node.example"), far()).is_err());
        let any = Gate { origins: vec!["any".into()], hosts: vec!["any".into()], local: false };
        assert!(any.admit(&page("https://evil.example", "evil.example"), here()).is_ok());
    }

    #[test]
    fn only_who_is_here_without_a_proxy_is_local_and_only_where_that_is_on() {
        let on = gate(&["loopback", "https://app.example"], &["any"], true);
        let app = headers(&[("host", "127.0.0.1:9696")]);
        assert_eq!(on.admit(&app, here()), Ok(true));
        assert_eq!(on.admit(&app, far()), Ok(false));
        assert_eq!(Gate::default().admit(&app, here()), Ok(false));
        let page = headers(&[("host", "localhost"), ("origin", "http://localhost:3000")]);
        assert_eq!(on.admit(&page, here()), Ok(true));
        for field in FORWARDED {
            let mut fields = app.clone();
            fields.insert(field, "203.0.113.7".parse().unwrap());
            assert_eq!(on.admit(&fields, here()), Ok(false), "{field}");
        }
        for fields in [
            headers(&[("host", "node.example")]),
            headers(&[("host", "localhost"), ("origin", "https://app.example")]),
        ] {
            assert_eq!(on.admit(&fields, here()), Ok(false), "{fields:?}");
        }
    }

    #[test]
    fn entries_of_lists_are_checked() {
        for good in ["loopback", "any", "null", "https://a.example", "http://[::1]:80"] {
            assert!(Gate::is_origin(good), "{good}");
        }
        for bad in ["", "a.example", "https://", "https://a.example/path", "https://a b"] {
            assert!(!Gate::is_origin(bad), "{bad}");
        }
        assert!(Gate::is_host("node.example") && Gate::is_host("any"));
        assert!(!Gate::is_host("node.example:80") && !Gate::is_host("http://x"));
    }
}
