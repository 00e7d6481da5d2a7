//! The broker with its connections and its node, on one thread.

use crate::broker::{Action, Broker, Limits};
use crate::packet::{self, Answer, Delivered, Quality, Reason, Version};
use onym_client::push::{App, Error, Event};
use onym_topics::Topics;
use onym_wire::push::{Path, Strategy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often timers are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Octets read from a connection at once.
const READ: usize = 16 << 10;
/// Connections taken at once.
const ACCEPT: usize = 64;
/// Events of the node taken at once.
const EVENTS: usize = 256;

/// A connection of a client.
struct Connection {
    stream: TcpStream,
    version: Option<Version>,
    received: Vec<u8>,
    queue: Vec<u8>,
    /// It ends when its queue has left.
    is_over: bool,
}

/// What became of a bridge that stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stopped {
    /// Publications that clients did not get, for want of room in their queues.
    pub dropped: u64,
    /// Publications of clients that nobody was subscribed to in time, or for which there was no room.
    pub unsent: u64,
    /// Topics that were not followed for want of room.
    pub unfollowed: u64,
    /// Publications of QoS 1 and 2 that clients had not acknowledged when their sessions ended.
    pub unacknowledged: u64,
    /// Sessions without connection that ended early, for want of room.
    pub forgotten: u64,
    /// Retained messages that were forgotten, for want of room.
    pub unretained: u64,
}

