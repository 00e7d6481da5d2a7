//! Packets out.
//!
//! In: what leaves by this face.  Out: frames in the send queue.
//! Drops: `over_mtu`, `queue_full`.  Counters: [`super::LinkCounters`].
//!
//! ```text
//! no header field     the packet itself
//! fits                LpPacket { fields, Fragment { packet } }
//! over the MTU        LpPacket { Sequence, FragIndex, FragCount, fields of the first, Fragment } …
//! over 8800, stream   the packet itself: a peer drops longer frames, and fields are less than it
//! ```

use super::reliability::{ACK_LEN, Piece};
use super::{Link, LinkConfig, LinkUnsent};
use crate::{LpOut, Outgoing, PacketKind, Payload, Transmit};
use onym_frame::{Buf, FrameRow, TxQueue};
use onym_tables::Tick;
use onym_tables::pit::{TOKEN_LEN, TOKEN_LEN_MAX};
use onym_wire::lp::{FRAGMENTS_MAX, LpHeader, TraceContext};
use onym_wire::tlv::tlv_len;
use onym_wire::types;
use std::num::NonZeroU64;
use std::ops::Range;

/// What NFD reserves in each fragment: LpPacket and Fragment TYPE and LENGTH (10 each), Sequence,
/// FragIndex and FragCount (10 each).
const FRAGMENT_OVERHEAD: usize = 50;
/// Octets of a TxSequence field.
const TX_SEQUENCE_LEN: usize = 12;
/// Room left for LENGTHs that grow by a longer size when acknowledgements are added.
const GROWTH: usize = 4;

/// Octets of a Sequence field.
const SEQUENCE_LEN: usize = 10;
/// Octets of an LpPacket around its fields.
const IDLE_OVERHEAD: usize = 4;

/// The packet to send, wherever its bytes are.
#[derive(Clone, Copy)]
struct Body<'a> {
    bytes: &'a [u8],
    /// The same bytes when they are shared.
    shared: Option<&'a Buf>,
}

/// The octets of one frame.
struct Part<'a> {
    bytes: &'a [u8],
    /// The same octets when they are shared.
    shared: Option<(&'a Buf, Range<usize>)>,
}

/// The link-layer fields of what is sent; what is not of the pull half has none.
#[derive(Clone, Copy)]
enum Fields<'a> {
    Pull(PacketKind, &'a LpOut),
    None,
}

/// How a packet is cut into pieces.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Octets of the first piece, and of each other but the last.
    first: usize,
    room: usize,
    count: usize,
    /// At most so many octets of header in each frame.
    overhead: usize,
}

impl Link {
    /// Puts `item`, whose changed bytes are in `arena`, into the send queue.
    ///
    /// # Errors
    /// [`LinkUnsent`] when it does not fit the face, or the queue is full; counted.
    pub fn send(
        &mut self,
        now: Tick,
        item: &Transmit,
        arena: &[u8],
        queue: &mut TxQueue,
    ) -> Result<(), LinkUnsent> {
        let body = match &item.bytes {
            Payload::Arena(r) => {
                Body { bytes: &arena[r.start as usize..r.end as usize], shared: None }
            }
            Payload::Shared(buf) => Body { bytes: buf, shared: Some(buf) },
        };
        let (own, fields) = match &item.what {
            Outgoing::Pull(kind, lp) => (lp.congestion_mark, Fields::Pull(*kind, lp)),
            Outgoing::PushFrame | Outgoing::App(_) => (0, Fields::None),
        };
        let mark = self.congestion_mark(now, own, queue.bytes());
        self.send_marked(now, fields, mark, body, queue)
    }

    fn send_marked(
        &mut self,
        now: Tick,
        fields: Fields<'_>,
        mark: u8,
        body: Body<'_>,
        queue: &mut TxQueue,
    ) -> Result<(), LinkUnsent> {
        let sent = match self.token_alone(fields, mark) {
            Some([]) if body.bytes.len() <= self.frame_len_max => self.push_bare(body, queue),
            Some(token @ [_, ..]) if TOKEN_HEAD_MAX + body.bytes.len() <= self.frame_len_max => {
                let (head, len) = token_head(token, body.bytes.len());
                self.push_with_head(&head[..len], body, queue)
            }
            _ => self.send_with_fields(now, fields, mark, body, queue),
        };
        match sent {
            Ok(()) => {}
            Err(LinkUnsent::OverMtu) => self.counters.over_mtu += 1,
            Err(LinkUnsent::QueueFull) => self.counters.queue_full += 1,
        }
        sent
    }

