//! `--kernel`: the faces, routes and cache of the kernel stack instead of a node's.

mod keep;
mod tables;

pub(crate) use keep::{KeepArgs, cs_keep};
pub(crate) use tables::{cs_config, cs_erase, cs_info, pit_config, pit_erase, pit_info, pit_list};

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{human, node_words as words};
use onym_kernel::KernelError;
use onym_kernel::control::{Control, Counter, Cs, Face, Peer, Route};
use onym_wire::faceuri::FaceUri;
use onym_wire::{Name, NameRef};
use serde::Serialize;
use std::net::SocketAddr;

/// A connection to the kernel stack.
pub(crate) fn open() -> anyhow::Result<Control> {
    Control::open().map_err(failure)
}

fn failure(error: KernelError) -> anyhow::Error {
    let text = error.to_string();
    match &error {
        KernelError::Absent => Failure::new(Exit::NoNode, text)
            .next("load it with `modprobe nnet`; kernel/README.md explains how to build it")
            .into(),
        KernelError::Refused { error, .. } => {
            let exit = match error.raw_os_error() {
                Some(2 | 19) => Exit::NotFound,
                _ => Exit::Refused,
            };
            Failure::new(exit, text).into()
        }
        _ => Failure::new(Exit::Failed, text).into(),
    }
}

/// A setting of the daemon that the kernel has not.
pub(crate) fn unknown(what: &str) -> anyhow::Error {
    Failure::new(Exit::Usage, format!("the kernel stack has no {what}"))
        .next("omit it, or omit --kernel")
        .into()
}

#[derive(Debug, Serialize)]
struct ShownFace {
    id: u32,
    remote: String,
    local: String,
    mtu: u64,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    in_bytes: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    out_bytes: u64,
}

fn uris(peer: &Peer) -> (String, String) {
    match peer {
        Peer::Local => ("internal://".into(), "internal://".into()),
        Peer::Socket => ("socket://".into(), "socket://".into()),
        Peer::Udp(address) => (FaceUri::udp(*address).to_string(), "udp://".into()),
        Peer::Ether { ifindex, mac } => {
            let dev = onym_sys::netdev::name_of(*ifindex).unwrap_or_else(|_| ifindex.to_string());
            (FaceUri::Ether(*mac).to_string(), FaceUri::Dev(dev).to_string())
        }
    }
}

impl ShownFace {
    fn of(face: &Face) -> Self {
        let (remote, local) = uris(&face.peer);
        let [in_interests, in_data, in_nacks, in_bytes] = face.received;
        let [out_interests, out_data, out_nacks, out_bytes] = face.sent;
        Self {
            id: face.id,
            remote,
            local,
            mtu: face.mtu,
            in_interests,
            in_data,
            in_nacks,
            in_bytes,
            out_interests,
            out_data,
            out_nacks,
            out_bytes,
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.remote.clone(),
            self.local.clone(),
            format!("{}i {}d {}n", self.in_interests, self.in_data, self.in_nacks),
            format!("{}i {}d {}n", self.out_interests, self.out_data, self.out_nacks),
        ]
    }
}

/// `onym face list --kernel` and `onym face show --kernel`.
pub(crate) fn faces(cx: &Context, which: impl Fn(&Face) -> bool) -> anyhow::Result<()> {
    let faces = open()?.faces().map_err(failure)?;
    let faces: Vec<_> = faces.iter().filter(|f| which(f)).map(ShownFace::of).collect();
    cx.print(&faces, |faces| {
        let rows: Vec<_> = faces.iter().map(ShownFace::row).collect();
        human::table(&["FACE", "REMOTE", "LOCAL", "IN", "OUT"], &rows)
    })
}

/// The face of a number or remote URI.
pub(crate) fn find(control: &mut Control, text: &str) -> anyhow::Result<Face> {
    let faces = control.faces().map_err(failure)?;
    let is_it = |f: &Face| text.parse() == Ok(f.id) || uris(&f.peer).0 == text;
    faces.into_iter().find(is_it).ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("there is no face {text}"))
            .next("`onym face list --kernel` shows the faces")
            .into()
    })
}

