//! What each command asks of the node, and the lines that it answers with.

use super::ended::{Done, Ended};
use super::words::Given;
use super::{text, xml};
use crate::node_words;
use crate::plain;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{
    CS_ADMIT, CS_SERVE, ControlParameters, FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS,
    FACE_RELIABILITY, FaceQueryFilter, FaceStatus, Persistency, ROUTE_CAPTURE, ROUTE_CHILD_INHERIT,
};

pub(super) fn failed<T>(done: Result<T, onym_client::Error>) -> Done<T> {
    done.map_err(|error| Ended(1, format!("ERROR: {error}")))
}

/// The node's refusal as `nfdc` says it.
fn commanded(
    client: &mut Client,
    verb: [&str; 2],
    parameters: &ControlParameters,
    doing: &str,
) -> Done<ControlParameters> {
    match client.command(verb, parameters) {
        Ok(done) => Ok(done),
        Err(onym_client::Error::Refused { code, text, .. }) => {
            Err(Ended(1, format!("Error {code} when {doing}: {}", plain::line(&text))))
        }
        Err(error) => Err(Ended(1, format!("ERROR: {error}"))),
    }
}

fn number(given: &Given, key: &str) -> Done<Option<u64>> {
    let parse = |text: &String| {
        text.parse().map_err(|_| Ended(2, format!("{key}: {text} is not a number")))
    };
    given.get(key).map(parse).transpose()
}

fn switch(given: &Given, key: &str) -> Done<Option<bool>> {
    match given.get(key).map(String::as_str) {
        None => Ok(None),
        Some("on" | "true" | "enabled" | "yes" | "1") => Ok(Some(true)),
        Some("off" | "false" | "disabled" | "no" | "0") => Ok(Some(false)),
        Some(text) => Err(Ended(2, format!("{key}: {text} is neither on nor off"))),
    }
}

fn name(given: &Given, key: &str) -> Done<Name> {
    given[key].parse().map_err(|e| Ended(2, format!("{key}: {e}")))
}

fn origin(given: &Given) -> Done<Option<u64>> {
    let parse = |text: &String| {
        node_words::parse_origin(text).map_err(|e| Ended(2, format!("origin: {e}")))
    };
    given.get("origin").map(parse).transpose()
}

fn canonical(text: &str) -> Done<String> {
    let cannot = |e| Ended(4, format!("Error when canonizing '{text}': {e}"));
    node_words::canonical_uri(text).map_err(cannot)
}

/// The face that an id or a remote URI names.
pub(super) fn find(client: &mut Client, text: &str) -> Done<FaceStatus> {
    let filter = match text.parse::<u64>() {
        Ok(id) => FaceQueryFilter { face_id: Some(id), ..FaceQueryFilter::default() },
        Err(_) => FaceQueryFilter { uri: Some(canonical(text)?), ..FaceQueryFilter::default() },
    };
    let mut found = failed(mgmt::faces_query(client, &filter))?;
    match (found.pop(), found.len()) {
        (Some(face), 0) => Ok(face),
        (Some(_), _) => Err(Ended(5, "Multiple faces match specified remote FaceUri. Re-run the command with a FaceId: see nfdc face list".to_owned())),
        (None, _) => Err(Ended(3, "Face not found".to_owned())),
    }
}

pub(super) fn channels(client: &mut Client) -> Done<Vec<String>> {
    Ok(failed(mgmt::channels(client))?.into_iter().map(|c| c.local_uri).collect())
}

pub(super) fn report(client: &mut Client, given: &Given) -> Done<String> {
    let write = match given.get("format").map_or("text", String::as_str) {
        "text" => text::report,
        "xml" => xml::report,
        other => return Err(Ended(2, format!("format: {other} is neither text nor xml"))),
    };
    Ok(write(&text::Report {
        general: failed(mgmt::status(client))?,
        channels: channels(client)?,
        faces: failed(mgmt::faces(client))?,
        fib: failed(mgmt::fib(client))?,
        rib: failed(mgmt::rib(client))?,
        cs: failed(mgmt::cs_info(client))?,
        strategies: failed(mgmt::strategies(client))?,
    }))
}