    /// Puts frames of the push half into the send queue: for each of `row`, `head` and
    /// what stands in it from `from` on, which may be shared with other faces. What does not fit
    /// the face, or the queue, is counted.
    pub fn send_row(
        &mut self,
        now: Tick,
        head: &[u8],
        row: &FrameRow,
        from: usize,
        queue: &mut TxQueue,
    ) {
        let len = head.len() + row.frame_len() - from;
        let is_bare = self.reliability.is_none() && len <= self.frame_len_max;
        let mut rest = Some(row.clone());
        while let Some(row) = rest {
            let queued = queue.bytes();
            let mark = self.congestion_mark(now, 0, queued);
            if is_bare && mark == 0 {
                // Where the first is not marked, none at the same time is; the last one may be the
                // first that finds the queue long.
                let taken = queue.push_row(head, &row, from);
                self.congestion_mark(now, 0, queued + taken.saturating_sub(1) * len);
                self.counters.frames_out += taken as u64;
                self.counters.queue_full += (row.count() - taken) as u64;
                return;
            }
            let rest_of_first = row.first().get(from..).unwrap_or_default();
            let joined = Buf::joined(head, rest_of_first);
            let body = Body { bytes: &joined, shared: Some(&joined) };
            let _ = self.send_marked(now, Fields::None, mark, body, queue);
            rest = row.skip(1);
        }
    }

    /// The mark that the packet leaves with: its own, or ours when the queue stays long.
    fn congestion_mark(&mut self, now: Tick, own: u8, queued: usize) -> u8 {
        let Some(config) = self.config.congestion_marking else { return own };
        self.has_looked = true;
        let is_long = self.congestion.check(now, queued + self.socket_queue, config);
        if !is_long && queued <= self.mark_from {
            return own;
        }
        self.counters.congestion_marked += 1;
        own.max(1)
    }

