//! Changes of a configuration as the control interface writes them: some keys with their values.

use crate::body::read;
use onym_link::Outbox;
use onym_services::config::{Config, KindConfig};
use onym_services::settings::Settings;
use onym_services::{Function, Now, Refusal};
use serde_json::{Map, Value};

/// Keys of [`Settings`].
const COMMON: [&str; 4] = ["return", "hash_components", "queue_bytes_max", "report_ms"];

/// Changes configuration keys of `function`: all of them or, when one is wrong, none. The words of
/// those that changed.
///
/// # Errors
/// A key that this kind does not have, or a value that it cannot have.
pub(crate) fn apply(
    function: &mut Function,
    now: Now,
    patch: &Map<String, Value>,
    out: &mut Outbox,
) -> Result<Vec<String>, Refusal> {
    let (config, changed) = patched(&function.config(), patch)?;
    function.configure(now, config, out)?;
    Ok(changed)
}

/// `config` with the keys of `patch`, and those whose values are others then.
fn patched(config: &Config, patch: &Map<String, Value>) -> Result<(Config, Vec<String>), Refusal> {
    let Ok(Value::Object(mut own)) = serde_json::to_value(config) else {
        return Err(Refusal::no_path());
    };
    let changed = merge(&mut own, patch)?;
    let mut common = Map::new();
    for key in COMMON {
        common.extend(own.remove(key).map(|value| (key.to_owned(), value)));
    }
    // What cannot be read is one of the keys that were given.
    let given = || Some(patch.keys().cloned().collect::<Vec<_>>().join(", "));
    let named = |r: Refusal| Refusal { field: r.field.clone().or_else(given), ..r };
    let common: Settings = read(Value::Object(common)).map_err(named)?;
    let own = like(&config.own, Value::Object(own)).map_err(named)?;
    Ok((Config { own, common }, changed))
}

/// The configuration that `value` writes, of the same kind as `known`.
fn like(known: &KindConfig, value: Value) -> Result<KindConfig, Refusal> {
    Ok(match known {
        KindConfig::NameRouter(_) => KindConfig::NameRouter(read(value)?),
        KindConfig::BackwardRouter(_) => KindConfig::BackwardRouter(read(value)?),
        KindConfig::PacketDispatcher(_) => KindConfig::PacketDispatcher(read(value)?),
        KindConfig::ContentStore(_) => KindConfig::ContentStore(read(value)?),
        KindConfig::StrategyForwarder(_) => KindConfig::StrategyForwarder(read(value)?),
        KindConfig::SignatureVerifier(_) => KindConfig::SignatureVerifier(read(value)?),
        KindConfig::NameFilter(_) => KindConfig::NameFilter(read(value)?),
        KindConfig::Forwarder(_) => KindConfig::Forwarder(read(value)?),
    })
}

/// Puts the keys of `patch` into `config`; the words of those that changed.
fn merge(
    config: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Vec<String>, Refusal> {
    let mut changed = Vec::new();
    for (key, value) in patch {
        let Some(place) = config.get_mut(key) else {
            let mut known: Vec<&str> = config.keys().map(String::as_str).collect();
            known.sort_unstable();
            let text = format!("unknown key {key}; there are {}", known.join(", "));
            return Err(Refusal::field(key, text));
        };
        if place != value {
            place.clone_from(value);
            changed.push(key.clone());
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_services::{Kind, Reason};
    use onym_tables::{HashKey, Tick};
    use serde_json::json;

    #[test]
    fn every_kind_takes_its_own_configuration_and_no_key_of_others() {
        for kind in Kind::ALL {
            let mut function = Function::new(kind, HashKey::new(1, 2), 3);
            let mut change = |patch: Value| {
                let now = Now { tick: Tick(0), unix_ms: 0 };
                apply(&mut function, now, patch.as_object().unwrap(), &mut Outbox::default())
            };
            let refused = change(json!({ "nothing_like_it": 1 })).unwrap_err();
            assert_eq!(refused.reason, Reason::Invalid, "{kind:?}");
            assert_eq!(refused.field.as_deref(), Some("nothing_like_it"), "{kind:?}");
            let refused = change(json!({ "report_ms": 5000, "return": "nobody" })).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("return"), "{kind:?}");
            let changed = change(json!({ "report_ms": 5000, "hash_components": 0 })).unwrap();
            assert_eq!(changed, ["report_ms"], "{kind:?}");
            let config = serde_json::to_value(function.config()).unwrap();
            let now = Now { tick: Tick(0), unix_ms: 0 };
            let whole = config.as_object().unwrap();
            let changed = apply(&mut function, now, whole, &mut Outbox::default()).unwrap();
            assert!(changed.is_empty(), "{kind:?}: its own configuration changes nothing");
        }
    }
}
