//! Questions to the other end of a link, and what follows where it answers none (P-86).

use onym_tables::Tick;
use onym_tables::doubt::{Doubt, Step};
use onym_wire::push::Control;
use std::time::Duration;

/// Questions that find out whether a neighbour answers; of an earlier version it does not.
const FIRST_MAX: u32 = 4;
/// Least time between two answers to one neighbour.
const PAUSE: Duration = Duration::from_millis(10);

/// What one end of a link asked the other.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Number of the last question.
    number: u64,
    /// Questions since the neighbour was heard first.
    tries: u32,
    asked: Tick,
    /// How long the last answer took; none while there was none.
    rtt: Option<Duration>,
    doubt: Doubt,
    answered: Option<Tick>,
}

impl Asking {
    /// Makes a hello a question.
    pub(super) fn ask(&mut self, now: Tick, hello: Control) -> Control {
        self.number += 1;
        self.tries = self.tries.saturating_add(1);
        self.asked = now;
        Control { number: self.number, is_full: true, ..hello }
    }

    /// Whether the neighbour, which says `hello`, is to be asked whether it answers.
    pub(super) fn is_curious(&self, hello: &Control) -> bool {
        // Not upon what belongs to a question that is under way.
        hello.number == 0 && self.rtt.is_none() && self.tries < FIRST_MAX
    }

    /// A hello came; the number of the answer, when it is a question that is to be answered.
    pub(super) fn heard(&mut self, now: Tick, hello: &Control) -> Option<u64> {
        self.doubt.settle();
        if hello.is_full {
            let is_due = self.answered.is_none_or(|before| now.since(before) >= PAUSE);
            return is_due.then(|| {
                self.answered = Some(now);
                hello.number
            });
        }
        if hello.number != 0 && hello.number == self.number {
            self.rtt = Some(now.since(self.asked));
        }
        None
    }

    /// The network says that nobody is there; whether that is doubted now. Who never answered is not
    /// asked.
    pub(super) fn refused(&mut self, now: Tick) -> bool {
        self.rtt.is_some() && self.doubt.begin(now, self.rtt)
    }

    /// What is due.
    pub(super) fn step(&mut self, now: Tick) -> Option<Step> {
        self.doubt.step(now)
    }

    /// When something is.
    pub(super) fn due(&self) -> Tick {
        self.doubt.due()
    }

