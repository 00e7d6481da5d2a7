//! A question to every thread.

use super::refused::Refused;
use super::{App, stopping};
use crate::worker::Order;
use crate::worker::order::Reply;

/// The same question to every thread.
pub(super) async fn each<T, O: Into<Order>>(
    app: &App,
    order: impl Fn(Reply<T>) -> O,
) -> Result<Vec<T>, Refused> {
    let mut all = Vec::with_capacity(app.workers.len());
    for worker in &app.workers {
        all.push(worker.ask(&order).await.ok_or_else(stopping)?);
    }
    Ok(all)
}
