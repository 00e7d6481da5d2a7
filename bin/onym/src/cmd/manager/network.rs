//! `--network`: the network that a manager begins with.

use crate::cmd::net;
use crate::exit::{Exit, Failure};
use anyhow::Result;
use onym_manager::describe::{self, Form};
use onym_manager::engine::{Change, ChangeError, Manager};
use onym_manager::plan::Strategy;
use onym_manager::presets;
use std::path::Path;

/// Makes `network`, a preset or a file, unless a network is wanted already.
pub(super) async fn begin(manager: &Manager, network: &str) -> Result<()> {
    if let Some(wanted) = &manager.shared.saved().description {
        let name = &wanted.network;
        tracing::info!("the manager already runs network {name:?}; --network {network} is ignored");
        return Ok(());
    }
    let (text, form) = match presets::find(network) {
        Some(preset) => (preset.to_owned(), Form::Toml),
        None => read(network)?,
    };
    let described = describe::read(&text, form);
    let described = described.map_err(|e| refused(network, &e))?;
    let change = Change::Apply {
        description: Box::new(described.description),
        strategy: Strategy::default(),
        dry_run: false,
        // Nothing is wanted yet.
        confirmed: true,
    };
    let made = manager.change(change).await;
    made.map(drop).map_err(|e| match &e {
        ChangeError::Faults(_) => refused(network, &e).into(),
        _ => Failure::new(Exit::Failed, format!("{network}: the network was not started"))
            .why(e)
            .next("fix it and start again; nothing was left running")
            .into(),
    })
}

fn read(network: &str) -> Result<(String, Form)> {
    let file = Path::new(network);
    if !file.exists() && Form::of_file(file).is_none() {
        return Err(net::no_preset(network).into());
    }
    net::read(file)
}

fn refused(network: &str, why: &dyn std::fmt::Display) -> Failure {
    let failure = Failure::new(Exit::Refused, format!("{network} is not a valid description"));
    failure.why(why).next("`onym net check FILE` checks it without a manager")
}
