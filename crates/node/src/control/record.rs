//! What the node knows of one face.

use super::connect::Target;
use super::room::Block;
use crate::mgmt::host::{FaceProps, User};
use onym_face::{Face, Peer, Transport};
use onym_forward::faces::FaceInfo;
use onym_frame::RxFrame;
use onym_link::{CongestionConfig, LinkConfig, ReassemblyLimits};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::{
    FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS, FACE_RELIABILITY, LinkType, Persistency, Scope,
};
use std::time::Duration;

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
    /// Frames counted when it was last looked at, and when they last changed.
    pub(crate) frames: u64,
    pub(crate) active: Tick,
    /// The listener and peer that it was made for.
    pub(crate) peer: Option<(usize, Peer)>,
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
    pub(crate) peer: Option<(usize, Peer)>,
    pub(crate) queue_bytes_max: Option<usize>,
    /// Frames that came before the face had a descriptor of its own.
    pub(crate) first: Vec<RxFrame>,
}

impl NewFace {
    /// A face for `io` without special wishes.
    pub(crate) fn of(io: Option<Box<dyn Face>>, persistency: Persistency) -> Self {
        Self {
            io,
            persistency,
            props: FaceProps::default(),
            target: None,
            peer: None,
            queue_bytes_max: None,
            first: Vec::new(),
        }
    }
}

impl Record {
    pub(crate) fn is_datagram(&self) -> bool {
        !self.transport.is_reliable()
    }

    /// Whether another machine made it by sending something.
    pub(crate) fn is_stranger(&self) -> bool {
        self.stranger
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
    pub(crate) fn link_config(&self, reassembly: ReassemblyLimits) -> LinkConfig {
        let base = match self.mtu {
            Some(mtu) => LinkConfig::datagram(mtu),
            None => LinkConfig::stream(),
        };
        let marking = self.flags & FACE_CONGESTION_MARKING != 0;
        LinkConfig {
            reliability: self.flags & FACE_RELIABILITY != 0,
            congestion_marking: marking.then_some(self.congestion),
            local_fields: self.flags & FACE_LOCAL_FIELDS != 0,
            reassembly_limits: reassembly,
            push: true,
            ..base
        }
    }
}
