//! Which names and pages a door for HTTP or WebSocket answers to.
//!
//! A web page may have a browser connect to any address, by a name of its own that it lets
//! resolve to that address (DNS rebinding). The browser tells by which name it asks (`Host`) and
//! which page does (`Origin`); a program that is no browser tells no origin.

use std::net::IpAddr;

/// Whether a `Host` header names this machine by itself: an address of loopback, or `localhost`.
///
/// # Example
/// ```
/// use onym_sys::origin::is_loopback_host;
/// assert!(is_loopback_host("localhost:6380") && is_loopback_host("[::1]:80"));
/// assert!(!is_loopback_host("localhost.example:6380") && !is_loopback_host("127.0.0.1.example"));
/// ```
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    let name = host_name(host);
    match name.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether an `Origin` header names a page that this machine served on loopback. `null`, which
/// files and sandboxed pages have, is none.
#[must_use]
pub fn is_loopback_origin(origin: &str) -> bool {
    match origin.split_once("://") {
        Some(("http" | "https", host)) => is_loopback_host(host),
        _ => false,
    }
}

/// Whether the page that `origin` names was served at `host`, the `Host` header of the same
/// request: by the same name and port.
#[must_use]
pub fn is_same_origin(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, from)| {
        matches!(scheme, "http" | "https") && from.eq_ignore_ascii_case(host)
    })
}

/// The name or address in `host[:port]`, brackets taken off. What is neither is empty.
#[must_use]
pub fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((name, after)) if is_port(after) => name,
            _ => "",
        };
    }
    match host.find(':') {
        None => host,
        Some(at) if is_port(&host[at..]) => &host[..at],
        Some(_) => "",
    }
}

/// Nothing, or a colon and up to five digits.
fn is_port(text: &str) -> bool {
    let digits = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    text.is_empty() || text.strip_prefix(':').is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_look_like_loopback_and_are_not_are_told_apart() {
        for host in ["127.0.0.1", "127.9.9.9:1", "LOCALHOST:80", "[::1]", "[::ffff:127.0.0.1]:5"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in [
            "",
            "localhost.",
            "localhost.evil.example",
            "evil.example:6380",
            "127.0.0.1.nip.example",
            "127.0.0.1:80:80",
            "127.0.0.1:80@evil.example",
            "[::1",
            "[::1]evil.example",
            "::1",
            "2130706433",
            "10.0.0.1",
            "[::2]",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }

    #[test]
    fn origins_are_pages_of_loopback_or_of_the_same_place() {
        for origin in ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:8080"] {
            assert!(is_loopback_origin(origin), "{origin}");
        }
        for origin in ["null", "", "http://evil.example", "ftp://localhost", "file://", "localhost"]
        {
            assert!(!is_loopback_origin(origin), "{origin}");
        }
        assert!(is_same_origin("https://lab.example:8443", "LAB.example:8443"));
        assert!(!is_same_origin("http://lab.example:81", "lab.example"));
        assert!(!is_same_origin("null", "null"));
    }
}
