//! Interests of this shard that are recorded on their way over nodes (`onym_watch::Spans`).

use super::Shard;
use super::watch::is_management;
use onym_forward::Verdict;
use onym_frame::Buf;
use onym_link::{Outgoing, Packet, PacketKind};
use onym_tables::{FaceId, Tick};
use onym_watch::{End, FACES_MAX, Outcome, Span, Spans, Wait, name_of};
use onym_wire::lp::TraceContext;

impl Shard {
    #[inline]
    fn spans(&mut self) -> Option<&mut Spans> {
        self.watch.as_mut()?.spans_mut()
    }

    /// An Interest that is to be recorded goes through the forwarder; its copies carry our span on.
    #[cold]
    pub(super) fn forward_traced(&mut self, now: Tick, packet: &mut Packet) -> Verdict {
        // To the forwarder it is an announcement, which no Interest has.
        let attached = packet.lp.prefix_announcement.take();
        let came = attached.as_deref().and_then(TraceContext::parse);
        let before = self.out.items.len();
        let verdict = self.fw.receive_as(now, PacketKind::Interest, packet, &mut self.out);
        if let Some(name) = name_of(&packet.bytes)
            && verdict != Verdict::Malformed
            && !is_management(name)
            && let Some(context) = self.spans().and_then(|spans| spans.begin(now, came))
        {
            let to = self.hand_on(context, before);
            let span = Span {
                context,
                parent: came.map(|context| context.span),
                name: name.to_vec(),
                from: packet.face,
                to,
                began: now,
                ended: now,
                outcome: Outcome { word: verdict.label(), is_drop: verdict.is_drop() },
                end: End::Decided,
            };
            let wait = self.wait(packet, verdict, before);
            if let Some(spans) = self.spans() {
                spans.decided(span, wait);
            }
        }
        packet.lp.prefix_announcement = attached;
        verdict
    }

    /// What an Interest waits for that ended so, and whose copies are in the outbox from `first` on.
    fn wait(&self, packet: &Packet, verdict: Verdict, first: usize) -> Option<Wait> {
        let waits = matches!(
            verdict,
            Verdict::Forwarded | Verdict::Aggregated | Verdict::Suppressed | Verdict::Delivered
        );
        let token = waits.then(|| self.token_of(packet, first)).flatten()?;
        let (due, can_be_prefix) = self.fw.waits_until(&token, packet.face)?;
        Some(Wait { token, due, can_be_prefix })
    }

    /// Gives the copies in the outbox, from `first` on, the context; the faces that they go to.
    fn hand_on(&mut self, context: TraceContext, first: usize) -> Vec<FaceId> {
        let octets = Buf::copy_from(&context.to_octets());
        let mut to = Vec::new();
        for item in &mut self.out.items[first..] {
            if let Outgoing::Pull(PacketKind::Interest, lp) = &mut item.what {
                lp.prefix_announcement = Some(octets.clone());
                if to.len() < FACES_MAX {
                    to.push(item.face);
                }
            }
        }
        to
    }

    /// A packet was taken in: the spans end for which nobody waits any more.
    #[inline]
    pub(super) fn end_spans(&mut self, now: Tick, packet: &Packet) {
        let Some(spans) = self.watch.as_mut().and_then(|watch| watch.spans_mut()) else { return };
        if spans.may_end(packet) {
            let fw = &self.fw;
            spans.answered(now, packet, |token| fw.waits(token));
        }
    }
}
