//! The router of the node that answers: clocks, keys, MTU and links that work one way only.

use super::Finding;
use crate::cmd::route::routing::{ask, networks};
use crate::output::Context;
use serde_json::Value;

/// A neighbour's clock that differs by more is a warning: certificates end and begin by it.
const CLOCK_MAX_MS: i64 = 60_000;
/// A refusal that is older does not matter any more.
const RECENT_S: u64 = 300;
/// Fetches that fail in a row before it is told.
const FETCHES_MAX: u64 = 5;

pub(super) fn check(cx: &Context, checks: &mut Vec<Finding>) {
    // A node without a router is no mistake.
    let Ok(first) = ask(cx, None, "view", None) else { return };
    checks.extend(judge(&first));
    for network in networks(&first).iter().skip(1) {
        match ask(cx, Some(network), "view", None) {
            Ok(view) => checks.extend(judge(&view)),
            Err(error) => checks.push(Finding::failed(
                "routing",
                format!("the router in {network} does not answer: {error}"),
                "look at the log of the node",
            )),
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn judge(view: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(rows(&view["neighbours"]).flat_map(neighbour));
    found.extend(rows(&view["links"]).filter_map(link));
    let recent = |r: &&Value| r["ago_s"].as_u64().is_some_and(|ago| ago <= RECENT_S);
    found.extend(rows(&view["refused"]).filter(recent).map(refused));
    if found.is_empty() {
        let count = rows(&view["neighbours"]).count();
        let router = text(view, "router");
        found.push(Finding::ok("routing", format!("{router}: {count} neighbours, all in order")));
    }
    found
}

fn neighbour(n: &Value) -> Vec<Finding> {
    let name = text(n, "router");
    let mut found = Vec::new();
    if n["usable"] == false {
        found.push(Finding::warning(
            "routing, one way",
            format!("{name} is heard and does not hear this router"),
            "does a firewall drop what leaves here? does that router hold this one down, or refuse \
             its key (its log says so)?",
        ));
    }
    if n["full_size"] == false {
        found.push(Finding::warning(
            "routing, MTU",
            format!("small packets pass the link to {name}, packets of 8000 octets do not"),
            "lower the MTU of the link (`routing.neighbour.mtu`, at both ends), or let fragments pass",
        ));
    } else if n["fetches_failed"].as_u64().is_some_and(|failed| failed >= FETCHES_MAX) {
        found.push(Finding::warning(
            "routing, fetch",
            format!("{name} is heard, and its advertisement cannot be fetched"),
            "is the MTU of the link too large (`routing.neighbour.mtu`)? does its forwarder reach \
             its router?",
        ));
    }
    if let Some(ahead) = n["clock_ahead_ms"].as_i64().filter(|ms| ms.abs() > CLOCK_MAX_MS) {
        let (s, word) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
        found.push(Finding::warning(
            "routing, clock",
            format!("the clock of {name} is {s} s {word} this machine's"),
            "set both by NTP: certificates are valid by it, and who is a day ahead is not believed",
        ));
    }
    found
}

fn link(link: &Value) -> Option<Finding> {
    let uri = text(link, "uri");
    if link["face"].is_null() {
        let mend = "check the address and the network; the router's log has the reason";
        return Some(Finding::warning(
            "routing, link",
            format!("{uri}: no face can be made"),
            mend,
        ));
    }
    let mend = "does a node with routing listen there? is its network the same, and is its key \
                believed here?";
    let silent = || Finding::warning("routing, link", format!("{uri}: no router is heard"), mend);
    (link["is_heard"] == false).then(silent)
}

fn refused(refusal: &Value) -> Finding {
    let (router, why) = (text(refusal, "router"), text(refusal, "why"));
    let key = refusal["key"].as_str().unwrap_or("no key");
    Finding::failed(
        "routing, keys",
        format!("what {router} says is refused, signed with {key}: {why}"),
        "give it a certificate of this network (network.cert and network.key of the first router), \
         named as expected; if it says when it is valid, look at both clocks",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Grade;
    use serde_json::json;

    fn one(view: &Value) -> Finding {
        let mut found = judge(view);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn with(what: &str, value: Value) -> Value {
        let mut neighbour = json!({
            "router": "/net/b", "usable": true, "full_size": true, "fetches_failed": 0,
            "clock_ahead_ms": 20,
        });
        neighbour[what] = value;
        let link = json!({ "uri": "udp4://192.0.2.1:6363", "face": 300, "is_heard": true });
        json!({ "router": "/net/a", "neighbours": [neighbour], "links": [link], "refused": [] })
    }

    #[test]
    fn clock_mtu_and_one_sided_links_are_found_and_nothing_else() {
        assert_eq!(one(&with("usable", json!(true))).result, Grade::Ok);
        let deaf = one(&with("usable", json!(false)));
        assert_eq!((deaf.check, deaf.result), ("routing, one way", Grade::Warning));
        assert_eq!(one(&with("full_size", json!(false))).check, "routing, MTU");
        assert_eq!(one(&with("fetches_failed", json!(9))).check, "routing, fetch");
        let clock = one(&with("clock_ahead_ms", json!(-100_000)));
        assert!(clock.found.contains("100 s behind"), "{clock:?}");
        assert_eq!(one(&with("clock_ahead_ms", json!(59_000))).result, Grade::Ok);
    }

    #[test]
    fn a_refused_key_is_told_with_the_name_that_was_expected() {
        let mut view = with("usable", json!(true));
        view["refused"] = json!([{
            "router": "/net/c", "key": "/net/c/KEY/1/NA", "ago_s": 3,
            "why": "signed with /net/c/KEY/1/NA; expected is a key of /net/c/32=DV",
        }]);
        let keys = one(&view);
        assert!(keys.found.contains("expected is a key of /net/c/32=DV"), "{keys:?}");
        view["refused"][0]["ago_s"] = json!(4000);
        assert_eq!(one(&view).result, Grade::Ok, "long ago");
    }

    #[test]
    fn a_link_nobody_answers_on_is_told() {
        let mut view = with("usable", json!(true));
        view["links"][0]["is_heard"] = json!(false);
        assert!(one(&view).found.contains("no router is heard"));
        view["links"][0]["face"] = Value::Null;
        assert!(one(&view).found.contains("no face"));
    }
}
