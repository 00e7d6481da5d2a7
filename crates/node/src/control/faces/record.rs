//! What the node knows of one face.

use super::block::{Block, Newcomer};
use super::heard::Heard;
use crate::config::Framing;
use crate::control::settings::Settings;
use crate::control::target::Target;
use crate::mgmt::host::{FaceCounters, FaceProps, FaceView, User};
use onym_engine::ListenerId;
use onym_face::{Face, Peer, Transport};
use onym_forward::faces::FaceInfo;
use onym_frame::RxFrame;
use onym_link::{CongestionConfig, LinkConfig, PathMtu};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::{
    FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS, FACE_RELIABILITY, LinkType, Persistency, Scope,
};
use std::time::Duration;

/// Of whom the first frame came, at a listener without connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) listener: ListenerId,
    pub(crate) peer: Peer,
}

/// What the node knows of one face.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: FaceId,
    pub(crate) remote: String,
    pub(crate) local: String,
    pub(crate) scope: Scope,
    pub(crate) link_type: LinkType,
    pub(crate) transport: Transport,
    pub(crate) persistency: Persistency,
    pub(crate) flags: u64,
    pub(crate) congestion: CongestionConfig,
    /// Largest frame; none on streams.
    pub(crate) mtu: Option<usize>,
    /// What is done about the MTU of its path, on UDP to one peer.
    pub(crate) path: PathMtu,
    /// Largest frame that the transport takes.
    pub(crate) transport_mtu: usize,
    pub(crate) queue_bytes_max: usize,
    pub(crate) up: bool,
    /// The shard that does its I/O.
    pub(crate) owner: usize,
    /// How to make its transport again.
    pub(crate) target: Option<Target>,
    /// Delay before the next connection.
    pub(crate) backoff: Duration,
    /// When it is connected again.
    pub(crate) reconnect: Tick,
    /// The network said that nobody is there, which its peer can prove wrong.
    pub(in crate::control) doubt: Option<Doubt>,
    /// Frames counted when it was last looked at, and when they last changed.
    pub(crate) frames: u64,
    pub(crate) active: Tick,
    /// The listener and peer that it was made for.
    pub(crate) origin: Option<Origin>,
    /// Where its peer's frames arrive.
    pub(in crate::control) heard: Heard,
    /// Whether another machine made it by sending something.
    pub(crate) stranger: bool,
    /// Who is at the other end.
    pub(crate) user: User,
    /// When it was made.
    pub(crate) made: Tick,
    /// With whom it shares the room that strangers have.
    pub(crate) block: Block,
}

/// A face to be added to the node.
#[derive(Debug)]
pub(crate) struct NewFace {
    /// The transport; none for a permanent face that is not connected yet.
    pub(crate) io: Option<Box<dyn Face>>,
    pub(crate) persistency: Persistency,
    pub(crate) props: FaceProps,
    pub(crate) target: Option<Target>,
    pub(crate) origin: Option<Origin>,
    pub(crate) queue_bytes_max: Option<usize>,
    /// Frames that came before the face had a descriptor of its own.
    pub(crate) first: Vec<RxFrame>,
}

impl NewFace {
    /// A face for `io` with the default options.
    pub(crate) fn of(io: Option<Box<dyn Face>>, persistency: Persistency) -> Self {
        Self {
            io,
            persistency,
            props: FaceProps::default(),
            target: None,
            origin: None,
            queue_bytes_max: None,
            first: Vec::new(),
        }
    }
}

/// What is known of the other end of a new face.
struct Ends {
    remote: String,
    local: String,
    transport: Transport,
}

impl Ends {
    fn of(new: &NewFace) -> Self {
        match (&new.io, &new.target) {
            (Some(io), _) => Self {
                remote: io.remote_uri().to_string(),
                local: io.local_uri().to_string(),
                transport: io.transport(),
            },
            (None, Some(target)) => Self {
                remote: target.uri.to_string(),
                local: String::new(),
                transport: target.transport(),
            },
            (None, None) => {
                Self { remote: String::new(), local: String::new(), transport: Transport::Mem }
            }
        }
    }
}

