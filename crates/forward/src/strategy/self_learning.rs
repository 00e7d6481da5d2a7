//! self-learning: routes from broadcast Interests and the announcements that come back.

use super::random::none;
use super::{
    Action, Ctx, DataIn, Parameters, Refusal, Retx, Strategy, StrategyError, Suppression, out_marks,
};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;

/// Where there is no route, a discovery Interest is broadcast, and the prefix announcement that
/// comes with its Data becomes a route (NFD's self-learning v1).
#[derive(Debug)]
pub struct SelfLearning;

impl SelfLearning {
    /// An instance; there are no parameters.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`] for any parameter.
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        none(parameters)?;
        Ok(Box::new(Self))
    }
}

/// Sends a discovery to every non-local face.
fn broadcast(ctx: &mut Ctx<'_>, ingress: FaceId) {
    let faces = ctx.faces;
    let remote = faces.iter().filter(|face| !face.is_local()).map(|face| face.id);
    spread(ctx, ingress, remote, Action::Forward);
}

/// Sends to every next hop, which need not discover any more.
fn multicast(ctx: &mut Ctx<'_>, ingress: FaceId) {
    let hops = ctx.next_hops;
    spread(ctx, ingress, hops.iter().map(|hop| hop.face), Action::ForwardNonDiscovery);
}

/// Sends to each of `faces` that is eligible. One that has the Interest already gets it again only
/// after the interval of multicast, which grows: otherwise a link that duplicates frames makes
/// every node on the way multiply them.
fn spread(
    ctx: &mut Ctx<'_>,
    ingress: FaceId,
    faces: impl Iterator<Item = FaceId>,
    send: impl Fn(FaceId) -> Action,
) {
    let retx = Retx::default();
    let (mut sent, mut suppressed) = (false, false);
    for face in faces {
        if !ctx.is_eligible(ingress, face) {
            continue;
        }
        match retx.decide_upstream(ctx.now, ctx.entry, face) {
            Suppression::Suppress => suppressed = true,
            Suppression::New | Suppression::Forward => {
                ctx.push(send(face));
                sent = true;
            }
        }
    }
    if suppressed && !sent {
        ctx.push(Action::Suppress);
    } else if !sent {
        // The entry stays, as in NFD: nobody was refused.
        ctx.push(Action::Hold(Refusal::NoEligibleNextHop));
    }
}

impl Strategy for SelfLearning {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        let non_discovery = ctx.entry.in_record(ingress).is_some_and(|r| r.non_discovery);
        match (ctx.next_hops.is_empty(), non_discovery) {
            (false, _) => multicast(ctx, ingress),
            (true, false) => broadcast(ctx, ingress),
            (true, true) => ctx.refuse_no_route(ingress),
        }
    }

    fn minds_data(&self) -> bool {
        true
    }

    fn before_satisfy(&self, ctx: &mut Ctx<'_>, data: &DataIn<'_>) {
        let Some(out) = ctx.entry.out_record(data.face) else { return };
        if out.marks & out_marks::NON_DISCOVERY == 0 {
            if let Some(announcement) = data.announcement {
                ctx.push(Action::Learn(data.face, announcement.clone()));
            }
            return;
        }
        let asks = |face: FaceId| ctx.faces.get(face).is_some_and(|face| !face.is_local());
        if ctx.entry.ins.iter().any(|r| !r.non_discovery && asks(r.face)) {
            ctx.push(Action::AttachAnnouncement);
        }
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, face: FaceId, reason: NackReason) {
        if reason == NackReason::NO_ROUTE {
            ctx.push(Action::NackAll(NackReason::NO_ROUTE));
            ctx.push(Action::Unlearn(face));
        }
    }
}