    /// The token, perhaps none, of a packet that needs no header field beside it.
    #[inline]
    fn token_alone<'a>(&self, fields: Fields<'a>, mark: u8) -> Option<&'a [u8]> {
        let (token, has_none) = match fields {
            Fields::None => (&[][..], true),
            Fields::Pull(kind, lp) => {
                let has_one = self.has_more(lp)
                    || lp.prefix_announcement.is_some() && self.tells_attached(kind);
                (&*lp.pit_token, !has_one)
            }
        };
        (mark == 0 && has_none && self.reliability.is_none()).then_some(token)
    }

    /// Whether there is more to tell than the token, the mark, and what is attached.
    #[inline(always)]
    fn has_more(&self, lp: &LpOut) -> bool {
        lp.nack.is_some()
            || (lp.incoming_face.is_some() && self.tells_faces())
            || lp.no_cache
            || lp.non_discovery
    }

    /// The header of an Interest of `len` octets with a trace context, where the context and our token are
    /// the only fields and the frame is short, as nearly all of them are.
    fn traced_head(
        &self,
        fields: Fields<'_>,
        mark: u8,
        len: usize,
    ) -> Option<[u8; TRACED_HEAD_LEN]> {
        let Fields::Pull(PacketKind::Interest, lp) = fields else { return None };
        let context = lp.prefix_announcement.as_deref()?.try_into().ok()?;
        let has_more = mark != 0 || self.has_more(lp) || self.reliability.is_some();
        let is_told = self.config.traces && !self.config.services && !has_more;
        let fits = TRACED_HEAD_LEN + len <= self.frame_len_max.min(SHORT_FRAME_MAX);
        (is_told && fits).then_some(traced_head(lp.pit_token.as_ours()?, context, len))
    }

    /// Whether packets say where they came from.
    fn tells_faces(&self) -> bool {
        self.config.local_fields || self.config.services
    }

    /// Whether what goes with a packet in the place of an announcement leaves by this face.
    #[cold]
    fn tells_attached(&self, kind: PacketKind) -> bool {
        kind != PacketKind::Interest || self.config.traces || self.config.services
    }

    fn push_bare(&mut self, body: Body<'_>, queue: &mut TxQueue) -> Result<(), LinkUnsent> {
        let pushed = match body.shared {
            Some(buf) => queue.push(&[], Some(buf)),
            None => queue.push(body.bytes, None),
        };
        pushed.map_err(|_| LinkUnsent::QueueFull)?;
        self.counters.frames_out += 1;
        Ok(())
    }

    /// What [`Link::send_with_fields`] does where the head is known, which is nearly always.
    fn push_with_head(
        &mut self,
        head: &[u8],
        body: Body<'_>,
        queue: &mut TxQueue,
    ) -> Result<(), LinkUnsent> {
        let pushed = match body.shared {
            Some(buf) => queue.push(head, Some(buf)),
            None => queue.push_joined(head, body.bytes),
        };
        pushed.map_err(|_| LinkUnsent::QueueFull)?;
        self.counters.frames_out += 1;
        Ok(())
    }

    fn send_with_fields(
        &mut self,
        now: Tick,
        fields: Fields<'_>,
        mark: u8,
        body: Body<'_>,
        queue: &mut TxQueue,
    ) -> Result<(), LinkUnsent> {
        let len = body.bytes.len();
        if let Some(head) = self.traced_head(fields, mark, len) {
            return self.push_with_head(&head, body, queue);
        }
        let header = fields.header(mark, &self.config);
        let cut = match self.cut(now, header.fields_len(), len) {
            Some(cut) => cut,
            None if fields.may_be_left_out() && len <= self.limit => {
                self.counters.bare += 1;
                return self.push_bare(body, queue);
            }
            None => return Err(LinkUnsent::OverMtu),
        };
        if !queue.is_empty() && len + cut.count * cut.overhead > queue.room() {
            return Err(LinkUnsent::QueueFull);
        }
        if cut.count > 1 {
            self.counters.fragmented += 1;
        }
        if self.has_promise(cut.count) {
            self.send_promised(now, fields, mark, body, cut, queue);
        } else {
            self.send_once(header, body, cut, queue);
        }
        Ok(())
    }

    /// How a packet of `len` octets with `fields_len` octets of fields is cut; `None` when it does
    /// not fit and may not be cut.
    fn cut(&mut self, now: Tick, fields_len: usize, len: usize) -> Option<Cut> {
        let reliable = if self.reliability.is_some() { SEQUENCE_LEN + TX_SEQUENCE_LEN } else { 0 };
        let whole = frame_len(fields_len + reliable, len);
        if whole <= self.frame_len_max {
            return Some(Cut { first: len, room: len, count: 1, overhead: whole - len });
        }
        if let Some(path) = &mut self.path {
            path.note_long(now);
            self.settle_lengths();
        }
        if whole <= self.limit {
            return Some(Cut { first: len, room: len, count: 1, overhead: whole - len });
        }
        if !self.config.fragmentation {
            return None;
        }
        let overhead = FRAGMENT_OVERHEAD + if reliable == 0 { 0 } else { TX_SEQUENCE_LEN };
        let room = self.limit.checked_sub(overhead).filter(|room| *room > 0)?;
        let first = room.checked_sub(fields_len).filter(|first| *first > 0)?;
        let count = 1 + (len - first.min(len)).div_ceil(room);
        let cut = Cut { first, room, count, overhead: overhead + fields_len };
        (count as u64 <= FRAGMENTS_MAX).then_some(cut)
    }

    fn has_promise(&mut self, count: usize) -> bool {
        self.reliability.as_mut().is_some_and(|r| r.has_room(count))
    }

    /// Sends the pieces and forgets them.
    fn send_once(&mut self, header: LpHeader<'_>, body: Body<'_>, cut: Cut, queue: &mut TxQueue) {
        for index in 0..cut.count {
            let mut header = if index == 0 { header } else { LpHeader::default() };
            if cut.count > 1 {
                header.sequence = Some(self.next_sequence());
                header.fragment = Some((index as u64, cut.count as u64));
            }
            self.push_frame(header, body.part(cut.range(index, body.bytes.len())), queue);
        }
    }

    /// Sends the pieces and keeps them until they are acknowledged.
    fn send_promised(
        &mut self,
        now: Tick,
        fields: Fields<'_>,
        mark: u8,
        body: Body<'_>,
        cut: Cut,
        queue: &mut TxQueue,
    ) {
        let packet = body.shared.cloned().unwrap_or_else(|| Buf::copy_from(body.bytes));
        for index in 0..cut.count {
            let sequence = self.next_sequence();
            let mut piece = Piece::new(packet.clone(), fields.kind(), sequence);
            piece.range = cut.range(index, packet.len());
            piece.index = index as u64;
            piece.count = cut.count as u64;
            if index == 0 {
                piece.lp = Some(Box::new(fields.marked(mark)));
            }
            self.push_piece(now, piece, queue);
        }
    }

    /// Sends one piece under a new TxSequence.
    fn push_piece(&mut self, now: Tick, piece: Piece, queue: &mut TxQueue) {
        let Some(reliability) = &mut self.reliability else { return };
        let tx_sequence = reliability.keep(now, piece.clone());
        let mut header = match &piece.lp {
            Some(lp) => header_of(piece.kind, lp, lp.congestion_mark, &self.config),
            None => LpHeader::default(),
        };
        header.sequence = Some(piece.sequence);
        header.tx_sequence = Some(tx_sequence);
        if piece.count > 1 {
            header.fragment = Some((piece.index, piece.count));
        }
        let body = Body { bytes: &piece.packet, shared: Some(&piece.packet) };
        self.push_frame(header, body.part(piece.range.clone()), queue);
    }

    /// Puts one LpPacket into the queue, with the acknowledgements that it has room for.
    ///
    /// The caller looked for room in the queue; a frame that is refused all the same is lost as
    /// on the link, and reliability sends it again.
    fn push_frame(&mut self, header: LpHeader<'_>, part: Part<'_>, queue: &mut TxQueue) {
        let mut acks = std::mem::take(&mut self.acks);
        acks.clear();
        if let Some(reliability) = &mut self.reliability {
            let len = frame_len(header.fields_len(), part.bytes.len()) + GROWTH;
            let limit = if queue.is_empty() { usize::MAX } else { queue.room() };
            let room = self.frame_len_max.min(limit).saturating_sub(len);
            reliability.take_acks(room, &mut acks);
        }
        let header = LpHeader { acks: &acks, ..header };
        self.head.clear();
        header.write(&mut self.head, part.bytes.len());
        let pushed = match part.shared {
            Some((buf, range)) => queue.push(&self.head, Some(&buf.slice(range))),
            None => {
                self.head.extend_from_slice(part.bytes);
                queue.push(&self.head, None)
            }
        };
        self.acks = acks;
        match pushed {
            Ok(()) => self.counters.frames_out += 1,
            Err(_) => self.counters.queue_full += 1,
        }
    }

    /// Sends again what was not acknowledged.
    pub(crate) fn send_lost(&mut self, now: Tick, queue: &mut TxQueue) {
        while let Some(piece) = self.reliability.as_mut().and_then(|r| r.next_lost()) {
            self.push_piece(now, piece, queue);
        }
    }

    /// Sends the acknowledgements that are due in frames of their own.
    pub(crate) fn send_idle(&mut self, now: Tick, queue: &mut TxQueue) {
        while self.reliability.as_ref().is_some_and(|r| r.is_idle_due(now)) {
            let mut acks = std::mem::take(&mut self.acks);
            if let Some(reliability) = &mut self.reliability {
                let room = self.frame_len_max.saturating_sub(IDLE_OVERHEAD).max(ACK_LEN);
                reliability.take_acks(room, &mut acks);
            }
            self.head.clear();
            LpHeader { acks: &acks, ..LpHeader::default() }.write(&mut self.head, 0);
            self.acks = acks;
            match queue.push(&self.head, None) {
                Ok(()) => self.counters.frames_out += 1,
                Err(_) => self.counters.queue_full += 1,
            }
        }
    }

    fn next_sequence(&mut self) -> u64 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }
}

