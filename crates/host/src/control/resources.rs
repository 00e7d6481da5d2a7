//! Resources that only some kinds have: routes, keys, rules, tables, sessions.

use super::each::each;
use super::{Answer, App, Call, join, method_refused, ok};
use crate::worker::Order;
use crate::worker::order::ForElement;
use onym_services::function::method_of;
use serde_json::Value;

/// Hands the request to the element.
pub(super) async fn element(app: &App, call: &Call, word: &str) -> Answer {
    let Some(method) = method_of(call.method.as_str()) else { return Err(method_refused()) };
    let (resource, query, body) = (word.to_owned(), call.query.clone(), call.body.clone());
    let request = ForElement { method, resource, query, body };
    let done = each(app, |reply| Order::Element { request: request.clone(), reply });
    let mut all = Vec::new();
    for (thread, answer) in done.await?.into_iter().enumerate() {
        let mut answer = answer?;
        // Elements do not know that they are one of several.
        let sessions = answer.get_mut("sessions").and_then(Value::as_array_mut);
        for session in sessions.into_iter().flatten() {
            session["thread"] = thread.into();
        }
        all.push(answer);
    }
    ok(join(all))
}
