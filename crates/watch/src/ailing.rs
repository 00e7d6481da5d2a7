//! What is wrong with faces, by stated rules over what each did within an interval.

/// A send queue that is fuller slows down what is sent.
const QUEUE: f64 = 0.5;
/// Interests a second to a face below which nothing is said about its answers.
const ASKED: f64 = 10.0;
/// Answers to these, below which a face does not answer.
const ANSWERED: f64 = 0.5;
/// Faces that are told for a rule; the others are counted.
pub const AILING_MAX: usize = 20;

/// A rule by which something is wrong with a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ailment {
    /// It is down.
    Down,
    /// More than half of what its send queue may have waits to be sent.
    Queue,
    /// Packets are not sent, although its queue is shorter.
    Losses,
    /// Of more than ten Interests a second less than half are answered.
    Silent,
}

impl Ailment {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Down, Self::Queue, Self::Losses, Self::Silent];

    /// The word by which it is told.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Down => "face_down",
            Self::Queue => "queue",
            Self::Losses => "losses",
            Self::Silent => "silent",
        }
    }
}

/// A face within an interval. Rates are a second's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Condition {
    /// Whether it is up.
    pub is_up: bool,
    /// Octets that wait to be sent.
    pub queue_bytes: u64,
    /// As many may.
    pub queue_bytes_max: u64,
    /// Packets that were not sent.
    pub losses: f64,
    /// Interests sent.
    pub asked: f64,
    /// Data and Nacks that came.
    pub answered: f64,
}

impl Condition {
    /// How bad it is by one rule, where that holds.
    fn by(&self, ailment: Ailment) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)]
        let fill = self.queue_bytes as f64 / self.queue_bytes_max.max(1) as f64;
        let (holds, how_bad) = match ailment {
            Ailment::Down => (!self.is_up, 0.0),
            Ailment::Queue => (fill > QUEUE, fill),
            Ailment::Losses => (fill <= QUEUE && self.losses > 0.0, self.losses),
            Ailment::Silent => {
                let is_silent = self.asked > ASKED && self.answered < ANSWERED * self.asked;
                (is_silent, self.asked - self.answered)
            }
        };
        holds.then_some(how_bad)
    }
}

/// The faces for which a rule holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ailing<T> {
    /// The rule.
    pub ailment: Ailment,
    /// How many there are.
    pub faces: usize,
    /// The worst ones of these, at most [`AILING_MAX`].
    pub worst: Vec<T>,
}

/// What is wrong with which of `faces`, by each rule that holds for any. Of those that are equally bad
/// the first ones are told.
pub fn ailing<T: Copy>(faces: impl Iterator<Item = (T, Condition)>) -> Vec<Ailing<T>> {
    let mut found = Ailment::ALL.map(|_| Vec::new());
    for (face, condition) in faces {
        for (rule, found) in Ailment::ALL.into_iter().zip(&mut found) {
            found.extend(condition.by(rule).map(|how_bad| (how_bad, face)));
        }
    }
    let each = Ailment::ALL.into_iter().zip(found).filter(|(_, found)| !found.is_empty());
    let told = each.map(|(ailment, mut found)| {
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let worst = found.iter().take(AILING_MAX).map(|(_, face)| *face).collect();
        Ailing { ailment, faces: found.len(), worst }
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Condition = Condition {
        is_up: true,
        queue_bytes: 0,
        queue_bytes_max: 100,
        losses: 0.0,
        asked: 0.0,
        answered: 0.0,
    };

    fn ailments(condition: Condition) -> Vec<Ailment> {
        ailing([((), condition)].into_iter()).iter().map(|found| found.ailment).collect()
    }

    /// Law: each rule holds for what it is about and for nothing else.
    #[test]
    fn each_rule_holds_for_what_it_is_about() {
        assert!(ailments(WELL).is_empty());
        assert_eq!(ailments(Condition { is_up: false, ..WELL }), [Ailment::Down]);
        let full = Condition { queue_bytes: 60, losses: 3.0, ..WELL };
        assert_eq!(ailments(full), [Ailment::Queue], "what is lost by that is not told twice");
        assert!(ailments(Condition { queue_bytes: 50, ..WELL }).is_empty());
        assert_eq!(ailments(Condition { losses: 3.0, ..WELL }), [Ailment::Losses]);
        let silent = Condition { asked: 100.0, answered: 20.0, ..WELL };
        assert_eq!(ailments(silent), [Ailment::Silent]);
        assert!(ailments(Condition { answered: 90.0, ..silent }).is_empty());
        assert!(ailments(Condition { asked: 9.0, ..WELL }).is_empty());
    }

    /// Law: of many faces the worst ones are told and all are counted, and no rule hides another.
    #[test]
    fn the_worst_are_told_and_all_are_counted() {
        let face = |n: u64| match n {
            700 => (n, Condition { queue_bytes: 90, ..WELL }),
            701..800 => (n, Condition { queue_bytes: 60, ..WELL }),
            900 => (n, WELL),
            _ => (n, Condition { is_up: false, ..WELL }),
        };
        let found = ailing((0..1000).map(face));
        let [down, queue] = &found[..] else { panic!("{found:?}") };
        assert_eq!((down.ailment, down.faces), (Ailment::Down, 899));
        assert_eq!(down.worst, (0..AILING_MAX as u64).collect::<Vec<_>>());
        assert_eq!((queue.ailment, queue.faces), (Ailment::Queue, 100));
        assert_eq!((queue.worst[0], queue.worst[1], queue.worst.len()), (700, 701, AILING_MAX));
    }
}
