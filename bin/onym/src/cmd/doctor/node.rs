//! The node that answers, and what it says about itself.

use super::Finding;
use crate::output::Context;
use onym_client::blocking::Client;
use onym_client::{ClientOptions, mgmt};
use onym_crypto::edge::unix_now_ms;
use std::time::Duration;

const CHECK: &str = "node";

/// A node that answered.
#[derive(Debug)]
pub(super) struct Running {
    /// Whether it is one of ours: then it keeps what the configuration asks for.
    pub(super) is_onym: bool,
    /// FaceUris of its listeners.
    pub(super) channels: Vec<String>,
    /// Its clock less ours, in milliseconds.
    pub(super) clock_ahead_ms: i64,
}

pub(super) fn check(cx: &Context, checks: &mut Vec<Finding>) -> Option<Running> {
    let asked = ask(cx);
    match asked {
        Ok((version, running)) => {
            checks.push(versions(&version, running.is_onym));
            Some(running)
        }
        Err(error) => {
            let is_named = cx.node.is_some() || std::env::var_os("NDN_CLIENT_TRANSPORT").is_some();
            let mend = "start one with `onym daemon`, or name another with `--node URI` or NDN_CLIENT_TRANSPORT";
            let found = error.to_string();
            checks.push(if is_named {
                Finding::failed(CHECK, found, mend)
            } else {
                Finding::warning(CHECK, found, mend)
            });
            None
        }
    }
}

fn ask(cx: &Context) -> Result<(String, Running), onym_client::Error> {
    let options = ClientOptions {
        node: cx.node.clone(),
        reconnect_for: Duration::ZERO,
        ..ClientOptions::default()
    };
    let mut client = Client::open(options)?;
    let status = mgmt::status(&mut client)?;
    let ahead = i128::from(status.current_timestamp_ms) - i128::from(unix_now_ms());
    let channels = mgmt::channels(&mut client)?.into_iter().map(|c| c.local_uri).collect();
    let running = Running {
        is_onym: status.nfd_version.starts_with("onym "),
        channels,
        clock_ahead_ms: i64::try_from(ahead).unwrap_or(i64::MAX),
    };
    Ok((status.nfd_version, running))
}

fn versions(version: &str, is_onym: bool) -> Finding {
    let ours = concat!("onym ", env!("CARGO_PKG_VERSION"));
    if !is_onym {
        return Finding::ok(CHECK, format!("another forwarder answers: version {version}"));
    }
    if version == ours {
        return Finding::ok(CHECK, format!("{version} answers"));
    }
    Finding::warning(
        CHECK,
        format!("{version} answers, this program is {ours}"),
        "restart the node, so that it runs the program that is installed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Grade;

    #[test]
    fn an_older_node_is_a_warning_and_a_foreign_one_is_not() {
        assert_eq!(versions("onym 0.0.0", true).result, Grade::Warning);
        assert_eq!(versions("22.12", false).result, Grade::Ok);
        let ours = concat!("onym ", env!("CARGO_PKG_VERSION"));
        assert_eq!(versions(ours, true).result, Grade::Ok);
    }
}
