//! The bridge: one application of the node, one session of Zenoh, one thread.

use crate::inbox::{Inbox, Interest};
use crate::keys::Prefix;
use crate::queries::Queries;
use anyhow::{Result, anyhow};
use onym_client::push::{App, Event};
use onym_topics::{Items, Topics, directory, items};
use onym_wire::push::{Id, Path, Strategy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::query::{Query, Queryable};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};

/// How often timers and the signal to stop are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Events of the node taken at once.
const EVENTS: usize = 256;
/// What a bridge puts has this attachment; no bridge takes it.
const MARK: &[u8] = b"onym";

/// Bounds of a bridge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Octets of values that wait for the bridge.
    pub(crate) queue: usize,
    /// Octets of a value.
    pub(crate) packet: usize,
    /// Topics that come from Zenoh, and as many that are followed.
    pub(crate) topics: usize,
}

/// What became of a bridge.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    from_zenoh: u64,
    to_zenoh: u64,
    dropped: u64,
    refused: u64,
    unsent: u64,
    missed: u64,
    answered: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_zenoh, to_zenoh, dropped, refused, unsent, missed, answered } = self;
        write!(
            f,
            "{from_zenoh} values from Zenoh, {to_zenoh} to Zenoh, {dropped} dropped for want of \
             room, {refused} refused, {unsent} nobody was subscribed to in time, {missed} missed, \
             {answered} answers to queries"
        )
    }
}

/// A topic that goes to Zenoh.
#[derive(Debug)]
struct Followed {
    items: Items,
    publisher: Publisher<'static>,
    interest: Interest,
}

#[derive(Debug)]
pub(crate) struct Bridge {
    session: Session,
    _subscriber: Subscriber<()>,
    _queryable: Queryable<()>,
    inbox: Arc<Inbox>,
    /// Values that are no puts, or too long.
    refused: Arc<AtomicU64>,
    own: Topics,
    queries: Queries,
    root: Path,
    prefix: Prefix,
    limits: Limits,
    /// Topics that come from Zenoh.
    published: BTreeSet<Arc<str>>,
    followed: BTreeMap<Arc<str>, Followed>,
    /// The topic of each item that is subscribed.
    of: BTreeMap<Id, Arc<str>>,
    counts: Counts,
}

fn wrong(error: zenoh::Error) -> anyhow::Error {
    anyhow!("zenoh: {error}")
}

impl Bridge {
    /// With two applications of the node: one for what is published, one for queries.
    pub(crate) fn begin(
        session: Session,
        [app, reader]: [App; 2],
        prefix: Prefix,
        root: Path,
        strategy: Strategy,
        limits: Limits,
    ) -> Result<Self> {
        let own = Topics::begin(app, &root, strategy)?;
        let queries = Queries::new(reader, &root, strategy, limits.queue);
        let (inbox, refused) = (Arc::new(Inbox::new(limits.queue)?), Arc::default());
        let take = taker(Arc::clone(&inbox), Arc::clone(&refused), prefix.clone(), limits.packet);
        let subscriber = session.declare_subscriber(prefix.all());
        let subscriber = subscriber.allowed_origin(Locality::Remote).callback(take);
        let _subscriber = subscriber.wait().map_err(wrong)?;
        let asked = Arc::clone(&inbox);
        let queryable = session.declare_queryable(prefix.all()).allowed_origin(Locality::Remote);
        let queryable = queryable.callback(move |query| asked.query(query));
        let _queryable = queryable.wait().map_err(wrong)?;
        let (published, followed, of, counts) = Default::default();
        Ok(Self {
            session,
            _subscriber,
            _queryable,
            inbox,
            refused,
            own,
            queries,
            root,
            prefix,
            limits,
            published,
            followed,
            of,
            counts,
        })
    }

    /// Serves until `stop` is set; what it did.
    pub(crate) fn serve(mut self, stop: &AtomicBool) -> Result<Counts> {
        while !stop.load(Ordering::Relaxed) {
            self.turn()?;
        }
        let _ = self.session.close().wait();
        self.counts.dropped += self.inbox.dropped();
        self.counts.refused += self.refused.load(Ordering::Relaxed) + self.queries.refused;
        self.counts.answered = self.queries.answered;
        self.counts.unsent += self.own.unsent;
        Ok(self.counts)
    }

    fn turn(&mut self) -> Result<()> {
        self.wait();
        let now = Instant::now();
        for _ in 0..EVENTS {
            let Some(event) = self.own.app.event(Some(Duration::ZERO))? else { break };
            match event {
                Event::Data { id, payload, .. } => self.data(&id, &payload)?,
                Event::Missed(count) | Event::Lost(count) => self.counts.missed += count,
                event => self.own.heard(&event)?,
            }
        }
        let left = self.inbox.take();
        for (topic, interest) in left.matched {
            self.want(&topic, interest)?;
        }
        for (topic, payload) in left.values {
            self.publish(now, topic, payload)?;
        }
        for query in left.queries {
            self.ask(now, query)?;
        }
        self.own.answered()?;
        self.own.handle_timeout(now);
        self.counts.missed += self.queries.turn(now)?;
        Ok(())
    }

