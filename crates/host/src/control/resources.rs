//! Resources that only some kinds have: routes, keys, rules, trust, tables, sessions. A request is
//! read here into its type, and the answer is written here.

mod kinds;
mod read;

pub(super) use kinds::Resource;

use super::each::each;
use super::{Answer, App, Call, join, method_refused, ok};
use crate::worker::Order;
use kinds::Method;
use onym_services::Answer as Told;
use onym_services::control::{CHUNK_MAX, Page, Table};
use serde_json::{Value, json};

/// How a table is written.
const TABLE_FORMAT: &str = "onym-table/1";

/// Hands the request to the element.
pub(super) async fn element(app: &App, call: &Call, resource: Resource) -> Answer {
    let method = match call.method.as_str() {
        "GET" => Method::Get,
        "PUT" => Method::Put,
        "POST" => Method::Post,
        _ => return Err(method_refused()),
    };
    let after = call.number("after").unwrap_or(0);
    let limit = call.number("limit").unwrap_or(CHUNK_MAX as u64);
    let page = Page { after, limit };
    let request = read::request(app.kind, resource, method, page, &call.body)?;
    let done = each(app, |reply| Order::Element { request: request.clone(), reply });
    let mut all = Vec::new();
    for (thread, answer) in done.await?.into_iter().enumerate() {
        let mut answer = body(&answer?);
        // Elements do not know that they are one of several.
        let sessions = answer.get_mut("sessions").and_then(Value::as_array_mut);
        for session in sessions.into_iter().flatten() {
            session["thread"] = thread.into();
        }
        all.push(answer);
    }
    ok(join(all))
}

/// The body of an answer.
fn body(answer: &Told) -> Value {
    match answer {
        Told::Table(Table { entries, cursor, last }) => json!({
            "format": TABLE_FORMAT, "kind": entries.kind(), "entries": entries,
            "cursor": cursor.to_string(), "last": last,
        }),
        answer => serde_json::to_value(answer).unwrap_or_default(),
    }
}
