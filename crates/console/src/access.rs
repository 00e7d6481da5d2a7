//! Whose requests are answered, and the cookie of a browser.

use crate::refused::{Kind, Refused};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use onym_http::access::{Foreign, check_loopback, check_origin, is_json};
use onym_http::entries::{ENTRY_LIFE, Entries};
use onym_http::server::Caller;
use onym_sys::peer::own_uid;
use std::net::SocketAddr;

/// The header by which a browser tells from which site a request comes.
const FETCH_SITE: &str = "sec-fetch-site";

/// Where the console listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Door {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it speaks TLS there.
    pub has_tls: bool,
}

impl Door {
    /// Where browsers find it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The name of the cookie: browsers have one jar for all ports of a host.
    fn cookie(&self) -> String {
        let prefix = if self.has_tls { "__Host-" } else { "" };
        format!("{prefix}onym-console-{}", self.address.port())
    }

    /// The header that gives a browser the secret `own`, or takes it away.
    pub(crate) fn set_cookie(&self, own: Option<&str>) -> String {
        let age = own.map_or(0, |_| ENTRY_LIFE.as_secs());
        let secure = if self.has_tls { "; Secure" } else { "" };
        let (name, own) = (self.cookie(), own.unwrap_or_default());
        format!("{name}={own}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
    }

    /// The secret that a request has.
    pub(crate) fn own<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.cookie();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
        let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|p| p.split_once('='));
        pairs.find(|(key, _)| key.trim() == name).map(|(_, own)| own.trim())
    }

    /// Refuses what is not for this place or not from its own page.
    pub(crate) fn check_place(&self, parts: &Parts) -> Result<(), Refused> {
        let headers = &parts.headers;
        let place = match self.address.ip().is_loopback() {
            true => check_loopback(headers),
            false => check_origin(headers),
        };
        place.map_err(foreign)?;
        // A user of this machine is known on loopback: it is this program's own, or root.
        let caller = parts.extensions.get::<Caller>().and_then(|caller| caller.uid);
        if caller.is_some_and(|uid| uid != 0 && uid != own_uid()) {
            let text = "this console answers the user who started it, and root";
            return Err(Refused::new(Kind::Foreign, text));
        }
        Ok(())
    }

    /// Refuses a request of the interface that no page of this console sends.
    pub(crate) fn check_page(&self, parts: &Parts) -> Result<(), Refused> {
        self.check_place(parts)?;
        let site = parts.headers.get(FETCH_SITE).map(|v| v.as_bytes());
        let is_typed = site == Some(b"none".as_slice()) && parts.method == Method::GET;
        if site.is_some_and(|site| site != b"same-origin") && !is_typed {
            let text = "the request comes from another site; only the console's own page may ask";
            return Err(Refused::new(Kind::Foreign, text));
        }
        if parts.method != Method::GET && !is_json(&parts.headers) {
            let text = "the body has to be application/json";
            return Err(Refused::new(Kind::Media, text));
        }
        Ok(())
    }

    /// The same, and refuses a browser that was not let in.
    pub(crate) fn check_browser(&self, parts: &Parts, entries: &Entries) -> Result<(), Refused> {
        self.check_page(parts)?;
        if self.own(&parts.headers).is_some_and(|own| entries.knows(own)) {
            if let Some(caller) = parts.extensions.get::<Caller>() {
                caller.prove();
            }
            return Ok(());
        }
        let text = "this browser has not been let in; open the address that `onym console` prints";
        Err(Refused::new(Kind::Session, text))
    }
}

fn foreign(why: Foreign) -> Refused {
    Refused::new(Kind::Foreign, why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn door(has_tls: bool) -> Door {
        Door { address: "127.0.0.1:7380".parse().unwrap(), has_tls }
    }

    #[test]
    fn a_cookie_is_for_this_port_and_out_of_reach_of_scripts_and_other_sites() {
        let clear = door(false).set_cookie(Some("a1"));
        assert_eq!(clear, "onym-console-7380=a1; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
        let tls = door(true).set_cookie(Some("a1"));
        assert!(tls.starts_with("__Host-onym-console-7380=a1; Path=/;"), "{tls}");
        assert!(tls.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{tls}");
        assert!(door(false).set_cookie(None).contains("=; Path=/; Max-Age=0;"));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; onym-console-1=x"));
        assert_eq!(door(false).own(&headers), None);
        headers.append(header::COOKIE, HeaderValue::from_static("c; onym-console-7380=y=z ;d="));
        assert_eq!(door(false).own(&headers), Some("y=z"));
        assert_eq!(door(true).own(&headers), None);
    }
}
