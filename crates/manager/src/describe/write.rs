//! A [`Description`] as text.

use super::{Description, Loops};
use crate::network::{Function, Network, Side, Transport};
use serde_json::{Map, Value, json};

/// The description as TOML; read again it is the same.
#[must_use]
pub fn to_toml(description: &Description) -> String {
    let mut value = value(description);
    without_nulls(&mut value);
    toml::to_string_pretty(&value).unwrap_or_default()
}

/// The description as YAML; read again it is the same.
#[must_use]
pub fn to_yaml(description: &Description) -> String {
    let mut out = String::new();
    yaml(&value(description), 0, &mut out);
    out
}

/// The short form: chains as links, the usual ingress left out.
fn value(description: &Description) -> Value {
    let mut root = Map::new();
    root.insert("network".into(), description.network.clone().into());
    if description.loops == Loops::Deny {
        root.insert("loops".into(), "deny".into());
    }
    root.insert("links".into(), links(&description.graph));
    let functions = description.graph.functions.iter();
    root.insert(
        "functions".into(),
        Value::Object(functions.map(|(name, f)| (name.clone(), function(f))).collect()),
    );
    if !description.keys.is_empty() {
        root.insert("keys".into(), json!(description.keys));
    }
    if let Some(trust) = &description.trust {
        root.insert("trust".into(), json!(trust));
    }
    let policies = json!(description.policies);
    if description.policies != crate::policy::Policies::default() {
        root.insert("policies".into(), policies);
    }
    Value::Object(root)
}

fn links(graph: &Network) -> Value {
    let row = |(ends, transport): (&crate::network::Ends, &Transport)| match transport {
        Transport::Tcp => Value::from(ends.to_string()),
        Transport::Udp => {
            let mut row = json!({"from": ends.from, "to": ends.to, "transport": "udp"});
            if ends.side == Side::Producer {
                row["side"] = "producer".into();
            }
            row
        }
    };
    graph.links.iter().map(row).collect()
}

fn function(function: &Function) -> Value {
    let mut row = Map::new();
    row.insert("kind".into(), function.kind.word().into());
    let usual = function.kind.ingresses()[0];
    match function.listen.get(usual).map(Vec::as_slice) {
        Some([uri]) if function.listen.len() == 1 => {
            row.insert("listen".into(), uri.clone().into());
        }
        _ if function.listen.is_empty() => {}
        _ => {
            row.insert("listen".into(), json!(function.listen));
        }
    }
    if let Some(quota) = function.quota {
        row.insert("quota".into(), quota.into());
    }
    if function.scalable {
        row.insert("scalable".into(), true.into());
    }
    if let Some(most) = function.instances_max {
        row.insert("instances_max".into(), most.into());
    }
    if function.multicast {
        row.insert("multicast".into(), true.into());
    }
    if !function.config.is_empty() {
        row.insert("config".into(), Value::Object(function.config.clone()));
    }
    Value::Object(row)
}

/// TOML has no null: a setting that is null is left out, which means the same.
fn without_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, v| !v.is_null());
        map.values_mut().for_each(without_nulls);
    }
}

/// Block YAML; texts are quoted as JSON does, which YAML reads alike.
pub(super) fn yaml(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("{indent}{}:", word(key)));
                below(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("{indent}-"));
                below(item, depth, out);
            }
        }
        other => out.push_str(&format!("{indent}{other}\n")),
    }
}

fn below(value: &Value, depth: usize, out: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        yaml(value, depth + 1, out);
    } else {
        out.push_str(&format!(" {value}\n"));
    }
}

/// A key that needs no quotes, or one in quotes.
fn word(key: &str) -> String {
    let plain = !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && key.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&key);
    if plain { key.to_owned() } else { Value::from(key).to_string() }
}
