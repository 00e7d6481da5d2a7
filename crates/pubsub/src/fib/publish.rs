//! A publication of an application of this shard: the only path by which one leaves and is
//! delivered.

use super::numbers::{NUMBER_LEN, Numbers};
use super::{Config, Effects, Fib, Item, Pass, Way};
use crate::data::{Above, Data, Place, Refusal, Sent, is_of_item};
use crate::publication::AppId;
use onym_tables::Tick;
use onym_wire::push::{FrameBuilder, Id, RouteBuf, Strategy, option};
use onym_wire::tlv::{self, Element};
use onym_wire::types;

impl Fib {
    /// Publishes. What is not of an item, longer than a frame, to be signed, or behind such a one
    /// is passed to the control plane; local receivers of an item get it here all the same.
    ///
    /// # Errors
    /// [`Refusal`]; then nobody gets anything. [`Refusal::NotPublisher`] says only that the item is
    /// not known here: the control plane tells why.
    #[inline]
    pub fn publish(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        effects: &mut Effects,
    ) -> Result<Sent, Refusal> {
        effects.clear();
        if !is_of_item(data.strategy) {
            self.passed += 1;
            let (number, place) = (self.passed, Place::None);
            effects.pass = Some(Pass { number, place, item: None, is_retained: false });
            return Ok(Sent::default());
        }
        let Some((key, item)) = self.items.entry(&data.id) else {
            return self.publish_beneath(now, app, data, effects);
        };
        if let Err(refusal) = item.check(app) {
            return self.publish_retained(now, app, (data, &data.id), refusal, effects);
        }
        let mut sent = Sent::default();
        if data.strategy != Strategy::NODE_LOCAL
            && let Some(Way { route: Some(route), hops, .. }) = item.way.as_deref()
        {
            if data.payload.len() > self.config.octets_max {
                return Err(Refusal::TooLarge);
            }
            let hop_limit = hops.saturating_add(self.config.spare_hops);
            let is_made = item.head.as_ref().is_some_and(|(made, _)| *made == data.strategy);
            if !is_made {
                let ids = item.aliases(key);
                let head = head_of(hop_limit, data.strategy, route, (ids, &item.numbers));
                item.head = Some((data.strategy, head));
            }
            let (numbers, config) = (&mut item.numbers, &self.config);
            let head = item.head.as_ref().map_or(&[][..], |(_, head)| head);
            let len = head.len() + data.payload.len();
            if config.is_short(len) && item.fence <= self.done {
                effects.head.reserve(head.len() + 4);
                tlv::put_head(&mut effects.head, types::PUSH_FRAME, len);
                put_numbered(&mut effects.head, head, numbers.take());
                sent.frames = 1;
            } else {
                pass(&mut self.passed, item, effects);
            }
            self.counters.sent += 1;
            if item.numbers.begins() {
                self.watched.add(now, &data.id);
            }
        } else if self.config.is_to_keep(data) {
            pass(&mut self.passed, item, effects);
        }
        let ids = item.way.as_ref().map_or(std::slice::from_ref(&data.id), |way| &way.aliases);
        sent.local = self.receivers.find_again(ids, app, &mut item.found, effects);
        self.counters.delivered += sent.local as u64;
        if effects.shards != 0 {
            sent.local += effects.there;
            effects.names = Some(item.names(&data.id));
        }
        Ok(sent)
    }

