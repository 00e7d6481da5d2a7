//! Whether the network hears of a prefix that a command registered, and why not.

use super::routing::try_ask;
use crate::output::{self, Context};
use onym_wire::Name;
use onym_wire::mgmt::ORIGIN_CLIENT;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// A router looks at the routes of its forwarder twice a second.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(250);

/// Tells soon on standard error what became of `prefix`, which was registered with `origin`, beside what
/// the command does. Whoever did not ask for an announcement hears of it only where there is a router.
pub(crate) fn tell_soon(cx: &Context, prefix: &Name, origin: Option<u64>) {
    let was_asked = origin == Some(ORIGIN_CLIENT);
    let (cx, prefix) = (cx.clone(), prefix.clone());
    let tell = move || {
        if let Some(text) = judge(&cx, &prefix, was_asked) {
            output::tell(format_args!("onym: {text}"));
        }
    };
    // Without a thread the command does what it is for.
    let _ = thread::Builder::new().name("announced".into()).spawn(tell);
}

fn judge(cx: &Context, prefix: &Name, was_asked: bool) -> Option<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let Ok(told) = try_ask(cx, None, "explain", Some(prefix)) else {
            return was_asked.then(|| no_router(prefix));
        };
        if told["prefix"] == prefix.to_string() && !told["local"].is_null() {
            let view = try_ask(cx, None, "view", None).unwrap_or_default();
            return Some(announced(prefix, &told, &view));
        }
        if Instant::now() >= until {
            return Some(not_announced(prefix, was_asked));
        }
        thread::sleep(STEP);
    }
}

fn no_router(prefix: &Name) -> String {
    format!(
        "{prefix} is not announced: no router runs on this node; set routing.network in its \
         configuration, or start `onym route run NETWORK`"
    )
}

fn announced(prefix: &Name, told: &Value, view: &Value) -> String {
    let router = view["router"].as_str().unwrap_or("the router of this node");
    let cost = &told["local"];
    let reached = view["destinations"].as_array().map_or(0, Vec::len);
    let neighbours = view["neighbours"].as_array().map_or(0, Vec::len);
    if neighbours == 0 {
        return format!(
            "{prefix} is announced by {router} at cost {cost}, and nobody hears it: the router has \
             no neighbours (`onym route status`)"
        );
    }
    format!("{prefix} is announced by {router} at cost {cost}; {reached} routers are reached")
}

fn not_announced(prefix: &Name, was_asked: bool) -> String {
    if was_asked {
        return format!(
            "{prefix} is not announced: the router of this node does not take it; \
             `onym route explain {prefix}` and its log say more"
        );
    }
    format!(
        "{prefix} is known on this node only: its router announces what is registered for the network \
         (origin client). --announce does that; routing.announce = \"all\" for everything"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_newcomer_reads_why_a_prefix_is_or_is_not_routed() {
        let prefix: Name = "/app/film".parse().unwrap();
        let told = json!({ "local": 3 });
        let view = json!({ "router": "/net/a", "neighbours": [1], "destinations": [1, 2] });
        let text = announced(&prefix, &told, &view);
        assert_eq!(text, "/app/film is announced by /net/a at cost 3; 2 routers are reached");
        let alone = announced(&prefix, &told, &json!({ "router": "/net/a", "neighbours": [] }));
        assert!(alone.contains("nobody hears it"), "{alone}");
        assert!(not_announced(&prefix, false).contains("--announce"));
        assert!(no_router(&prefix).contains("routing.network"));
    }
}
