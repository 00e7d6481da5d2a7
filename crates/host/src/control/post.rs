//! Posts to the control interfaces of other services: rules of a verifier for a filter.

use onym_http::client::{Body, Client, Method};
use onym_services::effect::RulesForFilter;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// Where a filter takes rules.
const PATH: &str = "/v1/rules";
/// How long one post may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Carries posts out one after another until the service ends. One that fails is logged and given
/// up: the next period reports again what still fails.
pub(crate) async fn run(mut posts: Receiver<RulesForFilter>) {
    while let Some(RulesForFilter { url, token, rules }) = posts.recv().await {
        let body = json!({ "add": rules });
        let posting = async {
            Client::of_url(&url, token, PATIENCE)?.ask(Method::POST, PATH, Body::Json(body)).await
        };
        if let Err(error) = posting.await {
            tracing::warn!(url, path = PATH, %error, "posting an event failed");
        }
    }
}