impl<'a> Fields<'a> {
    /// The kind, of a packet of the pull half.
    fn kind(self) -> Option<PacketKind> {
        match self {
            Self::Pull(kind, _) => Some(kind),
            Self::None => None,
        }
    }

    /// Whether what is sent means the same without them: a Nack would be an Interest.
    fn may_be_left_out(self) -> bool {
        self.kind() != Some(PacketKind::Nack)
    }

    /// As a header, with this congestion mark.
    fn header(self, mark: u8, config: &LinkConfig) -> LpHeader<'a> {
        match self {
            Self::Pull(kind, lp) => header_of(Some(kind), lp, mark, config),
            Self::None => LpHeader { congestion_mark: u64::from(mark), ..LpHeader::default() },
        }
    }

    /// A copy with this congestion mark.
    fn marked(self, mark: u8) -> LpOut {
        match self {
            Self::Pull(_, lp) => LpOut { congestion_mark: mark, ..lp.clone() },
            Self::None => LpOut { congestion_mark: mark, ..LpOut::default() },
        }
    }
}

impl<'a> Body<'a> {
    fn part(self, range: Range<usize>) -> Part<'a> {
        Part { bytes: &self.bytes[range.clone()], shared: self.shared.map(|buf| (buf, range)) }
    }
}

impl Cut {
    /// The octets of piece `index` of a packet of `len` octets.
    fn range(&self, index: usize, len: usize) -> Range<usize> {
        let end = |index: usize| (self.first + index * self.room).min(len);
        if index == 0 { 0..end(0) } else { end(index - 1)..end(index) }
    }
}