    fn wait(&self) {
        let of = |app: &App| match app.wants_write() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let (own, queries) = (&self.own.app, &self.queries.own.app);
        let mut fds = [
            PollFd::from_borrowed_fd(own.fd(), of(own)),
            PollFd::from_borrowed_fd(queries.fd(), of(queries)),
            PollFd::from_borrowed_fd(self.inbox.fd(), PollFlags::IN),
        ];
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        let _ = poll(&mut fds, Some(&look));
    }

    /// A value that came from Zenoh.
    fn publish(&mut self, now: Instant, topic: Arc<str>, payload: Vec<u8>) -> Result<()> {
        let is_new = !self.published.contains(&topic);
        let has_room = !is_new || self.published.len() < self.limits.topics;
        let Some(items) = items(&self.root, &topic).filter(|_| has_room) else {
            self.counts.refused += 1;
            return Ok(());
        };
        if is_new {
            self.own.announce(now, &topic)?;
            self.published.insert(topic);
        }
        self.counts.from_zenoh += 1;
        Ok(self.own.publish(now, &items.value, payload.into())?)
    }

    /// A query of Zenoh.
    fn ask(&mut self, now: Instant, query: Query) -> Result<()> {
        let key = query.key_expr().clone();
        let topics = self
            .followed
            .iter()
            .map(|(topic, followed)| (topic, followed.publisher.key_expr(), &followed.items));
        self.queries.ask(now, query, topics.filter(|(_, of, _)| key.intersects(of)))
    }

    /// A publication of the node.
    fn data(&mut self, id: &Id, payload: &[u8]) -> Result<()> {
        if let Some(followed) = self.of.get(id).and_then(|topic| self.followed.get(topic)) {
            followed.publisher.put(payload).attachment(MARK).wait().map_err(wrong)?;
            self.counts.to_zenoh += 1;
        } else if id.starts_with(&directory(&self.root).id)
            && let Ok(topic) = std::str::from_utf8(payload)
        {
            self.follow(topic)?;
        }
        Ok(())
    }

    /// A topic of the domain goes to Zenoh, as long as somebody there wants it.
    pub(crate) fn follow(&mut self, topic: &str) -> Result<()> {
        if self.followed.contains_key(topic) {
            return Ok(());
        }
        let has_room = self.followed.len() < self.limits.topics;
        let place = self.prefix.key(topic).zip(items(&self.root, topic)).filter(|_| has_room);
        let Some((key, items)) = place else {
            self.counts.refused += 1;
            return Ok(());
        };
        let publisher = self.session.declare_publisher(key);
        let publisher = publisher.congestion_control(CongestionControl::Block);
        let publisher = publisher.allowed_destination(Locality::Remote);
        let publisher = publisher.wait().map_err(wrong)?;
        let topic: Arc<str> = topic.into();
        let (inbox, of) = (Arc::clone(&self.inbox), Arc::clone(&topic));
        let listener = publisher.matching_listener();
        let listener = listener.callback(move |status| match status.matching() {
            true => inbox.matched(&of, Interest::Some),
            false => inbox.matched(&of, Interest::None),
        });
        listener.background().wait().map_err(wrong)?;
        self.followed.insert(topic, Followed { items, publisher, interest: Interest::None });
        Ok(())
    }

    /// Subscribers of a topic in Zenoh came or went.
    fn want(&mut self, topic: &Arc<str>, interest: Interest) -> Result<()> {
        let Some(followed) = self.followed.get_mut(topic) else { return Ok(()) };
        if followed.interest == interest {
            return Ok(());
        }
        followed.interest = interest;
        let item = &followed.items.value;
        match interest {
            Interest::Some => {
                self.of.insert(item.id.clone(), Arc::clone(topic));
                self.own.subscribe(item)?;
            }
            Interest::None => {
                self.of.remove(&item.id);
                self.own.unsubscribe(item)?;
            }
        }
        Ok(())
    }
}

/// Takes what is put in Zenoh, in its threads.
fn taker(
    inbox: Arc<Inbox>,
    refused: Arc<AtomicU64>,
    prefix: Prefix,
    longest: usize,
) -> impl Fn(Sample) + Send + Sync + 'static {
    move |sample| {
        if sample.attachment().is_some_and(|attachment| *attachment.to_bytes() == *MARK) {
            return;
        }
        let is_value = sample.kind() == SampleKind::Put && sample.payload().len() <= longest;
        match prefix.topic(sample.key_expr().as_str()).filter(|_| is_value) {
            Some(topic) => inbox.value(topic, sample.payload().to_bytes().into_owned()),
            None => _ = refused.fetch_add(1, Ordering::Relaxed),
        }
    }
}