pub(super) fn faces(client: &mut Client, given: &Given) -> Done<String> {
    let uri = |key: &str| given.get(key).map(|text| canonical(text)).transpose();
    let filter = FaceQueryFilter {
        uri: uri("remote")?,
        local_uri: given.get("local").cloned(),
        uri_scheme: given.get("scheme").cloned(),
        ..FaceQueryFilter::default()
    };
    let is_any = filter == FaceQueryFilter::default();
    let found = if is_any { mgmt::faces(client) } else { mgmt::faces_query(client, &filter) };
    let found = failed(found)?;
    if found.is_empty() {
        return Err(Ended(3, "Face not found".to_owned()));
    }
    Ok(found.iter().map(text::face).collect::<Vec<_>>().join("\n"))
}

/// What a face is to be like.
fn wanted(given: &Given) -> Done<ControlParameters> {
    let persistency = match given.get("persistency") {
        None => None,
        Some(word) => match Persistency::from_word(word) {
            Some(p) => Some(p),
            None => return Err(Ended(2, format!("persistency: {word} is not one"))),
        },
    };
    let mtu = match given.get("mtu").map(String::as_str) {
        // The largest number says that the node is to find it.
        Some("auto") => Some(u64::MAX),
        _ => number(given, "mtu")?,
    };
    let bits = [
        (switch(given, "reliability")?, FACE_RELIABILITY),
        (switch(given, "congestion-marking")?, FACE_CONGESTION_MARKING),
    ];
    let said = bits.iter().filter_map(|(on, bit)| Some(((*on)?, *bit)));
    let (mut flags, mut mask) = (0, 0);
    for (on, bit) in said {
        mask |= bit;
        flags |= if on { bit } else { 0 };
    }
    let interval = number(given, "congestion-marking-interval")?;
    Ok(ControlParameters {
        uri: Some(canonical(&given["remote"])?),
        local_uri: given.get("local").cloned(),
        face_persistency: persistency,
        mtu,
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        base_congestion_marking_interval_ns: interval.map(|ms| ms.saturating_mul(1_000_000)),
        default_congestion_threshold: number(given, "default-congestion-threshold")?,
        ..ControlParameters::default()
    })
}

pub(super) fn create(client: &mut Client, given: &Given) -> Done<String> {
    let wanted = wanted(given)?;
    let made = match mgmt::create_face(client, &wanted) {
        Ok(made) => made,
        Err(onym_client::Error::Refused { code, text, .. }) => {
            return Err(Ended(
                1,
                format!("Error {code} when creating face: {}", plain::line(&text)),
            ));
        }
        Err(error) => return Err(Ended(1, format!("ERROR: {error}"))),
    };
    if made.is_new {
        return Ok(told("face-created", &made.face));
    }
    let Some(change) = change(&made.face, &wanted) else {
        return Ok(told("face-exists", &made.face));
    };
    let done = commanded(client, ["faces", "update"], &change, "updating face")?;
    let face = ControlParameters { uri: made.face.uri, local_uri: made.face.local_uri, ..done };
    Ok(told("face-updated", &face))
}

/// What must change of a face that is there; its persistency is only raised.
fn change(there: &ControlParameters, wanted: &ControlParameters) -> Option<ControlParameters> {
    let rank = |p: Option<Persistency>| match p {
        Some(Persistency::OnDemand) | None => 0,
        Some(Persistency::Persistent) => 1,
        Some(Persistency::Permanent) => 2,
    };
    // Who asks for a face without a word asks for one that stays.
    let persistency = wanted.face_persistency.or(Some(Persistency::Persistent));
    let persistency = persistency.filter(|p| rank(Some(*p)) > rank(there.face_persistency));
    let (bits, mask) = (wanted.flags.unwrap_or(0), wanted.mask.unwrap_or(0));
    let is_other = there.flags.unwrap_or(0) & mask != bits & mask;
    let mtu = wanted.mtu.filter(|mtu| Some(*mtu) != there.mtu);
    if persistency.is_none() && !is_other && mtu.is_none() {
        return None;
    }
    Some(ControlParameters {
        face_id: there.face_id,
        face_persistency: persistency,
        mtu,
        flags: is_other.then_some(bits),
        mask: is_other.then_some(mask),
        ..ControlParameters::default()
    })
}

