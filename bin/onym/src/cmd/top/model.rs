//! The state of the screen, and how keys change it.

use super::question::{Order, Question};
use onym_watch::Condition;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Seconds of the curves.
const HISTORY: usize = 240;
/// Characters of a filter.
const FILTER_MAX: usize = 64;

/// One answer: `/localhost/onym/top` (crates/node/README.md). Rates are a second's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) interval_ms: u64,
    pub(super) node: Node,
    pub(super) faces_count: usize,
    /// Faces that the question is about, where these are more than are told.
    #[serde(default)]
    pub(super) faces_found: Option<usize>,
    pub(super) faces: Vec<Face>,
    /// Those of all faces with which something is wrong, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ailing: Option<Vec<Ailing>>,
    /// Faces of an older node that were not looked at for this.
    #[serde(skip)]
    pub(super) faces_unseen: usize,
    #[serde(default)]
    pub(super) prefixes_found: Option<usize>,
    #[serde(default)]
    pub(super) prefixes: Vec<Prefix>,
    #[serde(default)]
    pub(super) prefixes_hidden: Option<String>,
    #[serde(default)]
    pub(super) push: Option<Push>,
    /// Only faces and prefixes with this were asked for.
    #[serde(skip)]
    pub(super) text: String,
}

impl Snapshot {
    /// How many faces of how many there are were told and found.
    pub(super) fn part_of_faces(&self) -> Part {
        let told = self.faces.len();
        Part {
            told,
            found: self.faces_found.unwrap_or(told).max(told),
            all: Some(self.faces_count),
        }
    }

    /// The same of prefixes.
    pub(super) fn part_of_prefixes(&self) -> Part {
        let told = self.prefixes.len();
        Part { told, found: self.prefixes_found.unwrap_or(told).max(told), all: None }
    }
}

/// What part of a list was told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) told: usize,
    /// What the question was about.
    pub(super) found: usize,
    /// What there is, where that is known.
    pub(super) all: Option<usize>,
}

impl Part {
    /// The part in words, for a list of those with `filter`; empty when it is everything.
    pub(super) fn words(self, filter: &str) -> String {
        let Self { told, found, all } = self;
        let with = if filter.is_empty() { String::new() } else { format!(" with {filter}") };
        let of = match all {
            Some(all) if !filter.is_empty() => format!(", of {all}"),
            _ => String::new(),
        };
        match told < found {
            true => format!("the first {told} of {found}{with}{of}"),
            false if filter.is_empty() => String::new(),
            false => format!("{found}{with}{of}"),
        }
    }
}

/// The node since it started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) version: String,
    pub(super) start_ms: u64,
    pub(super) now_ms: u64,
    pub(super) busy_ns: Vec<u64>,
    pub(super) faces_max: u64,
    pub(super) pit: Tables,
    pub(super) cs: Tables,
    pub(super) fib: Tables,
    pub(super) rib: Tables,
    pub(super) satisfied_interests: u64,
    pub(super) unsatisfied_interests: u64,
    pub(super) displaced_interests: u64,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) unsent: BTreeMap<String, u64>,
    pub(super) frames_dropped: BTreeMap<String, u64>,
}

/// What a table has.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tables {
    pub(super) entries: u64,
    pub(super) entries_max: u64,
    pub(super) packets_max: u64,
    pub(super) routes: u64,
    pub(super) routes_max: u64,
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

/// A face.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Face {
    pub(super) face: u32,
    pub(super) uri: String,
    pub(super) local_uri: String,
    pub(super) is_local: bool,
    pub(super) up: bool,
    pub(super) in_packets: f64,
    pub(super) out_packets: f64,
    pub(super) in_bytes: f64,
    pub(super) out_bytes: f64,
    pub(super) in_interests: f64,
    pub(super) in_data: f64,
    pub(super) in_nacks: f64,
    pub(super) out_interests: f64,
    pub(super) out_data: f64,
    pub(super) out_nacks: f64,
    pub(super) losses: f64,
    pub(super) marked: f64,
    pub(super) repeated: f64,
    pub(super) queue_bytes: u64,
    pub(super) queue_bytes_max: u64,
    pub(super) rtt_us: Option<u64>,
    pub(super) total_in_bytes: u64,
    pub(super) total_out_bytes: u64,
    pub(super) total_losses: u64,
}

