//! Names of publications, of all three ways that are in use.

use super::AloConfig;
use crate::svs::Version;
use onym_wire::{Name, tlv};

/// How publications are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `/<group>/<node>/t=<boot>/seq=<n>/v=0/seg=<k>`, as ndnd's SvsALO.
    GroupFirst,
    /// `/<node>/<group>/t=<boot>/seq=<n>`, as specified for version 3: one Data each.
    NodeFirst,
    /// `/<node>/<group>/<n>` with a number in a generic component, as specified for version 2 and
    /// used by ndn-svs: one Data each.
    Numbered,
}

impl Layout {
    /// Whether a publication is one Data without a segment number.
    pub(crate) const fn is_single(self) -> bool {
        matches!(self, Self::NodeFirst | Self::Numbered)
    }
}

/// The name under which everything of `node` at `boot` is.
pub(crate) fn base(config: &AloConfig, node: &Name, boot: u64) -> Name {
    let mut name = match config.layout {
        Layout::GroupFirst => config.group.clone().join(node.as_ref()),
        Layout::NodeFirst | Layout::Numbered => node.clone().join(config.group.as_ref()),
    };
    if config.svs.version == Version::V3 && config.layout != Layout::Numbered {
        name.append_timestamp(boot);
    }
    name
}

/// Publication `seq`, without its segment number.
pub(crate) fn publication(config: &AloConfig, node: &Name, boot: u64, seq: u64) -> Name {
    let mut name = base(config, node, boot);
    match config.layout {
        Layout::GroupFirst => name.append_sequence_num(seq).append_version(0),
        Layout::NodeFirst => name.append_sequence_num(seq),
        Layout::Numbered => {
            let mut number = Vec::new();
            tlv::put_nni(&mut number, seq);
            name.append_generic(number)
        }
    };
    name
}

/// The base of a kind of object beside the publications: `SNAP`, `HIST`, `HIDX`.
pub(crate) fn special(config: &AloConfig, node: &Name, boot: u64, keyword: &str) -> Name {
    let mut name = base(config, node, boot);
    name.append_keyword(keyword);
    name
}

/// What is to be routed to the node of this participant.
pub(crate) fn data_prefix(config: &AloConfig) -> Option<Name> {
    let node = config.svs.node.as_ref()?;
    Some(base(config, node, config.svs.boot))
}
