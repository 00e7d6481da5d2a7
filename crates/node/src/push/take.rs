//! Executes what shards send to the control plane.

use super::PushThread;
use super::lane::{Answer, Down, Passed, Up};
use onym_pubsub::{Data, Origin, Refusal};
use onym_wire::push::Status;

/// The status that a refused publication is answered with.
pub(crate) const fn status_of(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NotPublisher => Status::NOT_THERE,
        Refusal::Stopped => Status::STOPPED,
        Refusal::Id => Status::RESERVED,
        Refusal::TooLong => Status::TOO_LONG,
        Refusal::TooLarge => Status::FULL,
        _ => Status::UNFIT,
    }
}

impl PushThread {
    /// A batch of each shard whose lane back has room; what these make the parts of the node say to
    /// other nodes leaves together.
    pub(super) fn take_batches(&mut self) {
        for shard in 0..self.lanes.len() {
            if !self.takes(shard) {
                continue;
            }
            let Some(mut batch) = self.lanes[shard].up.next() else { continue };
            self.plane.hold();
            let mut answers = Vec::new();
            for thing in batch.drain() {
                self.take(shard, thing, &mut answers);
            }
            self.lanes[shard].up.give_back(batch);
            self.plane.release(self.now, &mut self.output);
            self.carry_out();
            self.release_settled();
            for (thing, octets) in answers {
                self.data(shard, thing, octets);
            }
        }
    }

    fn take(&mut self, shard: usize, thing: Up, answers: &mut Vec<(Down, usize)>) {
        let (now, at) = (self.now, u16::try_from(shard).unwrap_or(u16::MAX));
        match thing {
            Up::Came { app, face, text } => {
                self.apps.insert(app, (face, text));
            }
            Up::Request { app, tag, request, word } => {
                let (tag, word) = (tag.into(), word.as_deref());
                self.plane.request_named(now, app, tag, &request, word, &mut self.output);
            }
            Up::Retain { app, tag, id, keep } => {
                self.plane.retain(now, app, tag.into(), &id, keep, &mut self.output);
            }
            Up::Took(app) => self.plane.took(now, app, &mut self.output),
            Up::Gone(app) => {
                if self.apps.remove(&app).is_some() {
                    self.plane.disconnect(now, app, &mut self.output);
                }
            }
            Up::Publish(passed) => answers.extend(self.publish(at, &passed)),
            Up::WhyNot { app, tag, id } => {
                let status = status_of(self.plane.refusal(app, &id));
                let answer = Answer { app, tag, id, status, local: 0, frames: 0 };
                answers.push((Down::Answer(answer), 0));
            }
            Up::Reached(pass) => self.plane.reached(now, &pass, at, &mut self.output),
            Up::Frame { face, number, bytes } => {
                let from = (face, Origin { shard: at, number });
                self.plane.deliver_frame(now, from, &bytes, &mut self.output);
            }
            Up::PassBy { face, bytes } => self.plane.pass_by(now, face, &bytes),
            Up::Settled(app) => self.settled(app),
            Up::Dropped(number) => self.plane.dropped_frame(Origin { shard: at, number }),
        }
    }

    /// Does what a push FIB passed of a publication; what its shard is told of it.
    fn publish(&mut self, shard: u16, passed: &Passed) -> Option<(Down, usize)> {
        let Passed { app, about, payload, pass, local } = passed;
        let link = about.node.and_then(|node| {
            let mut links = self.links.iter();
            links.find(|l| self.plane.link_state.neighbour(l.face) == Some(node))
        });
        let data = Data {
            id: about.id.clone(),
            strategy: about.strategy,
            payload,
            route: about.route.clone(),
            face: link.map(|link| link.face),
            about: about.about.clone(),
            lifetime_ms: about.lifetime_ms,
        };
        let done = self.plane.publish(self.now, *app, &data, pass, shard, &mut self.output);
        let (app, tag, id) = (*app, about.tag, about.id.clone());
        let (status, local, frames, handout) = match done {
            Ok(done) => (Status::OK, *local + done.local, done.frames, done.handout),
            Err(refusal) => (status_of(refusal), 0, 0, None),
        };
        let answer = Answer { app, tag, id, status, local, frames };
        match handout {
            Some(handout) => Some((Down::Handout(Box::new(handout), Some(answer)), payload.len())),
            None if tag != 0 || status != Status::OK => Some((Down::Answer(answer), 0)),
            None => None,
        }
    }
}