/// A face that the network said leads nowhere. Anybody can forge that, so the face ends only when its
/// peer stays silent.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) struct Doubt {
    /// Frames of the peer so far.
    pub(in crate::control) in_frames: u64,
    /// Without another one until then the face ends.
    pub(in crate::control) until: Tick,
}

impl Record {
    /// The record of a new face that the shard `owner` does the I/O of.
    pub(in crate::control) fn new(
        id: FaceId,
        owner: usize,
        new: &NewFace,
        settings: &Settings,
        now: Tick,
    ) -> Self {
        let defaults = &settings.config.faces;
        let props = &new.props;
        let Ends { remote, local, transport } = Ends::of(new);
        let marks = defaults.congestion.marking && marks_by_default(transport);
        let marking = if marks { FACE_CONGESTION_MARKING } else { 0 };
        let own_mtu = new.io.as_ref().map_or(onym_wire::PACKET_LEN_MAX, |io| io.mtu());
        let default_mtu = match transport {
            Transport::Udp | Transport::UdpMulticast => defaults.udp.mtu,
            _ => own_mtu,
        };
        let asked = props.mtu.map_or(default_mtu, |m| usize::try_from(m).unwrap_or(own_mtu));
        let base_ms = Duration::from_millis(defaults.congestion.base_ms);
        let threshold = props.congestion_threshold.unwrap_or(defaults.congestion.threshold_bytes);
        let scope = new.io.as_deref().map_or(Scope::NonLocal, |io| settings.scope_of(io));
        Self {
            id,
            remote,
            local,
            scope,
            link_type: settings.link_type_of(new.io.as_deref()),
            transport,
            persistency: new.persistency,
            flags: marking & !props.mask | props.flags & props.mask,
            congestion: CongestionConfig {
                base_interval: props.congestion_interval_ns.map_or(base_ms, Duration::from_nanos),
                threshold: usize::try_from(threshold).unwrap_or(usize::MAX),
            },
            mtu: (!transport.is_reliable()).then(|| asked.min(own_mtu)),
            path: path_of(transport, new, defaults.udp.find_mtu),
            transport_mtu: own_mtu,
            queue_bytes_max: new.queue_bytes_max.unwrap_or(defaults.queue_bytes_max),
            up: new.io.is_some(),
            owner,
            target: new.target.clone(),
            backoff: Duration::from_millis(defaults.reconnect_min_ms),
            reconnect: if new.io.is_some() { Tick::NEVER } else { now },
            doubt: None,
            frames: 0,
            active: now,
            origin: new.origin,
            heard: Heard::default(),
            stranger: new.persistency == Persistency::OnDemand && scope == Scope::NonLocal,
            user: settings.user_of(new.io.as_deref()),
            made: now,
            block: Block::of(new.io.as_deref()),
        }
    }

    /// A face that was down has the transport `io`.
    pub(in crate::control) fn reopen(&mut self, io: &dyn Face, settings: &Settings) {
        self.user = settings.user_of(Some(io));
        self.local = io.local_uri().to_string();
        self.scope = settings.scope_of(io);
        self.transport = io.transport();
        self.mtu = self.mtu.map(|m| m.min(io.mtu()));
        self.transport_mtu = io.mtu();
        self.backoff = Duration::from_millis(settings.config.faces.reconnect_min_ms);
        (self.up, self.reconnect) = (true, Tick::NEVER);
    }