/// Makes the face of a URI, or finds it.
pub(crate) fn make(
    control: &mut Control,
    uri: &str,
    local: Option<&str>,
    mtu: Option<u64>,
) -> anyhow::Result<u32> {
    let wrong = |why: &str| -> anyhow::Error {
        Failure::new(Exit::Usage, format!("there is no kernel face to {uri}"))
            .why(why)
            .next("use udp4://ADDRESS:PORT, udp6://…, or ether://[MAC] with --local dev://DEVICE")
            .into()
    };
    let mtu = u16::try_from(mtu.unwrap_or(0)).map_err(|_| wrong("the MTU is too large"))?;
    let canonical = words::canonical_uri(uri)?;
    if let Some(rest) = canonical.split_once("://").filter(|(scheme, _)| scheme.starts_with("udp"))
    {
        let address: SocketAddr = rest.1.parse().map_err(|_| wrong("the address is malformed"))?;
        return control.udp_face(address, mtu).map_err(failure);
    }
    let parsed = FaceUri::parse_canonical(&canonical).map_err(|_| wrong("it is malformed"))?;
    let FaceUri::Ether(mac) = parsed else { return Err(wrong("its kind is not in the kernel")) };
    let device = local.and_then(|l| l.strip_prefix("dev://"));
    let device = device.ok_or_else(|| wrong("Ethernet needs a device"))?;
    let index = onym_sys::netdev::interface(device)?.index;
    control.ether_face(index, mac, mtu).map_err(failure)
}

#[derive(Debug, Serialize)]
struct Changed {
    result: &'static str,
    face: u32,
}

fn changed(cx: &Context, result: &'static str, face: u32) -> anyhow::Result<()> {
    cx.print(&Changed { result, face }, |c| format!("face {} {}", c.face, c.result))
}

/// `onym face create --kernel`.
pub(crate) fn face_create(
    cx: &Context,
    uri: &str,
    local: Option<&str>,
    mtu: Option<u64>,
) -> anyhow::Result<()> {
    let id = make(&mut open()?, uri, local, mtu)?;
    changed(cx, "created", id)
}

/// `onym face update --kernel`.
pub(crate) fn face_update(
    cx: &Context,
    face: &str,
    mtu: Option<u64>,
    local_fields: Option<bool>,
) -> anyhow::Result<()> {
    let mut control = open()?;
    let id = find(&mut control, face)?.id;
    let mtu = mtu.map(|m| u16::try_from(m).unwrap_or(u16::MAX));
    control.set_face(id, mtu, local_fields).map_err(failure)?;
    changed(cx, "updated", id)
}

/// `onym face destroy --kernel`.
pub(crate) fn face_destroy(cx: &Context, face: &str) -> anyhow::Result<()> {
    let mut control = open()?;
    let id = find(&mut control, face)?.id;
    control.delete_face(id).map_err(failure)?;
    changed(cx, "destroyed", id)
}

#[derive(Debug, Serialize)]
struct ShownRoute {
    prefix: String,
    face: u32,
    cost: u64,
}

fn prefix_of(route: &Route) -> Option<Name> {
    NameRef::parse_value(&route.prefix).ok().map(NameRef::to_name)
}

/// `onym route list --kernel`.
pub(crate) fn routes(cx: &Context, under: Option<&Name>, via: Option<u64>) -> anyhow::Result<()> {
    let all = open()?.routes().map_err(failure)?;
    let shown: Vec<_> = all
        .iter()
        .filter_map(|r| prefix_of(r).map(|name| (r, name)))
        .filter(|(_, name)| under.is_none_or(|p| p.as_ref().is_prefix_of(name.as_ref())))
        .filter(|(r, _)| via.is_none_or(|face| face == u64::from(r.face)))
        .map(|(r, name)| ShownRoute { prefix: name.to_string(), face: r.face, cost: r.cost })
        .collect();
    cx.print(&shown, |routes| {
        let row = |r: &ShownRoute| vec![r.prefix.clone(), r.face.to_string(), r.cost.to_string()];
        let rows: Vec<_> = routes.iter().map(row).collect();
        human::table(&["PREFIX", "FACE", "COST"], &rows)
    })
}