    /// What is published beneath an item goes where the item goes, with its numbers.
    #[cold]
    fn publish_beneath(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        effects: &mut Effects,
    ) -> Result<Sent, Refusal> {
        let above = Id::from_labels(data.id.parent());
        let label = data.id.last().ok_or(Refusal::NotPublisher)?;
        let item = self.items.get_mut(&above).ok_or(Refusal::NotPublisher)?;
        if let Err(refusal) = item.check(app) {
            return self.publish_retained(now, app, (data, &above), refusal, effects);
        }
        let ids = item.beneath(&above, label);
        let mut sent = Sent::default();
        if data.strategy != Strategy::NODE_LOCAL
            && let Some(Way { route: Some(route), hops, .. }) = item.way.as_deref()
        {
            if data.payload.len() > self.config.octets_max {
                return Err(Refusal::TooLarge);
            }
            let hop_limit = hops.saturating_add(self.config.spare_hops);
            let head = head_of(hop_limit, data.strategy, route, (&ids, &item.numbers));
            let len = head.len() + data.payload.len();
            if self.config.is_short(len) && item.fence <= self.done {
                tlv::put_head(&mut effects.head, types::PUSH_FRAME, len);
                put_numbered(&mut effects.head, &head, item.numbers.take());
                sent.frames = 1;
            } else {
                pass(&mut self.passed, item, effects);
            }
            self.counters.sent += 1;
            if item.numbers.begins() {
                self.watched.add(now, &above);
            }
        } else if self.config.is_to_keep(data) {
            pass(&mut self.passed, item, effects);
        }
        sent.local = self.receivers.find(&ids, Above::Parent, Some(app), effects);
        self.counters.delivered += sent.local as u64;
        sent.local += effects.there;
        effects.name(&ids, Above::Parent);
        Ok(sent)
    }
}

impl Fib {
    /// What is published of an item of which the last publications are retained, whether it is
    /// started or not: the control plane retains it, sends it, and hands it out (section 5.4).
    #[cold]
    fn publish_retained(
        &mut self,
        now: Tick,
        app: AppId,
        (data, of): (&Data<'_>, &Id),
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Result<Sent, Refusal> {
        let item = self.items.get_mut(of).filter(|item| item.app == app);
        let item = item.filter(|item| item.retains.is_some()).ok_or(refusal)?;
        if data.payload.len() > self.config.octets_max {
            return Err(Refusal::TooLarge);
        }
        pass(&mut self.passed, item, effects);
        if let Some(pass) = &mut effects.pass {
            pass.is_retained = true;
        }
        if item.is_sent() && item.numbers.begins() {
            self.watched.add(now, of);
        }
        Ok(Sent::default())
    }
}

impl Config {
    /// Whether a frame whose value has `len` octets leaves without the control plane. The head of
    /// its element is four octets, or more for what is too long anyway.
    const fn is_short(&self, len: usize) -> bool {
        self.reserve == 0 && len + 4 <= self.frame_max
    }

    /// Whether the cache of this node may keep what is for nobody at other nodes. What may be longer
    /// than a frame: the control plane, which cuts it, knows that.
    const fn is_to_keep(&self, data: &Data<'_>) -> bool {
        let len = data.payload.len();
        data.lifetime_ms > 0
            && !matches!(data.strategy, Strategy::NODE_LOCAL)
            && len > self.frame_max / 2
            && len <= self.octets_max
    }
}

impl Item {
    /// Whether it goes to other nodes.
    fn is_sent(&self) -> bool {
        self.way.as_ref().is_some_and(|way| way.route.is_some())
    }

    /// Whether `app` may publish it now.
    fn check(&self, app: AppId) -> Result<(), Refusal> {
        match (self.app == app, self.is_started) {
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::Stopped),
            (false, _) => Err(Refusal::NotPublisher),
        }
    }
}

/// The publication of `item` is for the control plane, and so is what follows until that is done.
fn pass(passed: &mut u64, item: &mut Item, effects: &mut Effects) {
    *passed += 1;
    item.fence = *passed;
    let place = Place::Number(item.numbers.stream(), item.numbers.take());
    effects.pass = Some(Pass { number: *passed, place, item: None, is_retained: false });
}

/// The value of a frame up to its payload, with room for its number, which is the last of its options.
fn head_of(
    hop_limit: u8,
    strategy: Strategy,
    route: &RouteBuf,
    (ids, numbers): (&[Id], &Numbers),
) -> Vec<u8> {
    let (mut frame, mut options) = (Vec::new(), Vec::new());
    numbers.put(option::NUMBER, 0, &mut options);
    let options = &options[..];
    FrameBuilder { hop_limit, strategy, route, ids, options, payload: &[] }.write(&mut frame);
    Element::parse(&frame).map(|e| e.value.to_vec()).unwrap_or_default()
}

/// Appends a head of [`head_of`], at whose end the number stands.
#[inline(always)]
fn put_numbered(out: &mut Vec<u8>, head: &[u8], number: u32) {
    out.extend_from_slice(head);
    if let Some(room) = out.last_chunk_mut::<NUMBER_LEN>() {
        *room = number.to_be_bytes();
    }
}
