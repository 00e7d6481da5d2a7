//! What the node would do with an Interest, and which table decides.

use super::Control;
use crate::shard::{Chooser, Shard};
use onym_tables::FaceId;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::{Name, NameRef};
use serde_json::{Value, json};

impl Control {
    /// `/localhost/onym/explain`: JSON.
    pub(crate) fn explain(&self, name: NameRef<'_>) -> String {
        let owned = name.to_name();
        let text = owned.to_string();
        let scope = scope_of(name);
        let cached: Vec<bool> = self
            .ports
            .iter()
            .map(|port| {
                let name = owned.clone();
                port.ask(move |shard| cached(shard, &name)).unwrap_or(false)
            })
            .collect();
        let (fib, hops) = self.longest_route(name);
        let strategy = self.strategy_of(name);
        let home = self.ports[0].ask(|shard| shard.chooser().clone()).map(|c: Chooser| {
            let value = owned.value();
            c.by_name(value)
        });
        let next_hops: Vec<Value> = hops.iter().map(|(id, cost)| self.hop(*id, *cost)).collect();
        let usable = next_hops.iter().any(|h| h["up"] == json!(true));
        let (decides, verdict, sentence) = if cached.contains(&true) {
            ("cs", "cs_hit", format!("{text} is in the content store: Data is returned at once"))
        } else if let Some(prefix) = &fib {
            let shown = shown(&hops);
            match (hops.is_empty(), usable) {
                (true, _) => {
                    ("fib", "no_route", format!("{prefix} has no next hop: a Nack NoRoute"))
                }
                (false, false) => (
                    "faces",
                    "no_eligible_next_hop",
                    format!(
                        "the longest route is {prefix} to face {shown}, and no such face is up: bring the face up"
                    ),
                ),
                (false, true) => (
                    "fib",
                    "forwarded",
                    format!(
                        "the longest route is {prefix}; strategy {strategy} chooses among face {shown}"
                    ),
                ),
            }
        } else {
            let next = "add a route: onym route add PREFIX --via URI";
            (
                "fib",
                "no_route",
                format!("no route covers {text}: a Nack NoRoute is returned; {next}"),
            )
        };
        json!({
            "name": text,
            "decides": decides,
            "verdict": verdict,
            "sentence": sentence,
            "scope": scope,
            "cached": cached.contains(&true),
            "cs_serves": self.config.cs.serve,
            "fib_prefix": fib,
            "next_hops": next_hops,
            "strategy": strategy,
            "shard": home,
        })
        .to_string()
    }

    /// The longest prefix with next hops in the FIB.
    fn longest_route(&self, name: NameRef<'_>) -> (Option<String>, Vec<(FaceId, u64)>) {
        let name = name.to_name();
        let found = self.ports[0].ask(move |shard| {
            let hashes = shard.hashes(name.as_ref());
            shard.fw.fib().lookup(&hashes, name.value()).map(|(prefix, hops)| {
                let hops = hops.iter().map(|h| (h.face, h.cost)).collect::<Vec<_>>();
                (prefix.bytes.to_vec(), hops)
            })
        });
        match found.flatten() {
            None => (None, Vec::new()),
            Some((prefix, hops)) => {
                let prefix = NameRef::parse_value(&prefix).unwrap_or_default().to_name();
                (Some(prefix.to_string()), hops)
            }
        }
    }

    fn strategy_of(&self, name: NameRef<'_>) -> String {
        let list = self.strategy_list();
        let fits = list.iter().filter(|(prefix, _)| prefix.as_ref().is_prefix_of(name));
        let longest = fits.max_by_key(|(prefix, _)| prefix.as_ref().len());
        longest.map_or_else(String::new, |(_, strategy)| strategy.to_string())
    }

    fn hop(&self, id: FaceId, cost: u64) -> Value {
        match self.faces.get(&id) {
            Some(r) => json!({
                "face": id.0, "cost": cost, "uri": r.remote, "up": r.up,
                "scope": if r.scope == crate::mgmt::host::Scope::Local { "local" } else { "non-local" },
            }),
            None if id == FaceId::INTERNAL => {
                json!({ "face": id.0, "cost": cost, "uri": "internal://", "up": true, "scope": "local" })
            }
            None => json!({ "face": id.0, "cost": cost, "uri": Value::Null, "up": false }),
        }
    }
}

fn shown(hops: &[(FaceId, u64)]) -> String {
    let each = hops.iter().map(|(id, cost)| format!("{} (cost {cost})", id.0));
    each.collect::<Vec<_>>().join(", ")
}

fn scope_of(name: NameRef<'_>) -> &'static str {
    match name.get(0).map(|c| c.value) {
        Some(b"localhost") => "localhost: never leaves this machine",
        Some(b"localhop") => "localhop: goes one hop at most",
        _ => "global",
    }
}

/// Whether an Interest for the name, or for something under it, is answered from the cache.
fn cached(shard: &mut Shard, name: &Name) -> bool {
    let mut wire = Vec::new();
    let nonce = Some([0; 4]);
    InterestBuilder { can_be_prefix: true, nonce, ..InterestBuilder::new(name.as_ref()) }
        .write(&mut wire);
    shard.fw.cs_find(shard.now, &wire).is_some()
}
