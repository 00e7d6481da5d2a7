//! Packets in words, for messages.

use crate::wire::name::uri;
use crate::wire::tlv::hex;
use crate::wire::view::Seen;
use std::fmt::Write as _;

/// One line that says what a packet is, near to how a script would write it.
#[must_use]
pub fn seen(seen: &Seen) -> String {
    let mut out = packet(seen);
    let lp = &seen.lp;
    let mut add = |key: &str, value: Option<String>| {
        if let Some(v) = value {
            let _ = write!(out, " {key}={v}");
        }
    };
    add("token", lp.token.as_deref().map(hex));
    add("mark", lp.mark.map(|n| n.to_string()));
    add("in-face", lp.in_face.map(|n| n.to_string()));
    add("next-face", lp.next_face.map(|n| n.to_string()));
    add("seq", lp.seq.map(|n| n.to_string()));
    add("frag", lp.frag.map(|(i, n)| format!("{i}/{n}")));
    add("tx", lp.tx.map(|n| n.to_string()));
    if !lp.acks.is_empty() {
        let acks: Vec<String> = lp.acks.iter().map(u64::to_string).collect();
        add("ack", Some(acks.join(",")));
    }
    for (flag, word) in [
        (lp.no_cache, " no-cache"),
        (lp.no_discovery, " no-discovery"),
        (lp.announce.is_some(), " announce"),
    ] {
        if flag {
            out.push_str(word);
        }
    }
    out
}

fn packet(seen: &Seen) -> String {
    let Some(net) = &seen.net else { return "lp".into() };
    if seen.lp.frag.is_some_and(|(_, n)| n > 1) {
        return format!("lp with a fragment of {} octets", net.len());
    }
    if let Some(i) = seen.interest() {
        let mut out = match seen.lp.nack {
            Some(reason) => format!("nack {reason} {}", uri(&i.name)),
            None => format!("interest {}", uri(&i.name)),
        };
        for (flag, word) in [(i.can_be_prefix, " prefix"), (i.must_be_fresh, " fresh")] {
            if flag {
                out.push_str(word);
            }
        }
        if !i.hint.is_empty() {
            let hints: Vec<String> = i.hint.iter().map(|n| uri(n)).collect();
            let _ = write!(out, " hint={}", hints.join(","));
        }
        if let Some(nonce) = &i.nonce {
            let _ = write!(out, " nonce={}", hex(nonce));
        }
        if let Some(ms) = i.lifetime {
            let _ = write!(out, " lifetime={ms}");
        }
        if let Some(hop) = i.hop_limit {
            let _ = write!(out, " hop={hop}");
        }
        return out;
    }
    match seen.data() {
        Some(d) => {
            let mut out = format!("data {}", uri(&d.name));
            if let Some(ms) = d.freshness {
                let _ = write!(out, " fresh={ms}");
            }
            if let Some(c) = &d.content {
                let _ = write!(out, " ({} octets)", c.len());
            }
            out
        }
        None => format!("raw {}", hex(&net[..net.len().min(60)])),
    }
}
