//! Posts to the control interfaces of other services: rules of a verifier for a filter.

use onym_http::client::{Body, Client, Method};
use onym_services::element::Effect;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// How long one post may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Carries posts out one after another until the service ends. One that fails is logged and given
/// up: the next period reports again what still fails.
pub(crate) async fn run(mut posts: Receiver<Effect>) {
    while let Some(effect) = posts.recv().await {
        let Effect::Post { url, token, path, body } = effect else { continue };
        let posting = async {
            Client::of_url(&url, token, PATIENCE)?.ask(Method::POST, path, Body::Json(body)).await
        };
        if let Err(error) = posting.await {
            tracing::warn!(url, path, %error, "posting an event failed");
        }
    }
}
