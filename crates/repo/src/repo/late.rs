//! Answers that came late, from the bucket.

use super::Repo;
use crate::answer::StoreAnswers;
use onym_client::producer::Answer;
use onym_frame::Buf;
use onym_wire::NackReason;
use std::sync::Arc;

impl Repo {
    /// Answers Interests from the store; they wait for the bucket, where there is one, beside the loop.
    pub(super) fn answers(&self) -> StoreAnswers {
        let answers = StoreAnswers::new(self.store.reader(), Arc::clone(&self.options.signer));
        match &self.waits {
            Some(waits) => answers.waiting_in(Arc::clone(waits)),
            None => answers,
        }
    }

    /// Answers those for whom something was fetched.
    pub(super) fn take_late(&mut self) {
        let Some(waits) = self.waits.clone() else { return };
        while let Some((late, is_there)) = waits.take() {
            let mut answers = self.answers();
            for one in late {
                let mut out = Vec::new();
                let answer = match is_there {
                    true => answers.respond_after(&one.incoming, one.tries, &mut out),
                    false => Answer::Nack(NackReason::NONE),
                };
                let now = self.client.now();
                let node = self.client.endpoint();
                match answer {
                    Answer::Written => node.reply(now, &one.incoming, Buf::copy_from(&out)),
                    Answer::Shared(packet) => node.reply(now, &one.incoming, packet),
                    Answer::Nack(reason) => node.refuse(now, &one.incoming, reason),
                    Answer::Nothing => {}
                }
            }
        }
    }
}
