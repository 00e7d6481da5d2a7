//! Requests for resources, read from JSON.

use super::TABLE_FORMAT;
use super::kinds::{Method, Resource};
use crate::body::read;
use onym_services::control::{
    Entries, Import, KeySpec, Page, Request, RouteSpec, SetRequest, TrustRule, TrustSource,
};
use onym_services::{Kind, Refusal, Rule};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a request.
pub(super) fn request(
    kind: Kind,
    resource: Resource,
    method: Method,
    page: Page,
    body: &Value,
) -> Result<Request, Refusal> {
    if !resource.is_of(kind) {
        return Err(Refusal::no_path());
    }
    Ok(match (resource, method) {
        (Resource::Routes, _) => Request::Routes(set(method, body, |w: Routes| w.routes)?),
        (Resource::Keys, _) => Request::Keys(set(method, body, |w: Keys| w.keys)?),
        (Resource::Rules, _) => Request::Rules(set(method, body, |w: Rules| w.rules)?),
        (Resource::Trust, Method::Get) => Request::Trust,
        (Resource::Trust, Method::Put) => Request::SetTrust(read::<Trust>(body.clone())?.source()?),
        (Resource::Table, Method::Get) => Request::Export(page),
        (Resource::Table, Method::Post) => Request::Import(import(kind, body)?),
        (Resource::Sessions, Method::Get) => Request::Sessions,
        _ => return Err(Refusal::no_path()),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Routes {
    routes: Vec<RouteSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<KeySpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    rules: Vec<Rule>,
}

/// Members that come and go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change<Member, Id> {
    #[serde(default = "Vec::new")]
    add: Vec<Member>,
    #[serde(default = "Vec::new")]
    remove: Vec<Id>,
}

/// Reads a request for a set, whose body is a `Whole` where all members are replaced.
fn set<Whole: DeserializeOwned, Member: DeserializeOwned, Id: DeserializeOwned>(
    method: Method,
    body: &Value,
    members: impl FnOnce(Whole) -> Vec<Member>,
) -> Result<SetRequest<Member, Id>, Refusal> {
    Ok(match method {
        Method::Get => SetRequest::List,
        Method::Put => SetRequest::Replace(members(read(body.clone())?)),
        Method::Post => {
            let Change { add, remove } = read(body.clone())?;
            SetRequest::Change { add, remove }
        }
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Trust {
    rules: Option<Vec<TrustRule>>,
    lightversec: Option<String>,
    validator: Option<String>,
    section: String,
}

impl Trust {
    fn source(self) -> Result<TrustSource, Refusal> {
        match (self.rules, self.lightversec, self.validator) {
            (Some(rules), None, None) => Ok(TrustSource::Rules { rules }),
            (None, Some(lightversec), None) => Ok(TrustSource::LightVerSec { lightversec }),
            (None, None, Some(validator)) => {
                Ok(TrustSource::Validator { validator, section: self.section })
            }
            _ => {
                let why = "exactly one of rules, lightversec and validator is given";
                Err(Refusal::field("", why))
            }
        }
    }
}

/// A part of a table as it is posted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunk {
    format: String,
    kind: String,
    entries: Vec<Value>,
    #[serde(default, rename = "cursor")]
    _cursor: Option<Value>,
    #[serde(default, rename = "last")]
    _last: bool,
    #[serde(default)]
    faces: BTreeMap<String, String>,
}

/// Reads a part of a table for this kind.
fn import(kind: Kind, body: &Value) -> Result<Import, Refusal> {
    let Chunk { format, kind: of, entries, faces, .. } = read(body.clone())?;
    if format != TABLE_FORMAT {
        return Err(Refusal::field("format", format!("only {TABLE_FORMAT} is known")));
    }
    if of != kind.word() {
        let text = format!("the table belongs to a {of}, this is a {}", kind.word());
        return Err(Refusal::field("kind", text));
    }
    let entries = match kind {
        Kind::BackwardRouter => Entries::Pending(all(entries)?),
        Kind::ContentStore => Entries::Cached(all(entries)?),
        Kind::NameRouter => Entries::Routes(all(entries)?),
        Kind::SignatureVerifier => Entries::Keys(all(entries)?),
        Kind::NameFilter => Entries::Rules(all(entries)?),
        Kind::PacketDispatcher | Kind::StrategyForwarder | Kind::Forwarder => {
            return Err(Refusal::no_path());
        }
    };
    Ok(Import { entries, faces })
}

fn all<T: DeserializeOwned>(entries: Vec<Value>) -> Result<Vec<T>, Refusal> {
    entries.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::body;
    use super::*;
    use onym_link::Outbox;
    use onym_services::{Function, Now, Reason};
    use onym_tables::{HashKey, Tick};
    use serde_json::json;

    const ALL: [&str; 6] = ["routes", "keys", "trust", "rules", "table", "sessions"];

    fn ask(kind: Kind, word: &str, method: Method, body: &Value) -> Result<Request, Refusal> {
        request(kind, Resource::of(word).unwrap(), method, Page::default(), body)
    }

    #[test]
    fn a_kind_answers_for_the_resources_that_it_has_and_for_no_other() {
        for kind in Kind::ALL {
            let mut function = Function::new(kind, HashKey::new(1, 2), 3);
            for word in ALL {
                let asked = ask(kind, word, Method::Get, &Value::Null);
                let has = Resource::of(word).unwrap().is_of(kind);
                assert_eq!(asked.is_ok(), has, "{kind:?} {word}");
                let Ok(asked) = asked else { continue };
                let now = Now { tick: Tick(0), unix_ms: 0 };
                let told = function.control(now, asked, &mut Outbox::default()).unwrap();
                assert!(body(&told).is_object(), "{kind:?} {word}");
            }
        }
    }

    #[test]
    fn another_kind_has_no_such_path_whatever_the_body_says() {
        let wrong = json!({ "nothing": 1 });
        let refused = ask(Kind::ContentStore, "routes", Method::Post, &wrong).unwrap_err();
        assert_eq!(refused.reason, Reason::NotFound);
        let refused = ask(Kind::PacketDispatcher, "sessions", Method::Put, &wrong).unwrap_err();
        assert_eq!(refused.reason, Reason::NotFound);
    }

    #[test]
    fn a_wrong_member_is_named() {
        let field = |kind, word, method, body| {
            ask(kind, word, method, &body).unwrap_err().field.unwrap_or_default()
        };
        let sv = Kind::SignatureVerifier;
        let add = json!({ "add": [{ "prefix": "/a" }] });
        assert_eq!(field(Kind::NameRouter, "routes", Method::Post, add), "add[0]");
        let keys = json!({ "keys": [{ "spki": 1 }] });
        assert_eq!(field(sv, "keys", Method::Put, keys), "keys[0].spki");
        let rules = json!({ "add": [{ "prefix": "/a", "match": "near" }] });
        assert_eq!(field(Kind::NameFilter, "rules", Method::Post, rules), "add[0].match");
        let chunk = |format: &str, kind: &str| json!({ "format": format, "kind": kind, "entries": [{ "data": "", "fresh_ms": "" }] });
        let cs = Kind::ContentStore;
        let table = |body| field(cs, "table", Method::Post, body);
        assert_eq!(table(chunk("onym-table/2", "content-store")), "format");
        assert_eq!(table(chunk("onym-table/1", "name-router")), "kind");
        assert_eq!(table(chunk("onym-table/1", "content-store")), "fresh_ms");
    }

    #[test]
    fn trust_is_decided_by_one_thing() {
        let put = |body| ask(Kind::SignatureVerifier, "trust", Method::Put, &body);
        assert!(put(json!({ "rules": [] })).is_ok());
        assert!(put(json!({ "rules": [], "lightversec": "" })).is_err());
        assert!(put(json!({})).is_err());
    }
}