/// Octets before the packet in a frame with a token: three heads and the longest token.
const TOKEN_HEAD_MAX: usize = 4 + 2 + TOKEN_LEN_MAX + 4;

/// What stands before a packet of `len` octets, below 64 KiB, in a frame whose only field is `token`:
/// octets, and how many of them count.
// TYPEs have one octet, lengths are below those of their arms.
#[allow(clippy::cast_possible_truncation)]
#[inline]
fn token_head(token: &[u8], len: usize) -> ([u8; TOKEN_HEAD_MAX], usize) {
    const SHORT: usize = 4 + TOKEN_LEN + 2;
    let mut out = [0; TOKEN_HEAD_MAX];
    // Our own token before a short packet, as on nearly all Interests: all lengths have one octet.
    if let &[a, b, c, d, e, f] = token
        && len <= 252 - (SHORT - 2)
    {
        let [lp, token, fragment] =
            [types::LP_PACKET, types::LP_PIT_TOKEN, types::LP_FRAGMENT].map(|typ| typ as u8);
        let whole = (len + SHORT - 2) as u8;
        let head = [lp, whole, token, TOKEN_LEN as u8, a, b, c, d, e, f, fragment, len as u8];
        out[..SHORT].copy_from_slice(&head);
        return (out, SHORT);
    }
    let mut put = |at: usize, typ: u32, len: usize| {
        out[at] = typ as u8;
        if len < 253 {
            out[at + 1] = len as u8;
            return at + 2;
        }
        out[at + 1] = 253;
        out[at + 2..at + 4].copy_from_slice(&(len as u16).to_be_bytes());
        at + 4
    };
    let fields = tlv_len(types::LP_PIT_TOKEN, token.len());
    let at = put(0, types::LP_PACKET, fields + tlv_len(types::LP_FRAGMENT, len));
    let value = put(at, types::LP_PIT_TOKEN, token.len());
    let end = put(value + token.len(), types::LP_FRAGMENT, len);
    out[value..value + token.len()].copy_from_slice(token);
    (out, end)
}

/// Octets of the longest frame in which all lengths have one octet.
const SHORT_FRAME_MAX: usize = 2 + 252;
/// Octets before the packet in a short frame with our token and the context of a trace.
const TRACED_HEAD_LEN: usize = 2 + 2 + TOKEN_LEN + 4 + TraceContext::LEN + 2;

/// These, for a packet of `len` octets.
// TYPEs of one octet, and lengths of a short frame.
#[allow(clippy::cast_possible_truncation)]
fn traced_head(
    token: &[u8; TOKEN_LEN],
    context: &[u8; TraceContext::LEN],
    len: usize,
) -> [u8; TRACED_HEAD_LEN] {
    let whole = (TRACED_HEAD_LEN - 2 + len) as u8;
    let [high, low] = (types::LP_TRACE_CONTEXT as u16).to_be_bytes();
    let start = [types::LP_PACKET as u8, whole, types::LP_PIT_TOKEN as u8, TOKEN_LEN as u8];
    let field = [253, high, low, TraceContext::LEN as u8];
    let fragment = [types::LP_FRAGMENT as u8, len as u8];
    let mut head = [0; TRACED_HEAD_LEN];
    let mut rest = &mut head[..];
    for part in [&start[..], token, &field, context, &fragment] {
        let (place, behind) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    head
}

/// Octets of an LpPacket with `fields_len` octets of fields and a fragment of `len`.
fn frame_len(fields_len: usize, len: usize) -> usize {
    tlv_len(types::LP_PACKET, fields_len + tlv_len(types::LP_FRAGMENT, len))
}

/// The link-layer fields of a packet. What services tell each other leaves to services only.
fn header_of<'a>(
    kind: Option<PacketKind>,
    lp: &'a LpOut,
    mark: u8,
    config: &LinkConfig,
) -> LpHeader<'a> {
    let is_interest = kind == Some(PacketKind::Interest);
    let came_from = lp.incoming_face.map(NonZeroU64::get);
    let attached = lp.prefix_announcement.as_deref();
    LpHeader {
        pit_token: &lp.pit_token,
        nack: lp.nack,
        incoming_face: came_from.filter(|_| config.local_fields && !config.services),
        no_cache: lp.no_cache,
        congestion_mark: u64::from(mark),
        non_discovery: lp.non_discovery,
        prefix_announcement: attached.filter(|_| !is_interest),
        service_origin: came_from.filter(|_| config.services),
        service_next_hops: attached.filter(|_| config.services && is_interest),
        trace_context: attached.filter(|_| config.traces && !config.services && is_interest),
        ..LpHeader::default()
    }
}