/// Faces for which a rule holds ([`onym_watch::ailing()`]).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ailing {
    pub(super) rule: String,
    pub(super) faces: usize,
    pub(super) worst: Vec<Face>,
}

impl Ailing {
    /// What is wrong with which of `faces`, as our node tells it.
    pub(super) fn of(faces: &[Face]) -> Vec<Self> {
        let found = onym_watch::ailing(faces.iter().map(|face| (face, face.condition())));
        let told = found.into_iter().map(|found| Self {
            rule: found.ailment.word().to_owned(),
            faces: found.faces,
            worst: found.worst.into_iter().cloned().collect(),
        });
        told.collect()
    }
}

impl Face {
    const fn condition(&self) -> Condition {
        Condition {
            is_up: self.up,
            queue_bytes: self.queue_bytes,
            queue_bytes_max: self.queue_bytes_max,
            losses: self.losses,
            asked: self.out_interests,
            answered: self.in_data + self.in_nacks,
        }
    }

    /// Whether one of its URIs has `text` in it, or it is its number.
    pub(super) fn has(&self, text: &str) -> bool {
        self.uri.contains(text) || self.local_uri.contains(text) || self.face.to_string() == text
    }

    /// Puts faces in order.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn sort(faces: &mut [Self], order: Order) {
        let weight = |face: &Self| match order {
            Order::Packets => face.in_packets + face.out_packets,
            Order::In => face.in_bytes,
            Order::Out => face.out_bytes,
            Order::Losses => face.losses,
            Order::Queue => face.queue_bytes as f64,
            Order::Rtt => face.rtt_us.unwrap_or_default() as f64,
            Order::Face => -f64::from(face.face),
        };
        faces.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.face.cmp(&b.face)));
    }
}

/// A prefix.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Prefix {
    pub(super) prefix: String,
    pub(super) interests: f64,
    pub(super) hits: f64,
    pub(super) drops: f64,
    pub(super) data: f64,
    pub(super) bytes: f64,
    /// Interests and Data together may be so many more or fewer.
    pub(super) error: f64,
}

/// The push half since the node started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Push {
    pub(super) sent: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) missed: u64,
    pub(super) backlog: u64,
    pub(super) applications: u64,
    pub(super) vertices: u64,
}

/// What the screen shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Faces,
    /// One face alone.
    Face(u32),
    Prefixes,
    Tables,
    Push,
    Why,
    Help,
}

/// What a key wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    /// The node is to be asked otherwise.
    Ask,
    End,
}

/// Everything that the screen depends on.
#[derive(Debug)]
pub(super) struct App {
    pub(super) question: Question,
    pub(super) view: View,
    pub(super) now: Option<Snapshot>,
    pub(super) before: Option<Snapshot>,
    /// Why there is no newer one.
    pub(super) trouble: Option<String>,
    pub(super) is_paused: bool,
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) is_typing: bool,
    /// The row of the list.
    pub(super) selected: usize,
    /// Packets a second, in and out, of all faces that were told.
    pub(super) history: VecDeque<[u64; 2]>,
    /// Rows that fit, as they were drawn last.
    pub(super) page: usize,
}

impl App {
    pub(super) fn new(question: Question) -> Self {
        let filter = question.text.clone();
        Self {
            question,
            view: View::Faces,
            now: None,
            before: None,
            trouble: None,
            is_paused: false,
            filter,
            is_typing: false,
            selected: 0,
            history: VecDeque::new(),
            page: 10,
        }
    }

    /// Takes an answer; whether the screen changes.
    pub(super) fn take(&mut self, answer: Result<Snapshot, String>) -> bool {
        if self.is_paused {
            return false;
        }
        match answer {
            Ok(snapshot) => {
                self.trouble = None;
                let is_of_all = self.question.face.is_none() && snapshot.text.is_empty();
                if snapshot.interval_ms > 0 && is_of_all {
                    let sum = |of: fn(&Face) -> f64| snapshot.faces.iter().map(of).sum::<f64>();
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let packets =
                        [sum(|f| f.in_packets), sum(|f| f.out_packets)].map(|n| n.max(0.0) as u64);
                    self.history.push_back(packets);
                    if self.history.len() > HISTORY {
                        self.history.pop_front();
                    }
                }
                self.before = self.now.replace(snapshot);
            }
            Err(why) => self.trouble = Some(why),
        }
        true
    }

