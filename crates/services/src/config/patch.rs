//! Changes of a configuration as the control interface writes them: some keys with their values.

use super::{Config, KindConfig};
use crate::element::{Refusal, read};
use crate::settings::Settings;
use serde_json::{Map, Value};

/// Keys of [`Settings`].
const COMMON: [&str; 4] = ["return", "hash_components", "queue_bytes_max", "report_ms"];

impl Config {
    /// This configuration with the keys of `patch`, and those whose values are others then.
    ///
    /// # Errors
    /// A key that this kind does not have, or a value that it cannot have.
    pub fn patched(&self, patch: &Map<String, Value>) -> Result<(Self, Vec<String>), Refusal> {
        let Ok(Value::Object(mut own)) = serde_json::to_value(self) else {
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
        let own = self.own.like(Value::Object(own)).map_err(named)?;
        Ok((Self { own, common }, changed))
    }
}

impl KindConfig {
    /// A configuration of the same kind.
    fn like(&self, value: Value) -> Result<Self, Refusal> {
        Ok(match self {
            Self::NameRouter(_) => Self::NameRouter(read(value)?),
            Self::BackwardRouter(_) => Self::BackwardRouter(read(value)?),
            Self::PacketDispatcher(_) => Self::PacketDispatcher(read(value)?),
            Self::ContentStore(_) => Self::ContentStore(read(value)?),
            Self::StrategyForwarder(_) => Self::StrategyForwarder(read(value)?),
            Self::SignatureVerifier(_) => Self::SignatureVerifier(read(value)?),
            Self::NameFilter(_) => Self::NameFilter(read(value)?),
            Self::Forwarder(_) => Self::Forwarder(read(value)?),
        })
    }
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
