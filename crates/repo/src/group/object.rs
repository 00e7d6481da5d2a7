//! An object on its way into the store: a window of segments, and done when all are on the disk.

use super::{Keeper, SEGMENTS_MAX};
use crate::job::Fetching;
use onym_client::aio::Client;
use onym_client::{Error, Packet, Request, Verify};
use onym_store::{Done, Refused};
use onym_wire::data::Data;
use onym_wire::name::Name;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often one segment is asked for.
const ASKS: u32 = 4;
/// The pause until the store is asked again that had no room in its queue.
const ROOM: Duration = Duration::from_millis(5);

impl Keeper {
    /// Fetches the segments of a name with a version from `first` on, and keeps them; `first` becomes
    /// the first one that is not kept. The first `octets` of their content.
    pub(super) async fn object(
        &self,
        client: &Client,
        name: &Name,
        first: &mut u64,
        octets: usize,
    ) -> Option<Vec<u8>> {
        let mut fetching = Fetching::from_segment(*first);
        let mut asked = JoinSet::new();
        let (say, mut stored) = mpsc::unbounded_channel();
        let (mut held, mut content) = (Vec::new(), Vec::new());
        let mut is_refused = false;
        loop {
            // One alone until it says which is the last: a producer may be silent about what is behind.
            while (asked.is_empty() || fetching.is_end_known())
                && let Some(segment) = fetching.next_ask()
            {
                asked.spawn(ask(client.clone(), name.clone(), segment));
            }
            for packet in fetching.take_ready() {
                let room = octets.saturating_sub(content.len());
                let more = Data::parse(&packet).map_or(&[][..], |data| data.content);
                content.extend_from_slice(&more[..room.min(more.len())]);
                held.push(self.insert(packet));
            }
            if !held.is_empty() {
                let say = say.clone();
                let done = move |answers: Vec<Result<Done, Refused>>| _ = say.send(answers);
                held = self.store.try_apply(held, done).err().unwrap_or_default();
            }
            if let Some(is_whole) = fetching.ended() {
                return is_whole.then_some(content);
            }
            tokio::select! {
                Some(Ok((segment, answer))) = asked.join_next() => {
                    self.arrived(&mut fetching, segment, answer);
                }
                Some(answers) = stored.recv() => {
                    fetching.stored(answers.len() as u64);
                    if !is_refused {
                        *first += answers.iter().take_while(|answer| answer.is_ok()).count() as u64;
                    }
                    if let Some(why) = answers.into_iter().find_map(Result::err) {
                        tracing::warn!(%why, "repo-publication-not-kept");
                        is_refused = true;
                        fetching.refuse();
                    }
                }
                () = tokio::time::sleep(ROOM), if !held.is_empty() => {}
            }
        }
    }

    fn arrived(&self, fetching: &mut Fetching, segment: u64, answer: Result<Packet, Error>) {
        let Ok(packet) = answer else { return fetching.lost(segment) };
        let data = packet.data();
        let said = data.final_block_id.and_then(|last| last.as_segment());
        let last = said.or((!fetching.is_end_known()).then_some(segment));
        let is_long = last.is_some_and(|last| last >= SEGMENTS_MAX);
        if is_long || !self.is_of_group(&data) || Verify::Integrity.check(&data).is_err() {
            return fetching.lost(segment);
        }
        fetching.arrived(segment, packet.bytes().to_vec(), last);
    }
}

async fn ask(client: Client, name: Name, segment: u64) -> (u64, Result<Packet, Error>) {
    let mut one = name;
    one.append_segment(segment);
    (segment, client.request(Request { retries: ASKS - 1, ..Request::new(one) }).await)
}
