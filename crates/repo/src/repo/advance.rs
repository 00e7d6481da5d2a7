//! Insertions and deletions under way: segments asked for, stored, removed.

use super::{Asked, DELETE_STEP, Error, NOTE_EVERY, Repo, Running, Stored, TRIES};
use crate::command;
use crate::job::Fetching;
use onym_client::{Error as ClientError, Packet, Request, Unanswered, Verify};
use onym_crypto::edge::unix_now_ms;
use onym_store::{Change, Done, Refused};
use onym_wire::name::Name;
use std::time::{Duration, Instant};

impl Repo {
    pub(super) fn segment(
        &mut self,
        job: [u8; 32],
        segment: u64,
        answer: Result<Packet, Unanswered>,
    ) {
        let Some(running) = self.running.get_mut(&job) else { return };
        let Some(fetching) = &mut running.fetching else { return };
        match answer {
            // A signature by a key is for readers, who know whom they believe; who may have it
            // stored was decided with the command.
            Ok(packet) if Verify::Integrity.check(&packet.data()).is_ok() => {
                let last = packet.data().final_block_id.and_then(|c| c.as_segment());
                fetching.arrived(segment, packet.bytes().to_vec(), last);
            }
            _ => fetching.lost(segment),
        }
    }

    pub(super) fn take_stored(&mut self, stored: Stored) {
        let Some(running) = self.running.get_mut(&stored.job) else { return };
        if let (Some(fetching), Some(at)) = (&mut running.fetching, running.job.current()) {
            fetching.stored(stored.count);
            if let Some(refused) = &stored.refused {
                tracing::warn!(why = %refused, "repo-insertion-refused");
                fetching.refuse();
            }
            let object = &mut running.job.objects[at];
            object.inserted += stored.kept;
            object.next += stored.kept;
        }
    }

    /// Every job goes on as far as it can.
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        let numbers: Vec<[u8; 32]> = self.running.keys().copied().collect();
        for number in numbers {
            let Some(mut running) = self.running.remove(&number) else { continue };
            if self.advance_one(number, &mut running)? {
                running.job.end(unix_now_ms());
                self.note(number, &running.job);
                self.ended.insert(number, running.job);
                self.forget_ended();
                continue;
            }
            if running.noted.elapsed() >= NOTE_EVERY {
                running.noted = Instant::now();
                self.note(number, &running.job);
            }
            self.running.insert(number, running);
        }
        Ok(())
    }

    /// Whether the job ended.
    fn advance_one(&mut self, number: [u8; 32], running: &mut Running) -> Result<bool, Error> {
        let Some(at) = running.job.current() else { return Ok(true) };
        running.job.objects[at].status = command::RUNNING;
        if !running.job.inserts {
            self.delete_step(running, at)?;
            return Ok(running.job.current().is_none());
        }
        let object = running.job.objects[at].clone();
        let fetching = running.fetching.get_or_insert_with(|| Fetching::new(&object));
        self.ask(number, &object, fetching)?;
        let owner = running.owner;
        let ready = fetching.take_ready().into_iter();
        let ready =
            ready.map(|packet| Change::Insert { packet, owner, expires_ms: 0, arrived_ms: 0 });
        running.held.extend(ready);
        if !running.held.is_empty() {
            let changes = std::mem::take(&mut running.held);
            let say = self.stored.0.clone();
            let done = move |answers: Vec<Result<Done, Refused>>| {
                let count = answers.len() as u64;
                let kept = answers.iter().take_while(|a| a.is_ok()).count() as u64;
                let refused = answers.into_iter().find_map(Result::err);
                let _ = say.send(Stored { job: number, kept, refused, count });
            };
            // No room: later. The window stops meanwhile.
            if let Err(changes) = self.store.try_apply(changes, done) {
                running.held = changes;
            }
        }
        if let Some(status) = fetching.status() {
            running.job.objects[at].status = status;
            running.fetching = None;
        }
        Ok(running.job.current().is_none())
    }

    fn ask(
        &mut self,
        number: [u8; 32],
        object: &crate::job::ObjectJob,
        fetching: &mut Fetching,
    ) -> Result<(), Error> {
        while let Some(segment) = fetching.next_ask() {
            let mut name: Name = object.name.parse().unwrap_or_default();
            if !object.is_single() {
                name.append_segment(segment);
            }
            let request = Request {
                lifetime: Duration::from_secs(1),
                retries: TRIES - 1,
                forwarding_hint: object.hint.iter().filter_map(|h| h.parse().ok()).collect(),
                ..Request::new(name)
            };
            let now = self.client.now();
            let id = self.client.endpoint().request(now, &request).map_err(ClientError::from)?;
            self.asked.insert(id, Asked::Segment { job: number, segment });
        }
        Ok(())
    }

    /// Deletes some of what an object names, of what is there.
    fn delete_step(&mut self, running: &mut Running, at: usize) -> Result<(), Error> {
        let object = &mut running.job.objects[at];
        let name: Name = object.name.parse().unwrap_or_default();
        let mut names = Vec::new();
        let mut more = false;
        if object.is_single() {
            names.push(name);
        } else {
            let mut from = name.clone();
            from.append_segment(object.next);
            let mut listed = Vec::new();
            if let Some(entry) = self.reader.exact(from.as_ref())? {
                listed.push(onym_store::Listed { name: from.clone(), entry });
            }
            let behind = self.reader.names(name.as_ref(), Some(from.as_ref()), DELETE_STEP)?;
            more = behind.len() == DELETE_STEP;
            listed.extend(behind);
            for one in listed {
                let segment = one.name.as_ref().last().and_then(|c| c.as_segment());
                let Some(segment) = segment.filter(|_| one.name.len() == name.len() + 1) else {
                    continue;
                };
                if object.end.is_some_and(|end| segment > end) {
                    more = false;
                    break;
                }
                object.next = segment.saturating_add(1);
                names.push(one.name);
            }
        }
        more &= !names.is_empty();
        let owner = Some(running.owner);
        let changes = names.into_iter().map(|name| Change::Delete { name, owner }).collect();
        let answers = self.store.apply(changes)?;
        object.deleted += answers.iter().filter(|a| matches!(a, Ok(Done::Deleted))).count() as u64;
        if answers.iter().any(Result::is_err) {
            object.status = command::FAILED;
        } else if !more {
            object.status = command::DONE;
        }
        Ok(())
    }
}
