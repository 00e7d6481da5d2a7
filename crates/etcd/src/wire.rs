//! The JSON of etcd's gateway: octets in base64, 64-bit numbers as strings, zero values absent.

use crate::model::{Compare, Entry, Lease, Operation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

pub(crate) fn octets(octets: &[u8]) -> Value {
    Value::String(BASE64.encode(octets))
}

/// A 64-bit number, which is absent when it is zero.
pub(crate) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}

pub(crate) fn entry(value: &Value) -> Option<Entry> {
    let decode = |field: &Value| match field {
        Value::Null => Some(Vec::new()),
        other => BASE64.decode(other.as_str()?).ok(),
    };
    Some(Entry {
        key: String::from_utf8(decode(&value["key"])?).ok()?,
        value: decode(&value["value"])?,
        created: number(&value["create_revision"])?,
        modified: number(&value["mod_revision"])?,
    })
}

pub(crate) fn entries(range: &Value) -> Option<Vec<Entry>> {
    match &range["kvs"] {
        Value::Null => Some(Vec::new()),
        Value::Array(rows) => rows.iter().map(entry).collect(),
        _ => None,
    }
}

/// The end of the range of all keys that begin with `prefix`.
pub(crate) fn range_end(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    // Keys are text, so no octet is 255.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

pub(crate) fn compare(compare: &Compare) -> Value {
    let (key, target, field, revision) = match compare {
        Compare::Created(key, revision) => (key, "CREATE", "create_revision", revision),
        Compare::Modified(key, revision) => (key, "MOD", "mod_revision", revision),
    };
    json!({
        "key": octets(key.as_bytes()),
        "target": target,
        "result": "EQUAL",
        field: revision.to_string(),
    })
}

pub(crate) fn put(key: &str, value: &[u8], lease: Option<Lease>) -> Value {
    let mut put = json!({"key": octets(key.as_bytes()), "value": octets(value)});
    if let Some(lease) = lease {
        put["lease"] = Value::String(lease.0.to_string());
    }
    put
}

pub(crate) fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Put { key, value, lease } => json!({"request_put": put(key, value, *lease)}),
        Operation::Get { key } => json!({"request_range": {"key": octets(key.as_bytes())}}),
        Operation::Delete { key } => {
            json!({"request_delete_range": {"key": octets(key.as_bytes())}})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_prefix_ends_behind_its_last_key() {
        assert_eq!(range_end("a/"), b"a0");
        assert!(range_end("").is_empty());
    }

    #[test]
    fn numbers_are_text_and_absent_when_zero() {
        assert_eq!(number(&json!("12")), Some(12));
        assert_eq!(number(&Value::Null), Some(0));
        assert_eq!(number(&json!("x")), None);
    }
}
