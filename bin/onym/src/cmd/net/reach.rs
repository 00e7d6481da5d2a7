//! Which manager is asked, and what its failures mean.

use super::{HEALTH, PATIENCE};
use crate::cmd::manager::doors;
use crate::exit::{Exit, Failure};
use crate::secure::Asking;
use anyhow::Result;
use onym_http::client::{Body, Client, HttpError, Method, Place};
use std::path::PathBuf;

/// A client of the manager that leads: the first one that answers, or the one that it names.
pub(super) async fn leader(
    managers: &[String],
    asking: &Asking,
    token: Option<String>,
) -> Result<Client> {
    let tls = asking.load()?;
    let client = |url: &str| -> Result<Client> {
        if token.is_some() {
            asking.check(url)?;
        }
        if let Some(socket) = door(url).filter(|_| token.is_none()) {
            return Ok(Client::new(Place::Unix(socket), None, PATIENCE));
        }
        let client = Client::of_url_with(url, tls.as_ref(), token.clone(), PATIENCE);
        client.map_err(|e| {
            let failure = Failure::new(Exit::Usage, e.to_string());
            failure.next("--manager http://host:port, or https://host:port with --ca FILE").into()
        })
    };
    for url in managers {
        let asked = client(url)?.within(HEALTH).ask(Method::GET, "/v1/health", Body::None).await;
        let Ok(health) = asked else { continue };
        let elsewhere = health["leader"].as_str().filter(|_| health["leads"] == false);
        return client(elsewhere.unwrap_or(url));
    }
    // It is asked all the same, so that it is said what is wrong with it.
    client(&managers[0])
}

/// The socket of the manager of this machine whose URL is `url`, where this user has the door.
fn door(url: &str) -> Option<PathBuf> {
    let host = url.strip_prefix("http://")?.trim_end_matches('/');
    let port = host.rsplit_once(':')?.1.parse().ok()?;
    if !onym_sys::origin::is_loopback_host(host) {
        return None;
    }
    let mut sockets = doors::folders().into_iter().map(|folder| doors::socket(&folder, port));
    sockets.find(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok())
}

pub(super) fn failure(error: HttpError) -> Failure {
    match error {
        HttpError::Connect { place, why } => {
            Failure::new(Exit::NoNode, format!("no manager at {place}"))
                .why(why)
                .next("start one: onym manager; or name it: --manager URL")
        }
        HttpError::Refused { status: 401, .. } => {
            Failure::new(Exit::Refused, "the manager requires a token")
                .why("it runs for another user, or its socket is not in a usual place")
                .next("be root, its user or in the group onym; or give --token-file FILE")
        }
        HttpError::Refused { status: 404, message, .. } => {
            Failure::new(Exit::NotFound, message).next("onym net show lists what is there")
        }
        HttpError::Refused { status: 502, message, .. } => Failure::new(Exit::Failed, message)
            .next("fix it and try again; `onym net events` has details"),
        HttpError::Refused { message, .. } => {
            Failure::new(Exit::Refused, message).next("nothing was changed")
        }
        other => Failure::new(Exit::Failed, other.to_string())
            .next("check that --manager names a manager"),
    }
}