/// `onym route add --kernel`.
pub(crate) fn route_add(cx: &Context, prefix: &Name, via: &str, cost: u64) -> anyhow::Result<()> {
    let mut control = open()?;
    let face = match via.parse::<u32>() {
        Ok(id) => id,
        Err(_) => make(&mut control, via, None, None)?,
    };
    let cost = u32::try_from(cost).unwrap_or(u32::MAX);
    control.add_route(prefix.as_ref().value(), face, cost).map_err(failure)?;
    let shown = ShownRoute { prefix: prefix.to_string(), face, cost: cost.into() };
    cx.print(&shown, |r| format!("route {} via face {} added", r.prefix, r.face))
}

/// `onym route remove --kernel`.
pub(crate) fn route_remove(cx: &Context, prefix: &Name, via: &str) -> anyhow::Result<()> {
    let mut control = open()?;
    let face = find(&mut control, via)?.id;
    control.remove_route(prefix.as_ref().value(), face).map_err(failure)?;
    let shown = ShownRoute { prefix: prefix.to_string(), face, cost: 0 };
    cx.print(&shown, |r| format!("route {} via face {} removed", r.prefix, r.face))
}

#[derive(Debug, Serialize)]
struct ShownCs {
    capacity: u64,
    packets: u64,
    bytes: u64,
    admit: bool,
    serve: bool,
}

impl ShownCs {
    fn of(cs: Cs) -> Self {
        let Cs { capacity, packets, bytes, admit, serve } = cs;
        Self { capacity, packets, bytes, admit, serve }
    }

    fn text(&self) -> String {
        let on = |on| if on { "on" } else { "off" };
        format!(
            "capacity  {} packets\npackets   {}\nmemory    {}\nadmit     {}\nserve     {}",
            self.capacity,
            self.packets,
            human::bytes(self.bytes),
            on(self.admit),
            on(self.serve)
        )
    }
}

#[derive(Debug, Serialize)]
struct ShownCounter {
    kind: String,
    word: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Status {
    family: u16,
    faces: usize,
    routes: usize,
    content_store: ShownCs,
    counters: Vec<ShownCounter>,
}

/// Which counters `onym status --kernel` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    /// Those that are not 0.
    Counted,
}

/// `onym status --kernel`.
pub(crate) fn status(cx: &Context, which: Shown) -> anyhow::Result<()> {
    let family = onym_kernel::family().map_err(failure)?;
    let mut control = open()?;
    let counter = |c: Counter| ShownCounter { kind: c.kind, word: c.word, count: c.count };
    let counters = control.counters().map_err(failure)?.into_iter();
    let status = Status {
        family,
        faces: control.faces().map_err(failure)?.len(),
        routes: control.routes().map_err(failure)?.len(),
        content_store: ShownCs::of(control.cs().map_err(failure)?),
        counters: counters.filter(|c| which == Shown::All || c.count > 0).map(counter).collect(),
    };
    cx.print(&status, |s| {
        let row = |c: &ShownCounter| vec![c.kind.clone(), c.word.clone(), c.count.to_string()];
        let rows: Vec<_> = s.counters.iter().map(row).collect();
        format!(
            "family    {}\nfaces     {}\nroutes    {}\n\nContent store\n{}\n\n{}",
            s.family,
            s.faces,
            s.routes,
            s.content_store.text(),
            human::table(&["KIND", "COUNTER", "COUNT"], &rows)
        )
    })
}

#[derive(Debug, Serialize)]
struct Erased {
    prefix: String,
    erased: u64,
}

#[derive(Debug, Serialize)]
struct ShownPit {
    capacity: u64,
    entries: u64,
    bytes: u64,
    bytes_max: u64,
}

#[derive(Debug, Serialize)]
struct ShownPending {
    name: String,
    can_be_prefix: bool,
    must_be_fresh: bool,
    downstreams: u64,
    lifetime_ms: u64,
}