    /// The neighbour is gone: who comes after it may be another.
    pub(super) fn forget(&mut self) {
        *self = Self { number: self.number, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use crate::link_state::{Config, LinkState};
    use crate::publication::{Outbox, Said, Target};
    use onym_tables::{FaceId, Tick};
    use onym_wire::push::{Control, Kind, Label, Role};

    const FACE: FaceId = FaceId(300);

    /// Two nodes with a link between them; what one says over it the other hears a millisecond later.
    struct Two {
        nodes: [LinkState; 2],
        now: u64,
        /// The second one says nothing any more.
        is_dead: bool,
        /// Hellos that the first one sent.
        sent: usize,
        /// Whether the second one is of an earlier version, which answers nothing.
        is_old: bool,
    }

    impl Two {
        fn new(is_old: bool) -> Self {
            let nodes = [1, 2].map(|label| {
                let label = Label::from_u64(label);
                let mut node = LinkState::new(Config::new(label, 0, Role::default(), 1));
                node.link_add(Tick(0), FACE, 1, 1);
                node
            });
            let mut two = Self { nodes, now: 0, is_dead: false, sent: 0, is_old };
            two.pass(1500);
            assert!(two.is_there());
            two
        }

        fn is_there(&self) -> bool {
            self.nodes[0].neighbour(FACE).is_some()
        }

        /// So many milliseconds pass.
        fn pass(&mut self, ms: u64) {
            for _ in 0..ms {
                self.now += 1;
                for from in 0..2 {
                    let mut out = Outbox::default();
                    self.nodes[from].handle_timeout(Tick::from_ms(self.now), &mut out);
                    self.carry(from, out);
                }
            }
        }

        fn carry(&mut self, from: usize, mut out: Outbox) {
            while let Some(said) = out.said.pop_front() {
                let Said::Publication(said) = said else { continue };
                let over_link = matches!(said.target, Target::Face(_) | Target::Neighbours(None));
                if !over_link || (from == 1 && self.is_dead) {
                    continue;
                }
                self.sent += usize::from(from == 0);
                let mut message = Control::parse(&said.payload).unwrap();
                if self.is_old && from == 1 {
                    // It says hello then, too, and nothing of a number.
                    message.number = 0;
                    message.is_full = false;
                }
                if from == 1 || !self.is_dead {
                    let mut answers = Outbox::default();
                    let now = Tick::from_ms(self.now);
                    self.nodes[1 - from].receive(now, FACE, message, &mut answers);
                    self.carry(1 - from, answers);
                }
            }
        }

        /// The network says to the first node that nobody takes what it sent.
        fn refuse(&mut self) {
            let mut out = Outbox::default();
            self.nodes[0].link_refused(Tick::from_ms(self.now), FACE, &mut out);
            self.carry(0, out);
        }
    }

    /// Law: whose host refuses frames, and who answers no question, is gone at once.
    #[test]
    fn a_neighbour_whose_process_ended_is_missed_at_once() {
        let mut two = Two::new(false);
        two.is_dead = true;
        two.refuse();
        assert_eq!(two.nodes[0].doubts, 1);
        assert!(two.is_there(), "asked first");
        two.pass(199);
        assert!(two.is_there());
        two.pass(2);
        assert!(!two.is_there(), "five questions, 40 ms apart");
    }

    /// Law: forged refusals take no neighbour down, and cost a bounded number of questions.
    #[test]
    fn forged_refusals_take_nobody_down() {
        let mut two = Two::new(false);
        let before = two.sent;
        for _ in 0..10_000 {
            two.refuse();
            two.pass(1);
            assert!(two.is_there());
        }
        assert_eq!(two.nodes[0].doubts, 10, "one a second");
        // Ten hellos of its own, and a question of each doubt.
        assert!(two.sent - before <= 22, "{}", two.sent - before);
    }

    /// Law: an earlier version, which answers no question, is asked a few times and never doubted.
    #[test]
    fn a_neighbour_of_an_earlier_version_waits_for_its_silence() {
        let mut two = Two::new(true);
        two.pass(10_000);
        two.refuse();
        assert_eq!(two.nodes[0].doubts, 0);
        two.is_dead = true;
        two.pass(2_000);
        assert!(two.is_there());
        two.pass(2_000);
        assert!(!two.is_there());
    }

    /// Law: who came again answers again.
    #[test]
    fn who_comes_again_is_asked_again() {
        let mut two = Two::new(false);
        for _ in 0..10 {
            two.is_dead = true;
            two.pass(4_000);
            assert!(!two.is_there());
            two.is_dead = false;
            two.pass(1_500);
            assert!(two.is_there());
        }
        two.is_dead = true;
        two.refuse();
        two.pass(250);
        assert!(!two.is_there());
    }

    /// Law: a neighbour that asks without end gets an answer each 10 ms at most.
    #[test]
    fn questions_without_end_are_answered_at_a_bounded_rate() {
        let mut two = Two::new(false);
        let mut answers = 0;
        for ms in 1..=1000 {
            let now = Tick::from_ms(two.now + ms);
            for number in 1..=10 {
                let hello = Control::new(Kind::HELLO, Label::from_u64(2));
                let question = Control { number, is_full: true, ..hello };
                let mut out = Outbox::default();
                two.nodes[0].receive(now, FACE, question, &mut out);
                let is_answer = |said: &&Said| match said {
                    Said::Publication(said) => Control::parse(&said.payload)
                        .is_ok_and(|m| m.kind == Kind::HELLO && m.number == number),
                    Said::Here { .. } => false,
                };
                answers += out.said.iter().filter(is_answer).count();
            }
        }
        assert!((90..=101).contains(&answers), "{answers}");
    }
}
