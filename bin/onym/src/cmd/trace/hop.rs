//! What one node says of a name.

use onym_wire::trace::{APPLICATION, FORWARDER, HOP_LIMIT, OBJECT, Reply};
use serde::Serialize;
use serde_json::Value;

/// The answer of one node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Hop {
    /// What the node is called.
    pub(crate) node: String,
    /// The code of RFC 9507.
    pub(crate) code: u16,
    /// What it would do, in words of docs/verdicts.md; none where the node tells only the code.
    pub(crate) verdict: Option<String>,
    /// Which table decides.
    pub(crate) decides: Option<String>,
    /// In a sentence of the node.
    pub(crate) sentence: Option<String>,
    /// The face that the request came by.
    pub(crate) face: Option<u64>,
    pub(crate) uri: Option<String>,
    /// The route and the strategy.
    pub(crate) route: Option<String>,
    pub(crate) strategy: Option<String>,
    /// The faces that it would ask.
    pub(crate) next: Vec<Next>,
    /// Of a publication: its frame as it leaves, and the applications of the node that get it.
    #[serde(skip)]
    pub(crate) frame: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscribers: Option<u64>,
}

/// A face that a node would ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Next {
    pub(crate) face: u32,
    pub(crate) uri: String,
    /// Whether another node is at its other end, and not an application.
    pub(crate) leads_on: bool,
    pub(crate) up: bool,
}

impl Hop {
    /// Reads a reply; the elements of ours may be missing.
    pub(crate) fn of(reply: &Reply<'_>) -> Self {
        let more = reply.more.and_then(|json| serde_json::from_slice(json).ok());
        let told: Value = more.unwrap_or_default();
        let word = |member: &str| told[member].as_str().map(str::to_owned);
        let mut hop = Self {
            node: reply.sender.to_string(),
            code: reply.code,
            verdict: word("verdict"),
            decides: word("decides"),
            sentence: word("sentence"),
            face: told["face"].as_u64(),
            uri: word("uri"),
            route: word("fib_prefix"),
            strategy: word("strategy"),
            next: Vec::new(),
            frame: told["frame"].as_str().and_then(octets),
            subscribers: told["subscribers"].as_u64(),
        };
        // Those that were asked already, when the same is pending.
        let chosen = ["chosen", "asked"].map(|list| told[list].as_array());
        let chosen = chosen.into_iter().flatten().find(|list| !list.is_empty());
        let faces = chosen.into_iter().flatten().filter_map(Value::as_u64);
        hop.next = faces.filter_map(|face| next(face, &told["next_hops"])).collect();
        hop
    }

    /// Whether this is the end of the way: nothing behind it is asked.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.code, FORWARDER | APPLICATION | OBJECT)
    }

    /// The faces that lead to further nodes.
    pub(crate) fn onward(&self) -> impl Iterator<Item = &Next> {
        let is_end = matches!(self.code, FORWARDER | OBJECT);
        self.next.iter().filter(move |next| next.leads_on && next.up && !is_end)
    }

    /// Whether its name is that of no other node: the one under /localhost that a patch of NFD has unless
    /// it is configured is that of all.
    pub(crate) fn has_own_name(&self) -> bool {
        !self.node.starts_with("/localhost/")
    }

    /// Whether the node told more than the code.
    pub(crate) fn is_told(&self) -> bool {
        self.verdict.is_some()
    }

    /// What the node does with the name, in a few words.
    pub(crate) fn decision(&self) -> String {
        let Some(verdict) = &self.verdict else {
            return match self.code {
                HOP_LIMIT => "passes it on".to_owned(),
                code => onym_wire::trace::meaning(code).to_owned(),
            };
        };
        let faces = self.next.iter().map(|next| {
            let down = if next.up { "" } else { ", down" };
            format!("face {} {}{down}", next.face, next.uri)
        });
        let faces = faces.collect::<Vec<_>>().join(" and ");
        if let Some(subscribers) = self.subscribers {
            let to = if faces.is_empty() { String::new() } else { format!(" to {faces}") };
            let apps = if subscribers == 1 { "application" } else { "applications" };
            return format!("{verdict}{to}, {subscribers} {apps}");
        }
        let route = self.route.as_deref().unwrap_or("/");
        let strategy = self.strategy.as_deref().map(short).unwrap_or_default();
        match (self.code, self.next.is_empty()) {
            (OBJECT, _) => "answers from its content store".to_owned(),
            (FORWARDER, _) => "answers itself".to_owned(),
            (APPLICATION, false) => format!("{verdict}: {route} by {strategy} to {faces}"),
            (_, false) => format!("{verdict}: {route} by {strategy} to {faces}"),
            (_, true) => format!("ends it, {verdict}"),
        }
    }
}

