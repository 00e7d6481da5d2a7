//! best-route: the lowest-cost next hop, another one on each retransmission. Next hops of equal cost can
//! share what there is, flow by flow.

use super::retx::{bad, unknown};
use super::{Action, Ctx, Parameters, Retx, Strategy, StrategyError, Suppression};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_tables::hash::component_end;
use onym_wire::lp::NackReason;

/// Sends to the eligible next hop of lowest cost (NFD's best-route v5, but that the first Interest of
/// another downstream is no retransmission, unless `others~forward`: decision 15); with `equal~flow` of those of
/// lowest cost to the one that the name without its last component chooses.
#[derive(Debug, Default)]
pub struct BestRoute {
    retx: Retx,
    /// Equal next hops share by flow; else the first one has all.
    by_flow: bool,
    /// The first Interest of a downstream is a retransmission, too, as with NFD.
    forwards_others: bool,
}

impl BestRoute {
    /// An instance with `parameters`.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`].
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        let (mut by_flow, mut forwards_others) = (false, false);
        let retx = Retx::parse(parameters, |name, value| match (name, value) {
            ("equal", "flow" | "first") => {
                by_flow = value == "flow";
                Ok(())
            }
            ("others", "join" | "forward") => {
                forwards_others = value == "forward";
                Ok(())
            }
            ("equal", _) => Err(bad(name, value, "flow or first")),
            ("others", _) => Err(bad(name, value, "join or forward")),
            _ => Err(unknown(name, value)),
        })?;
        Ok(Box::new(Self { retx, by_flow, forwards_others }))
    }

    /// Of the eligible next hops of lowest cost the one that has this flow.
    fn shared(ctx: &Ctx<'_>, ingress: FaceId) -> Option<FaceId> {
        let mut eligible = ctx.eligible(ingress);
        let lowest = eligible.next()?;
        match eligible.next() {
            Some(hop) if hop.cost == lowest.cost => Self::chosen(ctx, ingress, lowest),
            _ => Some(lowest.face),
        }
    }

    #[cold]
    fn chosen(ctx: &Ctx<'_>, ingress: FaceId, lowest: NextHop) -> Option<FaceId> {
        let equal = ctx.eligible(ingress).take_while(|hop| hop.cost == lowest.cost);
        // By face, so that a next hop that comes or goes moves its own flows only; keyed, so that two
        // nodes in a row do not choose alike.
        let flow = ctx.key.name(without_last(ctx.name));
        let weight = |face: FaceId| ctx.key.words([flow, u64::from(face.0)]);
        equal.map(|hop| hop.face).max_by_key(|face| weight(*face))
    }
}

impl Strategy for BestRoute {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        if !self.forwards_others && self.retx.joins(ctx.now, ctx.entry, ingress) {
            return;
        }
        match self.retx.decide(ctx.now, ctx.entry) {
            Suppression::Suppress => ctx.push(Action::Suppress),
            Suppression::New => {
                let first = if self.by_flow {
                    Self::shared(ctx, ingress)
                } else {
                    ctx.eligible(ingress).next().map(|hop| hop.face)
                };
                match first {
                    Some(face) => ctx.push(Action::Forward(face)),
                    None => ctx.refuse_no_route(ingress),
                }
            }
            Suppression::Forward => {
                let unused = ctx.eligible_unused(ingress).next().map(|hop| hop.face);
                let chosen = unused.or_else(|| earliest_used(ctx, ingress));
                if let Some(face) = chosen {
                    ctx.push(Action::Forward(face));
                }
            }
        }
    }

    fn takes_first(&self) -> bool {
        !self.by_flow
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {
        ctx.merge_nacks();
    }
}

/// A name without its last component, the number of a segment mostly.
fn without_last(name: &[u8]) -> &[u8] {
    let (mut at, mut last) = (0, 0);
    while at < name.len() {
        (last, at) = (at, component_end(name, at));
    }
    name.get(..last).unwrap_or(name)
}

/// The eligible next hop that was used longest ago.
pub(crate) fn earliest_used(ctx: &Ctx<'_>, ingress: FaceId) -> Option<FaceId> {
    ctx.eligible(ingress)
        .filter_map(|hop| ctx.entry.out_record(hop.face))
        .min_by_key(|out| out.sent)
        .map(|out| out.face)
}
