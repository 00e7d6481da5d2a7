//! `onym route hold` and `release`: the list in the folder of the router, which its owner may write.

use super::{Held, networks, view};
use crate::cmd::daemon::routing::{area_folder, usual_folder};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use onym_router::held;
use onym_wire::Name;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the router may take to see what was written.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn hold(args: Held, cx: &Context) -> anyhow::Result<()> {
    let name = args.router.clone();
    change(args, cx, &|held| {
        held.insert(name.clone());
    })
}

pub(super) fn release(args: Held, cx: &Context) -> anyhow::Result<()> {
    let name = args.router.clone();
    change(args, cx, &|held| {
        held.remove(&name);
    })
}

type Change<'a> = &'a dyn Fn(&mut BTreeSet<Name>);

fn change(args: Held, cx: &Context, change: Change<'_>) -> anyhow::Result<()> {
    let all = networks(&view(cx, None)?);
    let router = args.router;
    let Some(at) = all.iter().position(|network| is_router_of(network, &router)) else {
        let all: Vec<String> = all.iter().map(Name::to_string).collect();
        let all = all.join(", ");
        return Err(Failure::new(Exit::Usage, format!("{router} is not a router of {all}"))
            .why("the name of a router is that of the network with one more component")
            .next("`onym route neighbours` lists them")
            .into());
    };
    // A single network is asked about as the first one.
    let network = all.get(at).filter(|_| at > 0);
    let path = folder(args.folder, network, &view(cx, network)?)?.join(held::FILE);
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Refused, format!("{} cannot be changed", path.display()))
            .why(error)
            .next("run this as the router's user, or as root")
    };
    let mut list = held::read(&path).map_err(failed)?;
    change(&mut list);
    held::write(&path, &list).map_err(failed)?;
    let is_held = list.contains(&router);
    let until = Instant::now() + PATIENCE;
    while shows(&view(cx, network)?, &router) != is_held {
        if Instant::now() > until {
            return Err(Failure::new(Exit::Failed, "the router did not apply the change")
                .why(format!(
                    "{} was written, but the router does not report the change",
                    path.display()
                ))
                .next("check its log")
                .into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    cx.print(&json!({ "router": router.to_string(), "held": is_held }), |_| {
        if is_held {
            format!("{router} is held down until `onym route release {router}`")
        } else {
            format!("{router} is heard again")
        }
    })
}

fn shows(view: &Value, router: &Name) -> bool {
    let name = router.to_string();
    view["held"].as_array().into_iter().flatten().any(|held| *held == name)
}

fn is_router_of(network: &Name, router: &Name) -> bool {
    router.len() == network.len() + 1 && network.as_ref().is_prefix_of(router.as_ref())
}

/// The folder of the router that answers, in a further `network` or in the first one. What the router says of it is not followed, only told: any
/// program of this host could be that router, and root would write where it says.
fn folder(named: Option<PathBuf>, network: Option<&Name>, seen: &Value) -> anyhow::Result<PathBuf> {
    let first = named.unwrap_or_else(usual_folder);
    let inner = network.map(|network| area_folder(&first, network));
    let folder = inner.filter(|inner| inner.is_dir()).unwrap_or(first);
    if boot(&folder).is_some_and(|boot| seen["boot"] == boot) {
        return Ok(folder);
    }
    let told = seen["folder"].as_str().unwrap_or("no folder");
    Err(Failure::new(Exit::Usage, format!("{} is not the router's folder", folder.display()))
        .why(format!("its bootstrap time cannot be read, or differs from the router's ({told})"))
        .next("give the folder with --folder, on the router's machine")
        .into())
}

fn boot(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join("boot")).ok()?.trim().parse().ok()
}