/// A broker's face of a node.
pub struct Bridge {
    listener: TcpListener,
    limits: Limits,
    broker: Broker,
    own: Topics,
    /// What the node is to do next.
    orders: Vec<Action>,
    connections: BTreeMap<u64, Connection>,
    last: u64,
    dropped: u64,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

impl Bridge {
    /// A bridge of the topics beneath the scope `root`, for an application of its own.
    ///
    /// # Errors
    /// What the node or the system said.
    pub fn new(
        listener: TcpListener,
        app: App,
        root: &Path,
        strategy: Strategy,
        limits: Limits,
    ) -> Result<Self, Error> {
        let wrong = |error: std::io::Error| Error::Gone(error.to_string());
        listener.set_nonblocking(true).map_err(wrong)?;
        let broker = Broker::new(root.clone(), limits, app.token());
        let own = Topics::begin(app, root, strategy)?;
        let (connections, orders) = Default::default();
        Ok(Self { listener, limits, broker, own, orders, connections, last: 0, dropped: 0 })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system said.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// What became of the node.
    pub fn serve(mut self, stop: &Arc<AtomicBool>) -> Result<Stopped, Error> {
        let ended = loop {
            if stop.load(Ordering::Relaxed) {
                break Ok(());
            }
            if let Err(error) = self.turn() {
                break Err(error);
            }
        };
        self.broker.stop();
        let _ = self.obey();
        self.connections.values_mut().for_each(|connection| _ = connection.flush());
        ended?;
        let Broker { dropped, unfollowed, unacknowledged, forgotten, unretained, .. } = self.broker;
        let (dropped, unsent) = (self.dropped + dropped, self.own.unsent);
        Ok(Stopped { dropped, unsent, unfollowed, unacknowledged, forgotten, unretained })
    }

    fn turn(&mut self) -> Result<(), Error> {
        let ready = self.wait();
        let now = Instant::now();
        if ready.listener {
            self.accept(now);
        }
        for client in ready.clients {
            self.read(now, client);
        }
        self.broker.handle_timeout(now);
        let (own, broker) = (&mut self.own, &mut self.broker);
        for _ in 0..EVENTS {
            let Some(event) = own.app.event(Some(Duration::ZERO))? else { break };
            match event {
                Event::Data { id, payload, .. } => broker.data(now, &id, &payload),
                Event::Missed(count) | Event::Lost(count) => {
                    tracing::warn!(count, "publications did not come");
                }
                event => own.heard(&event)?,
            }
        }
        own.answered()?;
        own.handle_timeout(now);
        self.obey()?;
        self.connections.retain(|client, connection| {
            let is_there =
                connection.flush() && !(connection.is_over && connection.queue.is_empty());
            if !is_there {
                self.broker.gone(now, *client);
            }
            is_there
        });
        self.obey()
    }

    /// Waits until something is to be done.
    fn wait(&self) -> Ready {
        let takes = self.broker.takes();
        let app =
            if self.own.app.wants_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = vec![PollFd::from_borrowed_fd(self.own.app.fd(), app)];
        let listener = if takes { PollFlags::IN } else { PollFlags::empty() };
        fds.push(PollFd::new(&self.listener, listener));
        let mut of = Vec::with_capacity(self.connections.len());
        for (client, connection) in &self.connections {
            // Who does not take what it is told is not read.
            let is_full = connection.queue.len() > self.limits.queue;
            let read =
                if is_full || connection.is_over { PollFlags::empty() } else { PollFlags::IN };
            let write =
                if connection.queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            fds.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), read | write));
            of.push(*client);
        }
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        if poll(&mut fds, Some(&look)).is_err() {
            return Ready::default();
        }
        let is_ready = |fd: &PollFd<'_>| {
            fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
        };
        let clients = of.into_iter().zip(fds.iter().skip(2)).filter(|(_, fd)| is_ready(fd));
        let clients = clients.map(|(client, _)| client).collect();
        Ready { listener: takes && fds.get(1).is_some_and(is_ready), clients }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPT {
            if !self.broker.takes() {
                return;
            }
            let Ok((stream, peer)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
                continue;
            }
            self.last += 1;
            let (received, queue) = Default::default();
            let connection = Connection { stream, version: None, received, queue, is_over: false };
            self.connections.insert(self.last, connection);
            self.broker.connected(now, self.last, peer.ip());
        }
    }

    /// Takes what a client sends.
    fn read(&mut self, now: Instant, client: u64) {
        let Some(connection) = self.connections.get_mut(&client) else { return };
        let mut octets = [0; READ];
        match connection.stream.read(&mut octets) {
            Ok(0) => {
                connection.is_over = true;
                connection.queue.clear();
                return self.broker.gone(now, client);
            }
            Ok(len) => connection.received.extend_from_slice(octets.get(..len).unwrap_or_default()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => {
                connection.is_over = true;
                connection.queue.clear();
                return self.broker.gone(now, client);
            }
        }
        let mut at = 0;
        while let Some(connection) = self.connections.get_mut(&client).filter(|c| !c.is_over) {
            let rest = connection.received.get(at..).unwrap_or_default();
            let said = match packet::length(rest) {
                Ok(Some(length)) if length > self.limits.packet => Err(Reason::TooLarge),
                Ok(Some(length)) => match rest.get(..length) {
                    Some(packet) => {
                        at += length;
                        let known = connection.version.map_or_else(|| packet::version(packet), Ok);
                        known.and_then(|version| {
                            connection.version = Some(version);
                            packet::read(version, packet)
                        })
                    }
                    None => break,
                },
                Ok(None) => break,
                Err(reason) => Err(reason),
            };
            match said {
                Ok(said) => self.broker.said(now, client, said),
                Err(reason) => {
                    self.broker.refused(now, client, reason);
                    at = rest_of(self.connections.get(&client));
                }
            }
            // Before the next packet: it may end the connection.
            self.tell();
        }
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.received.drain(..at.min(connection.received.len()));
        }
    }

    /// Tells clients what they are to be told; what the node is to do waits.
    fn tell(&mut self) {
        for action in self.broker.actions() {
            match action {
                Action::Tell(client, answer) => self.answer(client, &answer),
                Action::End(client) => {
                    if let Some(connection) = self.connections.get_mut(&client) {
                        connection.is_over = true;
                    }
                }
                order => self.orders.push(order),
            }
        }
    }

    fn answer(&mut self, client: u64, answer: &Answer) {
        let Some(connection) = self.connections.get_mut(&client) else { return };
        if connection.is_over {
            return;
        }
        // What is to be acknowledged has a bound of its own.
        let may_go = matches!(answer, Answer::Published(_, Delivered::First(Quality::Most)));
        if may_go && connection.queue.len() > self.limits.queue {
            self.dropped += 1;
            return;
        }
        packet::write(connection.version.unwrap_or(Version::V3), answer, &mut connection.queue);
    }

    fn obey(&mut self) -> Result<(), Error> {
        self.tell();
        let (own, now) = (&mut self.own, Instant::now());
        for order in std::mem::take(&mut self.orders) {
            match order {
                Action::Publish { item, payload, is_kept: true } => {
                    own.keep(now, &item, payload)?;
                }
                Action::Publish { item, payload, .. } => own.publish(now, &item, payload)?,
                Action::Announce(topic) => own.announce(now, &topic)?,
                Action::Forget(item) => own.forget(&item)?,
                Action::Subscribe(item) => own.subscribe(&item)?,
                Action::Unsubscribe(item) => own.unsubscribe(&item)?,
                Action::Tell(..) | Action::End(_) => {}
            }
        }
        Ok(())
    }
}

/// Nothing of what a connection sent that ends is looked at.
fn rest_of(connection: Option<&Connection>) -> usize {
    connection.map_or(0, |connection| connection.received.len())
}

/// What is to be looked at.
#[derive(Default)]
struct Ready {
    listener: bool,
    clients: Vec<u64>,
}

impl Connection {
    /// Sends what waits, as far as it goes; whether the connection is there.
    fn flush(&mut self) -> bool {
        let mut at = 0;
        let is_there = loop {
            match self.queue.get(at..).filter(|rest| !rest.is_empty()) {
                None => break true,
                Some(rest) => match self.stream.write(rest) {
                    Ok(0) => break false,
                    Ok(len) => at += len,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break false,
                },
            }
        };
        self.queue.drain(..at);
        is_there
    }
}
