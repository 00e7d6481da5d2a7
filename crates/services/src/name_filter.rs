//! The name filter: drops by name.
//!
//! In: both kinds of packets on both sides.  Out: what no rule drops, to the other side.
//! Tables: exact names and prefixes by hash, at most 64 regular expressions in order; together
//! bounded by `rules_max`, a rule beyond is refused.  Verdicts: `filtered` `forwarded` `no_face`
//! `malformed`.

mod rules;

use crate::config::{Action, KindConfig, NameFilter as Config};
use crate::control::{Answer, Entries, Request};
use crate::cx::{Cx, name_of};
use crate::element::Element;
use crate::refusal::Refusal;
use crate::rule::Applies;
use crate::stats::{self, KindStats};
use crate::table;
use crate::transparent;
use crate::verdict::Verdict;
use onym_link::{Packet, PacketKind};
use onym_tables::Tick;
use onym_wire::lp::NackReason;
use rules::Rules;

/// The element.
#[derive(Debug)]
pub(crate) struct NameFilter {
    config: Config,
    rules: Rules,
    dropped_interests: u64,
    dropped_data: u64,
}

impl NameFilter {
    pub(crate) fn new() -> Self {
        let config = Config::default();
        Self { config, rules: Rules::default(), dropped_interests: 0, dropped_data: 0 }
    }

    /// What the rules say of `packet`; `None` when it is malformed.
    fn decide(&mut self, cx: &Cx<'_>, packet: &Packet) -> Option<Action> {
        let (kind, on) = match packet.kind() {
            PacketKind::Data => (Applies::Data, self.config.drop_data),
            PacketKind::Interest | PacketKind::Nack => {
                (Applies::Interest, self.config.drop_interest)
            }
        };
        let name = name_of(packet)?;
        if !on {
            return Some(Action::Accept);
        }
        Some(self.rules.decide(cx.key, name, kind).unwrap_or(self.config.default))
    }
}

impl Element for NameFilter {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        let Some(action) = self.decide(cx, &packet) else { return Some(Verdict::Malformed) };
        if action == Action::Accept {
            return Some(transparent::cross(cx, packet));
        }
        let kind = packet.kind();
        match kind {
            PacketKind::Data => self.dropped_data += 1,
            _ => self.dropped_interests += 1,
        }
        if action == Action::Nack && kind == PacketKind::Interest {
            cx.nack(&packet, NackReason::NO_ROUTE);
        }
        Some(Verdict::Filtered)
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        transparent::cross(cx, packet);
    }

    fn config(&self) -> KindConfig {
        KindConfig::NameFilter(self.config.clone())
    }

    fn configure(&mut self, _: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::NameFilter(config) = config else { return Err(Refusal::no_path()) };
        self.config = config;
        Ok(())
    }

    fn stats(&self, _: &Cx<'_>) -> KindStats {
        KindStats::NameFilter(stats::NameFilter {
            dropped_interests: self.dropped_interests,
            dropped_data: self.dropped_data,
            rules: self.rules.len() as u64,
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        let max = self.config.rules_max;
        match request {
            Request::Rules(request) => self.rules.control(cx, request, max),
            Request::Export(page) => {
                Ok(table::export(page, &self.rules.specs(cx.now), Clone::clone, Entries::Rules))
            }
            Request::Import(table) => match table.entries {
                Entries::Rules(rules) => self.rules.import(cx, rules, max),
                _ => Err(Refusal::no_path()),
            },
            _ => Err(Refusal::no_path()),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.rules.expire(cx);
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.rules.next_end()
    }
}