    /// The faces that the filter lets through.
    pub(super) fn faces(&self) -> Vec<&Face> {
        let told = self.now.iter().flat_map(|now| &now.faces);
        told.filter(|face| self.filter.is_empty() || face.has(&self.filter)).collect()
    }

    /// The prefixes that the filter lets through.
    pub(super) fn prefixes(&self) -> Vec<&Prefix> {
        let fits = |row: &&Prefix| row.prefix.contains(&self.filter);
        self.now.iter().flat_map(|now| &now.prefixes).filter(fits).collect()
    }

    /// How much a counter of the node grew in a second.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn rate(&self, of: impl Fn(&Node) -> u64) -> f64 {
        let (Some(now), Some(before)) = (&self.now, &self.before) else { return 0.0 };
        if now.interval_ms == 0 || before.node.start_ms != now.node.start_ms {
            return 0.0;
        }
        let grown = of(&now.node).saturating_sub(of(&before.node));
        grown as f64 * 1000.0 / now.interval_ms as f64
    }

    fn rows(&self) -> usize {
        match self.view {
            View::Faces => self.faces().len(),
            View::Prefixes => self.prefixes().len(),
            _ => 0,
        }
    }

    fn show(&mut self, view: View) -> Reaction {
        self.selected = 0;
        self.view = view;
        let face = if let View::Face(face) = view { Some(face) } else { None };
        let is_why = view == View::Why;
        let is_same = (self.question.face, self.question.is_why) == (face, is_why);
        (self.question.face, self.question.is_why) = (face, is_why);
        if is_same { Reaction::Nothing } else { Reaction::Ask }
    }

    /// What part of a list is shown, in words; `shown` rows of it fit the filter.
    pub(super) fn part(&self, shown: usize, part: fn(&Snapshot) -> Part) -> String {
        let Some(now) = &self.now else { return String::new() };
        let part = part(now);
        if now.text == self.filter {
            return part.words(&self.filter);
        }
        // Until the node answers for this filter, or while no answer is taken.
        match self.filter.is_empty() {
            true => format!("{} with {}", part.told, now.text),
            false => format!("{shown} with {} of {} that were told", self.filter, part.told),
        }
    }

    /// A key was pressed.
    pub(super) fn key(&mut self, key: KeyEvent) -> Reaction {
        let reaction = self.press(key);
        // Where a list is shown, the node looks for what has the text, among all that there is.
        let is_list = matches!(self.view, View::Faces | View::Prefixes);
        let text = if is_list { &self.filter[..] } else { "" };
        if self.question.text == text || reaction == Reaction::End {
            return reaction;
        }
        self.question.text = text.to_owned();
        Reaction::Ask
    }

    fn press(&mut self, key: KeyEvent) -> Reaction {
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_interrupt {
            return Reaction::End;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Reaction::Nothing;
        }
        let last = self.rows().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Reaction::End,
            KeyCode::Esc if matches!(self.view, View::Faces) && self.filter.is_empty() => {
                return Reaction::End;
            }
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc | KeyCode::Char('1') => return self.show(View::Faces),
            KeyCode::Char('2') => return self.show(View::Prefixes),
            KeyCode::Char('3') => return self.show(View::Tables),
            KeyCode::Char('4') => return self.show(View::Push),
            KeyCode::Char('w') => return self.show(View::Why),
            KeyCode::Char('?' | 'h') => return self.show(View::Help),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.selected = 0;
            }
            KeyCode::Char('s') => {
                self.question.order = self.question.order.next();
                return Reaction::Ask;
            }
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected = (self.selected + self.page).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Enter if self.view == View::Faces => {
                let face = self.faces().get(self.selected).map(|face| face.face);
                if let Some(face) = face {
                    return self.show(View::Face(face));
                }
            }
            _ => {}
        }
        Reaction::Nothing
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if self.filter.chars().count() < FILTER_MAX => self.filter.push(c),
            _ => {}
        }
    }
}
