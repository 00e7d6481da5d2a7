//! Options of faces and of the content store.

use super::packets::{Wrong, wrong};
use super::{CsSpec, FaceSpec, Transport};
use onym_wire::mgmt::LinkType;

pub(super) fn face(name: &str, options: &[&str]) -> Result<FaceSpec, Wrong> {
    let mut face = FaceSpec {
        name: name.into(),
        local: false,
        link: LinkType::PointToPoint,
        mtu: 8800,
        fragment: true,
        reliability: false,
        local_fields: false,
        see_frames: false,
        transport: Transport::Auto,
        by_peer: false,
    };
    let mut fragment = None;
    for option in options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let of = |all: &str| wrong(format!("{key}: {value:?}"), all);
        match key {
            "scope" => face.local = pick(value, &[("local", true), ("non-local", false)])?,
            "link" => {
                let all = [
                    ("p2p", LinkType::PointToPoint),
                    ("multi-access", LinkType::MultiAccess),
                    ("ad-hoc", LinkType::AdHoc),
                ];
                face.link = pick(value, &all)?;
            }
            "mtu" => face.mtu = value.parse().map_err(|_| of("octets"))?,
            "fragment" => fragment = Some(switch(value)?),
            "reliability" => face.reliability = switch(value)?,
            "local-fields" => face.local_fields = switch(value)?,
            "see" => face.see_frames = pick(value, &[("packets", false), ("frames", true)])?,
            "made" => face.by_peer = pick(value, &[("command", false), ("peer", true)])?,
            "transport" => face.transport = transport(value)?,
            _ => {
                return Err(wrong(
                    format!("unknown face option {key:?}"),
                    "scope link mtu fragment reliability local-fields see transport made",
                ));
            }
        }
    }
    face.fragment = fragment.unwrap_or(!face.local);
    Ok(face)
}

fn transport(value: &str) -> Result<Transport, Wrong> {
    pick(
        value,
        &[
            ("auto", Transport::Auto),
            ("unix", Transport::Unix),
            ("udp", Transport::Udp),
            ("tcp", Transport::Tcp),
            ("ws", Transport::Ws),
            ("ether", Transport::Ether),
        ],
    )
}

fn switch(value: &str) -> Result<bool, Wrong> {
    pick(value, &[("on", true), ("off", false)])
}

fn pick<T: Copy>(value: &str, all: &[(&str, T)]) -> Result<T, Wrong> {
    all.iter().find(|(w, _)| *w == value).map(|(_, t)| *t).ok_or_else(|| {
        wrong(
            format!("unknown value {value:?}"),
            all.iter().map(|(w, _)| *w).collect::<Vec<_>>().join(" "),
        )
    })
}

pub(super) fn cs(words: &[&str]) -> Result<CsSpec, Wrong> {
    let mut spec = CsSpec::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "capacity" => spec.capacity = Some(ms(value)?),
            "policy" => {
                spec.policy =
                    Some(pick(value, &[("lru", "lru"), ("priority_fifo", "priority_fifo")])?.into())
            }
            "admit" => spec.admit = Some(switch(value)?),
            "serve" => spec.serve = Some(switch(value)?),
            "unsolicited" => {
                let all = ["drop-all", "admit-local", "admit-network", "admit-all"];
                spec.unsolicited = Some(pick(value, &all.map(|w| (w, w)))?.into());
            }
            _ => {
                return Err(wrong(
                    format!("unknown setting {key:?}"),
                    "capacity policy admit serve unsolicited",
                ));
            }
        }
    }
    Ok(spec)
}

pub(super) fn ms(text: &str) -> Result<u64, Wrong> {
    text.parse().map_err(|_| wrong(format!("{text:?} is no number"), "digits"))
}
