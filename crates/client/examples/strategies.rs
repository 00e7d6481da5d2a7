//! Publishes by every strategy, and shows what came by which: with two nodes that are neighbours,
//! `strategies listen` at one and `strategies publish NEIGHBOUR TABLE FILTER` at the other one.
//! NEIGHBOUR is the label of the first node, TABLE and FILTER what `onym topology tree /1/2` prints.

use onym_client::push::{App, Event, Publication};
use onym_wire::push::{Id, Label, RouteBuf, Strategy};
use std::error::Error;
use std::time::Duration;

type Done<T> = Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(30);

/// An item with a rendezvous, and one that needs none.
fn items() -> Done<[Id; 2]> {
    Ok(["/1/2".parse()?, "/7/8".parse()?])
}

/// Subscribes to both items.
pub(crate) fn subscribe(node: Option<&str>) -> Done<App> {
    let mut app = App::open(node, "listener")?;
    let [matched, free] = items()?;
    app.subscribe_scope(&Id::from_labels(matched.parent()), Strategy::DOMAIN_LOCAL)?;
    // What is under no rendezvous comes by any strategy that has none.
    app.subscribe_item(&free, Strategy::IMPLICIT)?;
    Ok(app)
}

/// What comes next, and how.
pub(crate) fn next(app: &mut App) -> Done<Option<(String, Strategy)>> {
    while let Some(event) = app.event(Some(PATIENCE))? {
        if let Event::Data { payload, came_by, .. } = event {
            let strategy = came_by.unwrap_or(Strategy::DOMAIN_LOCAL);
            return Ok(Some((String::from_utf8_lossy(&payload).into_owned(), strategy)));
        }
    }
    Ok(None)
}

/// An application whose item has subscribers.
pub(crate) fn start(node: Option<&str>) -> Done<App> {
    let mut app = App::open(node, "publisher")?;
    let [matched, _] = items()?;
    app.publish_scope(&Id::from_labels(matched.parent()), Strategy::DOMAIN_LOCAL)?;
    app.publish_item(&matched, Strategy::DOMAIN_LOCAL)?;
    while app.event(Some(PATIENCE))? != Some(Event::StartPublish(matched.clone())) {}
    Ok(app)
}

/// Publishes by every strategy; how many frames left and applications of this node got each.
pub(crate) fn publish(app: &mut App, neighbour: Label, route: &RouteBuf) -> Done<Vec<(u64, u64)>> {
    let [matched, free] = items()?;
    let plain = |strategy, text: &'static str| Publication::new(&free, strategy, text.as_bytes());
    let all = [
        // To who subscribed, by the rendezvous.
        Publication::new(&matched, Strategy::DOMAIN_LOCAL, b"to subscribers"),
        // To one neighbour, and to all.
        Publication { node: Some(neighbour), ..plain(Strategy::LINK_LOCAL, "to a neighbour") },
        plain(Strategy::BROADCAST, "to all neighbours"),
        // Along a filter.
        Publication { route: Some(route), ..plain(Strategy::IMPLICIT, "by a filter") },
        // Where another item goes.
        Publication {
            about: Some(&matched),
            ..plain(Strategy::ALGORITHMIC_DOMAIN, "to subscribers of another item")
        },
        Publication {
            about: Some(&matched),
            ..plain(Strategy::ALGORITHMIC_LOCAL, "to those of this node")
        },
    ];
    let mut told = Vec::new();
    for publication in &all {
        let sent = app.publish_told(publication)?;
        told.push((sent.frames, sent.local));
    }
    Ok(told)
}

fn main() -> Done<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen"] => {
            let mut app = subscribe(None)?;
            while let Some((text, strategy)) = next(&mut app)? {
                println!("{strategy}: {text}");
            }
        }
        ["publish", neighbour, table, filter] => {
            let mut app = start(None)?;
            let route = RouteBuf::flat(table.parse()?, &filter.parse()?);
            for (frames, local) in publish(&mut app, neighbour.parse()?, &route)? {
                println!("frames {frames}, applications of this node {local}");
            }
        }
        _ => return Err("strategies listen | strategies publish NEIGHBOUR TABLE FILTER".into()),
    }
    Ok(())
}
