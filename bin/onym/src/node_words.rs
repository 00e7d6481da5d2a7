//! Management terms as text for users, and users' names of faces.

use crate::exit::{Exit, Failure};
use crate::session;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_forward::{Unsent, Verdict};
use onym_link::FrameVerdict;
use onym_wire::FaceUri;
use onym_wire::mgmt::{
    CS_ADMIT, CS_SERVE, FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS, FACE_RELIABILITY,
    FaceQueryFilter, FaceStatus, ORIGIN_APP, ORIGIN_AUTOCONF, ORIGIN_AUTOREG, ORIGIN_CLIENT,
    ORIGIN_NLSR, ORIGIN_PREFIX_ANNOUNCEMENT, ORIGIN_STATIC, ROUTE_CAPTURE, ROUTE_CHILD_INHERIT,
};
use std::net::{IpAddr, ToSocketAddrs as _};

fn bits(flags: u64, names: &[(u64, &'static str)]) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect()
}

pub(crate) fn face_flags(flags: u64) -> Vec<&'static str> {
    let names = [
        (FACE_LOCAL_FIELDS, "local-fields"),
        (FACE_RELIABILITY, "reliability"),
        (FACE_CONGESTION_MARKING, "congestion-marking"),
    ];
    bits(flags, &names)
}

pub(crate) fn route_flags(flags: u64) -> Vec<&'static str> {
    bits(flags, &[(ROUTE_CHILD_INHERIT, "child-inherit"), (ROUTE_CAPTURE, "capture")])
}

pub(crate) fn cs_flags(flags: u64) -> Vec<&'static str> {
    bits(flags, &[(CS_ADMIT, "admit"), (CS_SERVE, "serve")])
}

const ORIGINS: [(u64, &str); 7] = [
    (ORIGIN_APP, "app"),
    (ORIGIN_AUTOREG, "autoreg"),
    (ORIGIN_CLIENT, "client"),
    (ORIGIN_AUTOCONF, "autoconf"),
    (ORIGIN_NLSR, "nlsr"),
    (ORIGIN_PREFIX_ANNOUNCEMENT, "prefixann"),
    (ORIGIN_STATIC, "static"),
];

pub(crate) fn origin(origin: u64) -> String {
    let known = ORIGINS.iter().find(|(n, _)| *n == origin);
    known.map_or_else(|| origin.to_string(), |(_, word)| (*word).to_owned())
}

/// An origin as users write it: a word or a number.
pub(crate) fn parse_origin(text: &str) -> Result<u64, String> {
    if let Some((number, _)) = ORIGINS.iter().find(|(_, word)| *word == text) {
        return Ok(*number);
    }
    let words: Vec<_> = ORIGINS.iter().map(|(_, word)| *word).collect();
    text.parse::<u16>()
        .map(u64::from)
        .map_err(|_| format!("write {} or a number up to 65535", words.join(", ")))
}

/// The canonical form of a face URI, its host name resolved.
pub(crate) fn canonical_uri(text: &str) -> anyhow::Result<String> {
    let uri: FaceUri = text.parse().map_err(|error| {
        Failure::new(Exit::Usage, format!("`{text}` is not a face URI"))
            .why(error)
            .next("use one such as udp4://192.0.2.1:6363, tcp://router.example or ether://[08:00:27:01:01:01]")
    })?;
    if let Some(canonical) = uri.canonical() {
        return Ok(canonical.to_string());
    }
    if matches!(uri, FaceUri::Other(..)) {
        return Err(Failure::new(Exit::Usage, format!("`{text}` is not a face URI"))
            .why(format!("unknown scheme {}", uri.scheme()))
            .next("use udp4, udp6, udp, tcp4, tcp6, tcp, ws, unix or ether")
            .into());
    }
    resolve(&uri).ok_or_else(|| {
        Failure::new(Exit::Failed, format!("`{text}` cannot be resolved"))
            .why("the host has no address of this family, or the lookup failed")
            .next("use an address in place of the host name")
            .into()
    })
}

fn resolve(uri: &FaceUri) -> Option<String> {
    let text = uri.to_string();
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split('/').next()?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let addresses = (host, 0).to_socket_addrs().ok()?;
    addresses.map(|a| a.ip()).find_map(|ip: IpAddr| uri.resolved(ip)).map(|uri| uri.to_string())
}

/// The face that `text` names: an id, or a remote URI.
pub(crate) fn find_face(client: &mut Client, text: &str) -> anyhow::Result<FaceStatus> {
    let filter = match text.parse::<u64>() {
        Ok(id) => FaceQueryFilter { face_id: Some(id), ..FaceQueryFilter::default() },
        Err(_) => FaceQueryFilter { uri: Some(canonical_uri(text)?), ..FaceQueryFilter::default() },
    };
    let mut found = mgmt::faces_query(client, &filter).map_err(session::failure)?;
    match (found.pop(), found.len()) {
        (Some(face), 0) => Ok(face),
        (None, _) => Err(Failure::new(Exit::NotFound, format!("there is no face {text}"))
            .next("see `onym face list`")
            .into()),
        (Some(_), more) => Err(Failure::new(
            Exit::Failed,
            format!("{} faces have the remote URI {text}", more + 1),
        )
        .next("use the id of one: see `onym face list`")
        .into()),
    }
}

/// The words of docs/verdicts.md, with what each means.
pub(crate) fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let packets = Verdict::ALL.iter().map(|v| (v.label(), v.text()));
    let frames = FrameVerdict::ALL.iter().map(|v| (v.label(), v.text()));
    let copies = Unsent::ALL.iter().map(|u| (u.label(), u.text()));
    packets.chain(frames).chain(copies)
}

/// What a word of docs/verdicts.md means; none for others.
pub(crate) fn meaning(word: &str) -> Option<&'static str> {
    meanings().find(|(label, _)| *label == word).map(|(_, text)| text.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_words_or_numbers() {
        assert_eq!(parse_origin("static"), Ok(255));
        assert_eq!(parse_origin("7"), Ok(7));
        assert!(parse_origin("65536").is_err() && parse_origin("x").is_err());
        assert_eq!((origin(0), origin(9)), ("app".into(), "9".into()));
    }

    #[test]
    fn uris_become_canonical() {
        assert_eq!(canonical_uri("udp://192.0.2.1").unwrap(), "udp4://192.0.2.1:6363");
        assert_eq!(canonical_uri("tcp4://localhost:7").unwrap(), "tcp4://127.0.0.1:7");
        assert!(canonical_uri("192.0.2.1").is_err());
    }
}