fn told(what: &str, face: &ControlParameters) -> String {
    let flags = face.flags.unwrap_or(0);
    let text = |value: &Option<String>| {
        value.as_deref().map_or_else(String::new, |text| plain::line(text).into_owned())
    };
    let mut line = format!(
        "{what} id={} local={} remote={} persistency={} reliability={} congestion-marking={}",
        face.face_id.unwrap_or(0),
        text(&face.local_uri),
        text(&face.uri),
        face.face_persistency.map_or("persistent", Persistency::word),
        text::on(flags, FACE_RELIABILITY),
        text::on(flags, FACE_CONGESTION_MARKING),
    );
    if let Some(ns) = face.base_congestion_marking_interval_ns {
        line.push_str(&format!(" congestion-marking-interval={}ms", ns / 1_000_000));
    }
    if let Some(octets) = face.default_congestion_threshold {
        line.push_str(&format!(" default-congestion-threshold={octets}B"));
    }
    if let Some(mtu) = face.mtu {
        line.push_str(&format!(" mtu={mtu}"));
    }
    line
}

pub(super) fn destroy(client: &mut Client, given: &Given) -> Done<String> {
    let face = find(client, &given["face"])?;
    let which = ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
    commanded(client, ["faces", "destroy"], &which, "destroying face")?;
    let gone = ControlParameters {
        uri: Some(face.uri),
        local_uri: Some(face.local_uri),
        face_persistency: Some(face.face_persistency),
        flags: Some(face.flags & !FACE_LOCAL_FIELDS),
        base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
        default_congestion_threshold: face.default_congestion_threshold,
        mtu: face.mtu,
        ..which
    };
    Ok(told("face-destroyed", &gone))
}

pub(super) fn routes(client: &mut Client, given: &Given) -> Done<String> {
    let via = given.get("nexthop").map(|text| find(client, text)).transpose()?;
    let origin = origin(given)?;
    let prefix = given.contains_key("prefix").then(|| name(given, "prefix")).transpose()?;
    let rib = failed(mgmt::rib(client))?;
    let lines: Vec<String> = rib
        .iter()
        .filter(|entry| prefix.as_ref().is_none_or(|p| *p == entry.name))
        .flat_map(|entry| entry.routes.iter().map(move |route| (entry, route)))
        .filter(|(_, route)| via.as_ref().is_none_or(|face| face.face_id == route.face_id))
        .filter(|(_, route)| origin.is_none_or(|origin| origin == route.origin))
        .map(|(entry, route)| text::route(&entry.name, route))
        .collect();
    if lines.is_empty() {
        return Err(Ended(6, "Route not found".to_owned()));
    }
    Ok(lines.join("\n"))
}

pub(super) fn add(client: &mut Client, given: &Given) -> Done<String> {
    let prefix = name(given, "prefix")?;
    let nexthop = &given["nexthop"];
    let face = match find(client, nexthop) {
        Ok(face) => face.face_id,
        // A face is made where there is none to this URI.
        Err(Ended(3, _)) if nexthop.parse::<u64>().is_err() => {
            let wanted = ControlParameters {
                uri: Some(canonical(nexthop)?),
                ..ControlParameters::default()
            };
            failed(mgmt::create_face(client, &wanted))?.face.face_id.unwrap_or(0)
        }
        Err(ended) => return Err(ended),
    };
    let inherit = if given.contains_key("no-inherit") { 0 } else { ROUTE_CHILD_INHERIT };
    let capture = if given.contains_key("capture") { ROUTE_CAPTURE } else { 0 };
    let route = ControlParameters {
        name: Some(prefix),
        face_id: Some(face),
        origin: Some(origin(given)?.unwrap_or(255)),
        cost: Some(number(given, "cost")?.unwrap_or(0)),
        flags: Some(inherit | capture),
        expiration_period_ms: number(given, "expires")?,
        ..ControlParameters::default()
    };
    Ok(text::route_added(&commanded(client, ["rib", "register"], &route, "adding route")?))
}