/// Octets in hexadecimal.
fn octets(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2).map(std::str::from_utf8);
    digits.map(|pair| u8::from_str_radix(pair.ok()?, 16).ok()).collect()
}

/// The one component that tells strategies apart.
fn short(strategy: &str) -> &str {
    let mut parts = strategy.split('/').filter(|part| !part.is_empty());
    parts.find(|part| !matches!(*part, "localhost" | "nfd" | "strategy")).unwrap_or(strategy)
}

/// The next hop over `face`, as the list of them describes it.
fn next(face: u64, hops: &Value) -> Option<Next> {
    let found = hops.as_array()?.iter().find(|hop| hop["face"] == face);
    let (uri, scope) = match found {
        Some(hop) => (hop["uri"].as_str(), hop["scope"].as_str()),
        None => (None, None),
    };
    let up = found.is_none_or(|hop| hop["up"] != false);
    Some(Next {
        face: u32::try_from(face).ok()?,
        uri: uri.unwrap_or_default().to_owned(),
        leads_on: scope != Some("local"),
        up,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_wire::Name;
    use serde_json::json;

    fn hop(code: u16, told: &Value) -> Hop {
        let (sender, json) = ("/site/a".parse::<Name>().unwrap(), told.to_string());
        Hop::of(&Reply { sender: sender.as_ref(), code, more: Some(json.as_bytes()) })
    }

    #[test]
    fn a_node_of_ours_tells_where_the_way_goes_on() {
        let told = json!({
            "verdict": "forwarded", "decides": "strategy", "sentence": "it goes on", "face": 300,
            "uri": "fd://9", "fib_prefix": "/a", "chosen": [257, 258, 259],
            "strategy": "/localhost/nfd/strategy/multicast/v=5",
            "next_hops": [
                { "face": 257, "uri": "udp4://192.0.2.1:6363", "up": true, "scope": "non-local" },
                { "face": 258, "uri": "tcp4://192.0.2.2:6363", "up": false, "scope": "non-local" },
                { "face": 259, "uri": "fd://3", "up": true, "scope": "local" },
            ],
        });
        let hop = hop(APPLICATION, &told);
        assert_eq!(hop.onward().map(|next| next.face).collect::<Vec<_>>(), [257]);
        let decision = hop.decision();
        assert!(decision.starts_with("forwarded: /a by multicast to face 257 udp4"), "{decision}");
        assert!(decision.contains("face 258 tcp4://192.0.2.2:6363, down"), "{decision}");
    }

    #[test]
    fn what_is_pending_goes_where_it_was_sent() {
        let told = json!({
            "verdict": "aggregated", "chosen": [], "asked": [257],
            "next_hops": [{ "face": 257, "uri": "udp4://192.0.2.1:6363", "scope": "non-local" }],
        });
        assert_eq!(hop(HOP_LIMIT, &told).onward().count(), 1);
    }

    #[test]
    fn others_tell_the_code_and_whatever_they_say_is_read() {
        let sender = "/site/a".parse::<Name>().unwrap();
        let bare = Hop::of(&Reply { sender: sender.as_ref(), code: HOP_LIMIT, more: None });
        assert!(!bare.is_told() && bare.decision() == "passes it on");
        for told in [json!([]), json!("x"), json!({"chosen": 9, "next_hops": [[]], "face": -1})] {
            let hop = hop(HOP_LIMIT, &told);
            assert!(hop.next.is_empty() && !hop.is_told(), "{told}");
        }
        let wild = json!({"verdict": "x", "chosen": [1, 5_000_000_000_u64], "next_hops": []});
        assert_eq!(hop(HOP_LIMIT, &wild).next.len(), 1, "a FaceId that cannot be is left out");
    }
}
