//! One simulated node: the real forwarder and a link service for each face.

use onym_forward::{Config, FaceInfo, Forwarder};
use onym_frame::{Buf, RxFrame, TxQueue};
use onym_link::{Link, LinkConfig, LinkCounters, Outbox, Received};
use onym_tables::{FaceId, Tick};

/// Octets that the send queue of a face holds within one event; frames move on at once.
const QUEUE_OCTETS_MAX: usize = 16 << 20;

/// A face and what belongs to it.
#[derive(Debug)]
struct Port {
    link: Link,
    queue: TxQueue,
}

/// A frame that leaves a node.
#[derive(Debug)]
pub struct Sent {
    /// Number of the port.
    pub port: usize,
    /// The frame.
    pub bytes: Buf,
}

/// One node of the network. Its faces are numbered from 0 in the order of [`Node::port_add`].
#[derive(Debug)]
pub struct Node {
    /// Its name in the topology.
    pub name: String,
    forwarder: Forwarder,
    ports: Vec<Port>,
    outbox: Outbox,
    scratch: Vec<u8>,
}

impl Node {
    /// A node without faces.
    #[must_use]
    pub fn new(name: String, config: Config) -> Self {
        let forwarder = Forwarder::new(config);
        Self { name, forwarder, ports: Vec::new(), outbox: Outbox::default(), scratch: Vec::new() }
    }

    /// Adds a face; returns its port number.
    pub fn port_add(&mut self, info: FaceInfo, config: LinkConfig) -> usize {
        let port = self.ports.len();
        self.forwarder.face_add(face_of(port), info);
        let queue = TxQueue::new(QUEUE_OCTETS_MAX);
        self.ports.push(Port { link: Link::new(config), queue });
        port
    }

    /// Number of faces.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// The forwarder.
    #[must_use]
    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    /// Changes the forwarder; what it sends on that occasion is in the outbox given to `change`.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut Forwarder, &mut Outbox) -> R) -> R {
        change(&mut self.forwarder, &mut self.outbox)
    }

    /// What the link service of a port counted.
    #[must_use]
    pub fn link_counters(&self, port: usize) -> LinkCounters {
        self.ports[port].link.counters()
    }

    /// Takes a frame that came in on `port`.
    pub fn receive(&mut self, now: Tick, port: usize, bytes: Buf) {
        let frame = RxFrame { endpoint: 0, bytes };
        let received = self.ports[port].link.receive(now, face_of(port), frame);
        if let Received::Packet(packet) = received {
            self.forwarder.receive(now, packet, &mut self.outbox);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.forwarder.handle_timeout(now, &mut self.outbox);
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.link.handle_timeout(now, &mut port.queue);
            while let Some(interest) = port.link.next_given_up() {
                self.forwarder.interest_lost(now, face_of(number), &interest, &mut self.outbox);
            }
        }
    }

    /// When [`Node::handle_timeout`] is due next; [`Tick::NEVER`] when nothing is pending.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let links = self.ports.iter().map(|port| port.link.poll_timeout());
        links.chain(self.forwarder.poll_timeout()).min().unwrap_or(Tick::NEVER)
    }

    /// Hands out the frames to send. `backlog` tells the octets that wait on a port's line.
    pub fn flush(
        &mut self,
        now: Tick,
        mut backlog: impl FnMut(usize) -> usize,
        mut send: impl FnMut(Sent),
    ) {
        for item in &self.outbox.items {
            let number = port_of(item.face);
            if let Some(port) = number.and_then(|n| self.ports.get_mut(n)) {
                port.link.set_socket_queue(backlog(number.unwrap_or_default()));
                // A refusal is counted by the link service.
                let _ = port.link.send(now, item, &self.outbox.arena, &mut port.queue);
            }
        }
        self.outbox.clear();
        for (number, port) in self.ports.iter_mut().enumerate() {
            for (head, body) in port.queue.iter() {
                self.scratch.clear();
                self.scratch.extend_from_slice(head);
                self.scratch.extend_from_slice(body);
                send(Sent { port: number, bytes: Buf::copy_from(&self.scratch) });
            }
            port.queue.pop(port.queue.len());
        }
    }

    /// Whether both equations of the verdicts hold and each frame had one verdict.
    ///
    /// # Errors
    /// Which one does not hold.
    pub fn check(&self) -> Result<(), String> {
        let counters = self.forwarder.counters();
        if !counters.receptions_balance() {
            return Err(format!("{}: packets received are not the sum of verdicts", self.name));
        }
        if !counters.copies_balance() {
            return Err(format!("{}: copies asked for are not sent and unsent", self.name));
        }
        Ok(())
    }
}

/// The face behind a port.
#[must_use]
pub fn face_of(port: usize) -> FaceId {
    let port = u32::try_from(port).expect("invariant: a node has less than 2^32 ports");
    FaceId(FaceId::FIRST.0 + port)
}

fn port_of(face: FaceId) -> Option<usize> {
    usize::try_from(face.0.checked_sub(FaceId::FIRST.0)?).ok()
}
