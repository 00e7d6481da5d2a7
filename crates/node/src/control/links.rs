//! Which faces are links of the push half, as `push.link` says.

use super::target::resolve;
use crate::config::PushLink;
use onym_wire::faceuri::{FaceUri, Host};
use std::collections::HashMap;

/// The links of the configuration by where they lead, so that a face is compared with none of them.
/// Each URI is resolved once, when it comes into force.
#[derive(Debug, Default)]
pub(super) struct Links {
    each: Vec<(PushLink, Result<FaceUri, String>)>,
    /// Those over a face of this node, by its remote URI; of several the first one.
    to: HashMap<String, usize>,
    /// Those over a connection that the neighbour makes, by its host; of several the first one.
    from: HashMap<Host, usize>,
    /// Some have a capacity.
    have_capacities: bool,
}

impl Links {
    pub(super) fn of(links: &[PushLink]) -> Self {
        let mut all = Self::default();
        links.iter().for_each(|link| all.add(link.clone()));
        all
    }

    pub(super) fn add(&mut self, link: PushLink) {
        let (place, uri) = (self.each.len(), resolve(&link.face));
        self.have_capacities |= link.capacity_mbit > 0;
        match &uri {
            Ok(FaceUri::Tcp(end)) if end.port == Some(0) => {
                self.from.entry(end.host.clone()).or_insert(place);
            }
            Ok(uri) => {
                self.to.entry(uri.to_string()).or_insert(place);
            }
            Err(_) => {}
        }
        self.each.push((link, uri));
    }

    /// Whether it is known of any what it carries.
    pub(super) const fn have_capacities(&self) -> bool {
        self.have_capacities
    }

    /// The link that a face to `remote` is.
    pub(super) fn over(&self, remote: &str) -> Option<&PushLink> {
        let from = || match remote.parse() {
            Ok(FaceUri::Tcp(end)) => self.from.get(&end.host),
            _ => None,
        };
        let place = self.to.get(remote).or_else(from)?;
        self.each.get(*place).map(|(link, _)| link)
    }

    /// Where the links lead that are before the first one that leads nowhere, without those that
    /// neighbours make; and what is wrong with that one.
    pub(super) fn faces(&self) -> (Vec<String>, Result<(), String>) {
        let mut faces = Vec::new();
        for (link, uri) in &self.each {
            match uri {
                Ok(FaceUri::Tcp(end)) if end.port == Some(0) => {}
                Ok(uri) => faces.push(uri.to_string()),
                // Those before it are links all the same.
                Err(e) => return (faces, Err(format!("push.link: {}: {e}", link.face))),
            }
        }
        (faces, Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a face is the link that leads where it does, before one that awaits its host at any port; of
    /// several the first one; and no link for what is only like it.
    #[test]
    fn a_face_is_the_first_link_that_leads_there() {
        let link = |face: &str, cost| PushLink {
            capacity_mbit: 0,
            face: face.to_owned(),
            number: 0,
            cost,
            domain: String::new(),
        };
        let links = Links::of(&[
            link("tcp4://192.0.2.1:0", 1),
            link("udp://192.0.2.2", 2),
            link("tcp4://192.0.2.1:6363", 3),
            link("udp4://192.0.2.2:6363", 4),
            link("tcp6://192.0.2.1", 5),
            link("tcp4://192.0.2.1:0", 6),
        ]);
        for (remote, cost) in [
            ("tcp4://192.0.2.1:6363", Some(3)),
            ("tcp4://192.0.2.1:40000", Some(1)),
            ("tcp4://192.0.2.3:40000", None),
            ("udp4://192.0.2.2:6363", Some(2)),
            ("udp4://192.0.2.1:6363", None),
            ("fd://7", None),
        ] {
            assert_eq!(links.over(remote).map(|link| link.cost), cost, "{remote}");
        }
        let (faces, done) = links.faces();
        assert_eq!(
            faces,
            ["udp4://192.0.2.2:6363", "tcp4://192.0.2.1:6363", "udp4://192.0.2.2:6363"]
        );
        assert!(done.is_err_and(|told| told.starts_with("push.link: tcp6://192.0.2.1: ")));
    }
}
