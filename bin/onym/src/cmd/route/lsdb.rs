//! The link state database of NLSR, where NLSR runs over the node.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{human, session};
use onym_client::mgmt;
use onym_router::nlsr::{Lsdb, RoutingEntry};
use onym_wire::Name;
use serde_json::{Value, json};

/// The datasets of NLSR.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The router that is asked, by its name over the network; without it NLSR of this node.
    #[arg(long, value_name = "NAME")]
    router: Option<Name>,
}

pub(super) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let mut client = session::open(cx)?;
    let mut read = |path: &[&str]| {
        let mut name = args.router.clone().unwrap_or_else(|| {
            let mut host = Name::new();
            host.append_generic("localhost");
            host
        });
        name.append_generic("nlsr");
        for word in path {
            name.append_generic(word);
        }
        mgmt::fetch_dataset(&mut client, name)
    };
    let nobody = |error| {
        Failure::new(Exit::NotFound, "no NLSR answers on this node").why(error).next(
            "these are datasets of NLSR; the router of onym or ndnd is shown by `onym route status`",
        )
    };
    let malformed = |error: onym_wire::Malformed| {
        Failure::new(Exit::Failed, "a dataset of NLSR cannot be read").why(error)
    };
    let mut lsdb = Lsdb::default();
    for kind in ["names", "adjacencies", "coordinates"] {
        let content = read(&["lsdb", kind]).map_err(nobody)?;
        lsdb.read(&content).map_err(malformed)?;
    }
    // Releases before 22.02 have no such dataset.
    let table = match read(&["routing-table"]) {
        Ok(content) => RoutingEntry::read(&content).map_err(malformed)?,
        Err(_) => Vec::new(),
    };
    let shown = json(&lsdb, &table);
    cx.print(&shown, |_| text(&lsdb, &table))
}

fn json(lsdb: &Lsdb, table: &[RoutingEntry]) -> Value {
    let names = lsdb.names.iter().map(|lsa| {
        let prefixes: Vec<Value> = lsa
            .prefixes
            .iter()
            .map(|p| json!({ "prefix": p.name.to_string(), "cost": p.cost }))
            .collect();
        json!({ "router": lsa.head.router.to_string(), "seq": lsa.head.seq,
                "expires": lsa.head.expires, "prefixes": prefixes })
    });
    let adjacencies = lsdb.adjacencies.iter().map(|lsa| {
        let links: Vec<Value> = lsa
            .adjacencies
            .iter()
            .map(|a| json!({ "router": a.router.to_string(), "uri": a.uri, "cost": a.cost }))
            .collect();
        json!({ "router": lsa.head.router.to_string(), "seq": lsa.head.seq,
                "expires": lsa.head.expires, "links": links })
    });
    let coordinates = lsdb.coordinates.iter().map(|lsa| {
        json!({ "router": lsa.head.router.to_string(), "seq": lsa.head.seq,
                "expires": lsa.head.expires, "radius": lsa.radius, "angles": lsa.angles })
    });
    let table = table.iter().map(|entry| {
        let hops: Vec<Value> =
            entry.hops.iter().map(|(uri, cost)| json!({ "uri": uri, "cost": cost })).collect();
        json!({ "destination": entry.destination.to_string(), "hops": hops })
    });
    json!({ "names": names.collect::<Vec<_>>(), "adjacencies": adjacencies.collect::<Vec<_>>(),
            "coordinates": coordinates.collect::<Vec<_>>(), "table": table.collect::<Vec<_>>() })
}

fn text(lsdb: &Lsdb, table: &[RoutingEntry]) -> String {
    let mut rows = Vec::new();
    for lsa in &lsdb.names {
        for p in &lsa.prefixes {
            rows.push(vec![
                lsa.head.router.to_string(),
                "announces".into(),
                p.name.to_string(),
                p.cost.to_string(),
                lsa.head.expires.clone(),
            ]);
        }
    }
    for lsa in &lsdb.adjacencies {
        for a in &lsa.adjacencies {
            rows.push(vec![
                lsa.head.router.to_string(),
                "is linked to".into(),
                format!("{} ({})", a.router, a.uri),
                a.cost.to_string(),
                lsa.head.expires.clone(),
            ]);
        }
    }
    for lsa in &lsdb.coordinates {
        let angles: Vec<String> = lsa.angles.iter().map(ToString::to_string).collect();
        rows.push(vec![
            lsa.head.router.to_string(),
            "is at".into(),
            format!("radius {}, angles {}", lsa.radius, angles.join(" ")),
            "-".into(),
            lsa.head.expires.clone(),
        ]);
    }
    for entry in table {
        for (uri, cost) in &entry.hops {
            rows.push(vec![
                "this router".into(),
                "goes to".into(),
                format!("{} by {uri}", entry.destination),
                cost.to_string(),
                "-".into(),
            ]);
        }
    }
    human::table(&["ROUTER", "", "WHAT", "COST", "UNTIL"], &rows)
}
