//! Interests of this shard that are recorded on their way over nodes (`onym_watch::Spans`).

use super::Shard;
use super::watch::is_management;
use onym_forward::Verdict;
use onym_frame::Buf;
use onym_link::{Outgoing, Packet, PacketKind};
use onym_tables::Tick;
use onym_tables::pit::TOKEN_LEN;
use onym_watch::{End, Faces, Outcome, Span, Spans, Wait};
use onym_wire::lp::TraceContext;

impl Shard {
    #[inline]
    fn spans(&mut self) -> Option<&mut Spans> {
        self.watch.as_mut()?.spans_mut()
    }

    /// The forwarder decided about an Interest that is to be recorded, whose copies are in the outbox from
    /// `first` on: they carry our span on. `token` is that of the entry in which it waits. Whether it is
    /// recorded.
    pub(super) fn record(
        &mut self,
        now: Tick,
        packet: &Packet,
        name: Option<&[u8]>,
        verdict: Verdict,
        first: usize,
        token: Option<[u8; TOKEN_LEN]>,
    ) -> bool {
        let Some(name) = name.filter(|name| !is_management(name)) else { return false };
        let came = packet.lp.prefix_announcement.as_deref().and_then(TraceContext::parse);
        let is_fit = verdict != Verdict::Malformed;
        let begun = self.spans().filter(|_| is_fit).and_then(|spans| spans.begin(now, came));
        let Some(context) = begun else { return false };
        let span = Span {
            context,
            parent: came.map(|context| context.span),
            name: name.to_vec(),
            from: packet.face,
            to: self.hand_on(context, first),
            began: now,
            ended: now,
            outcome: Outcome { word: verdict.label(), is_drop: verdict.is_drop() },
            end: End::Decided,
        };
        let wait = token.and_then(|token| self.wait(packet, verdict, token));
        if let Some(spans) = self.spans() {
            spans.decided(span, wait);
        }
        true
    }

    /// What an Interest waits for that ended so, in the entry of this token.
    fn wait(&self, packet: &Packet, verdict: Verdict, token: [u8; TOKEN_LEN]) -> Option<Wait> {
        let waits = matches!(
            verdict,
            Verdict::Forwarded | Verdict::Aggregated | Verdict::Suppressed | Verdict::Delivered
        );
        if !waits {
            return None;
        }
        let (due, can_be_prefix) = self.fw.waits_until(&token, packet.face)?;
        Some(Wait { token, due, can_be_prefix })
    }

    /// Gives the copies in the outbox, from `first` on, the context; the faces that they go to.
    fn hand_on(&mut self, context: TraceContext, first: usize) -> Faces {
        let octets = Buf::copy_from(&context.to_octets());
        let copies = &mut self.out.items[first..];
        let mut to = Faces::default();
        for item in copies {
            if let Outgoing::Pull(PacketKind::Interest, lp) = &mut item.what {
                lp.prefix_announcement = Some(octets.clone());
                to.push(item.face);
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