    /// The face as management shows it.
    pub(in crate::control) fn view(
        &self,
        counters: FaceCounters,
        settings: &Settings,
        now: Tick,
    ) -> FaceView {
        let left = || {
            let left = settings.idle_timeout().saturating_sub(now.since(self.active));
            u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
        };
        FaceView {
            id: self.id,
            remote_uri: self.remote.clone(),
            local_uri: self.local.clone(),
            expiration_ms: self.idles().then(left),
            scope: self.scope,
            persistency: self.persistency,
            link_type: self.link_type,
            congestion_interval_ns: u64::try_from(self.congestion.base_interval.as_nanos()).ok(),
            congestion_threshold: Some(self.congestion.threshold as u64),
            mtu: self.mtu.map(|m| counters.path_mtu.unwrap_or(u64::MAX).min(m as u64)),
            flags: self.flags,
            up: self.up,
            counters,
        }
    }

    pub(crate) fn is_datagram(&self) -> bool {
        !self.transport.is_reliable()
    }

    /// Whether another machine made it by sending something.
    pub(crate) fn is_stranger(&self) -> bool {
        self.stranger
    }

    /// For whom room is looked for.
    pub(in crate::control) fn newcomer(&self) -> Newcomer {
        if self.stranger { Newcomer::Stranger(self.block) } else { Newcomer::Own }
    }

    /// Whether it is closed when it stays idle.
    pub(crate) fn idles(&self) -> bool {
        self.persistency == Persistency::OnDemand && self.is_datagram()
    }

    /// What forwarding must know.
    pub(crate) fn info(&self) -> FaceInfo {
        FaceInfo {
            scope: self.scope,
            link: self.link_type,
            local_fields: self.flags & FACE_LOCAL_FIELDS != 0,
        }
    }

    /// How its link service works.
    pub(in crate::control) fn link_config(&self, settings: &Settings) -> LinkConfig {
        let base = match self.mtu {
            Some(mtu) => LinkConfig::datagram(mtu),
            None => LinkConfig::stream(),
        };
        let marking = self.flags & FACE_CONGESTION_MARKING != 0;
        LinkConfig {
            reliability: self.flags & FACE_RELIABILITY != 0,
            congestion_marking: marking.then_some(self.congestion),
            local_fields: self.flags & FACE_LOCAL_FIELDS != 0,
            reassembly_limits: settings.reassembly(),
            traces: settings.shares_traces(self.scope, &self.remote),
            push: true,
            path: self.path,
            first_sequence: crate::control::random(),
            ..base
        }
    }
}

/// What a face does about the MTU of its path: one that was told its MTU does not look for another, and
/// nodes of another framing know no probes.
fn path_of(transport: Transport, new: &NewFace, finds: bool) -> PathMtu {
    let is_other = |target: &Target| target.framing != Framing::Packets;
    match transport {
        _ if new.target.as_ref().is_some_and(is_other) => PathMtu::Off,
        Transport::Udp if finds && new.props.mtu.is_none() => PathMtu::Find,
        Transport::Udp => PathMtu::Answer,
        _ => PathMtu::Off,
    }
}

/// Whether congestion is marked without being asked for, as NFD does: where the transport tells how
/// much of its queue is not sent yet.
fn marks_by_default(transport: Transport) -> bool {
    use Transport as T;
    !matches!(transport, T::Ether | T::EtherMulticast | T::WebSocket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_looked_for_where_nobody_said_its_mtu_and_probes_are_known() {
        let mut new = NewFace::of(None, Persistency::Permanent);
        assert_eq!(path_of(Transport::Udp, &new, true), PathMtu::Find);
        assert_eq!(path_of(Transport::Udp, &new, false), PathMtu::Answer);
        assert_eq!(path_of(Transport::UdpMulticast, &new, true), PathMtu::Off);
        new.props.mtu = Some(1400);
        assert_eq!(path_of(Transport::Udp, &new, true), PathMtu::Answer);
        let uri = "udp4://192.0.2.1:6363".parse().unwrap();
        let framing = Framing::OldPush;
        new.target = Some(Target { uri, local: None, fault: None, capture: None, framing });
        assert_eq!(path_of(Transport::Udp, &new, true), PathMtu::Off);
    }
}