pub(super) fn remove(client: &mut Client, given: &Given) -> Done<String> {
    let route = ControlParameters {
        name: Some(name(given, "prefix")?),
        face_id: Some(find(client, &given["nexthop"])?.face_id),
        origin: Some(origin(given)?.unwrap_or(255)),
        ..ControlParameters::default()
    };
    let done = commanded(client, ["rib", "unregister"], &route, "removing route")?;
    Ok(format!(
        "route-removed prefix={} nexthop={} origin={}",
        done.name.unwrap_or_default(),
        done.face_id.unwrap_or(0),
        node_words::origin(done.origin.unwrap_or(255))
    ))
}

pub(super) fn strategy(client: &mut Client, verb: &str, given: &Given) -> Done<String> {
    if verb == "list" {
        let choices = failed(mgmt::strategies(client))?;
        return Ok(choices.iter().map(text::strategy).collect::<Vec<_>>().join("\n"));
    }
    let prefix = name(given, "prefix")?;
    if verb == "show" {
        let choices = failed(mgmt::strategies(client))?;
        let above = choices.iter().filter(|c| c.name.as_ref().is_prefix_of(prefix.as_ref()));
        let longest = above.max_by_key(|c| c.name.len());
        let found = longest.ok_or_else(|| Ended(7, "Strategy not found".to_owned()))?;
        return Ok(format!("  prefix={}\nstrategy={}", found.name, found.strategy));
    }
    let mut parameters =
        ControlParameters { name: Some(prefix.clone()), ..ControlParameters::default() };
    if verb == "unset" {
        commanded(client, ["strategy-choice", "unset"], &parameters, "unsetting strategy")?;
        return Ok(format!("strategy-unset prefix={prefix}"));
    }
    parameters.strategy = Some(name(given, "strategy")?);
    match client.command(["strategy-choice", "set"], &parameters) {
        Ok(done) => Ok(format!(
            "strategy-set prefix={prefix} strategy={}",
            done.strategy.unwrap_or_default()
        )),
        Err(onym_client::Error::Refused { code: 404, .. }) => {
            Err(Ended(7, format!("Unknown strategy: {}", given["strategy"])))
        }
        Err(error) => Err(Ended(1, format!("ERROR: {error}"))),
    }
}

pub(super) fn config(client: &mut Client, given: &Given) -> Done<String> {
    let (mut flags, mut mask) = (0, 0);
    for (key, bit) in [("admit", CS_ADMIT), ("serve", CS_SERVE)] {
        if let Some(on) = switch(given, key)? {
            mask |= bit;
            flags |= if on { bit } else { 0 };
        }
    }
    let parameters = ControlParameters {
        capacity: number(given, "capacity")?,
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        ..ControlParameters::default()
    };
    let done = commanded(client, ["cs", "config"], &parameters, "updating CS config")?;
    let flags = done.flags.unwrap_or(0);
    Ok(format!(
        "cs-config-updated capacity={} admit={} serve={}",
        done.capacity.unwrap_or(0),
        text::on(flags, CS_ADMIT),
        text::on(flags, CS_SERVE)
    ))
}

pub(super) fn erase(client: &mut Client, given: &Given) -> Done<String> {
    let prefix = name(given, "prefix")?;
    match mgmt::erase(client, &prefix, number(given, "count")?) {
        Ok(count) => Ok(format!("cs-erased prefix={prefix} count={count}")),
        Err(onym_client::Error::Refused { code, text, .. }) => {
            Err(Ended(1, format!("Error {code} when erasing cached Data: {}", plain::line(&text))))
        }
        Err(error) => Err(Ended(1, format!("ERROR: {error}"))),
    }
}
