//! Runs a script against a forwarder.

mod ask;

use crate::env::Env;
use crate::expect::{self, Found, fits};
use crate::peer::{Heard, Peer};
use crate::script::{Field, Packet, PacketKind, Script, Step, StepKind, Value};
use crate::show;
use crate::subject::{Bench, Received, Subject};
use crate::wire::build;
use crate::wire::name::Component;
use crate::wire::view::{Data, Interest, Seen};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every line held.
    Passed,
    /// The subject cannot run it, for this reason.
    Skipped(String),
    /// A line did not hold: where, which and why.
    Failed(String),
    /// No forwarder could be set up for it: a failure that says nothing about its laws.
    NotSetUp(String),
    /// A line did not hold, and the forwarder is known not to keep this law, for this reason.
    Deviates(String),
}

/// Runs one script on a bench.
pub fn run(bench: &dyn Bench, script: &Script) -> Outcome {
    if let Some(reason) = bench.refuses(script) {
        return Outcome::Skipped(reason);
    }
    let subject = match bench.set_up(script) {
        Ok(subject) => subject,
        Err(e) => return Outcome::NotSetUp(format!("{}: set-up: {e}", script.path.display())),
    };
    let mut run = Run::new(script, subject, bench.apart(script));
    run.returning = bench.far_ends_return_tokens();
    match run.all() {
        Ok(()) => Outcome::Passed,
        Err(e) => Outcome::Failed(e),
    }
}

struct Run<'a> {
    script: &'a Script,
    subject: Box<dyn Subject>,
    env: Env,
    peers: Vec<Peer>,
    /// Packets that came and that no line has taken.
    inbox: Vec<VecDeque<Seen>>,
    closed: Vec<bool>,
    /// Names of commands that wait for their answer, by face.
    commands: Vec<VecDeque<Vec<Component>>>,
    /// The face that sent last and whose packets may not be digested.
    sender: Option<usize>,
    asked: Option<ask::Asked>,
    /// When each dataset was fetched last, in the subject's time.
    fetched: HashMap<Vec<u8>, u64>,
    /// SignatureTime of the last command.
    last_time: u64,
    /// Far ends return tokens where the script says nothing of them.
    returning: bool,
    /// Interests with tokens that came, by face.
    tokens: Vec<Vec<(Interest, Vec<u8>)>>,
}

impl<'a> Run<'a> {
    fn new(script: &'a Script, subject: Box<dyn Subject>, apart: Option<Component>) -> Self {
        let mut env = Env { apart, ..Env::default() };
        // Nonces differ from run to run where the forwarder outlives the script.
        env.nonce = u32::try_from(subject.now_ms() & 0x7fff_ffff).unwrap_or(1);
        for (i, face) in script.faces.iter().enumerate() {
            env.face_ids.insert(face.name.clone(), subject.face_id(i));
        }
        let count = script.faces.len();
        Self {
            script,
            subject,
            env,
            peers: script.faces.iter().map(Peer::new).collect(),
            inbox: vec![VecDeque::new(); count],
            closed: vec![false; count],
            commands: vec![VecDeque::new(); count],
            sender: None,
            asked: None,
            fetched: HashMap::new(),
            last_time: 0,
            returning: false,
            tokens: vec![Vec::new(); count],
        }
    }

    fn all(&mut self) -> Result<(), String> {
        let steps = &self.script.steps;
        let mut at = 0;
        while at < steps.len() {
            // Lines that one repetition made are one expectation.
            let end = steps[at..]
                .iter()
                .position(|s| s.line != steps[at].line)
                .map_or(steps.len(), |n| at + n);
            let group = &steps[at..end];
            let done = if group.len() > 1 && matches!(group[0].kind, StepKind::Receive { .. }) {
                self.receive_group(group)
            } else {
                group.iter().try_for_each(|s| self.step(s).map_err(|e| self.place(s, &e)))
            };
            done?;
            at = end;
        }
        self.nothing_left()?;
        let path = self.script.path.display();
        self.subject.finish().map_err(|e| format!("{path}: at the end: {e}"))
    }

    fn place(&self, step: &Step, what: &str) -> String {
        format!("{}:{}: {}\n    {what}", self.script.path.display(), step.line, step.text)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.kind {
            StepKind::Send { face, packet } => self.send(*face, packet),
            StepKind::Receive { face, packet, within } => self.receive(*face, packet, *within),
            StepKind::Nothing { face, for_ms } => self.nothing(*face, *for_ms),
            StepKind::Closed { face } => self.expect_closed(*face),
            StepKind::Let { label, packet } => {
                let bytes = build::network(&mut self.env, packet)?;
                self.env.labels.insert(label.clone(), bytes);
                Ok(())
            }
            StepKind::Wait(ms) => {
                self.subject.wait(Duration::from_millis(*ms));
                Ok(())
            }
            StepKind::Drain(face) => {
                while self.next(*face, Duration::from_millis(20))?.is_some() {}
                Ok(())
            }
            StepKind::Close(face) => {
                self.closed[*face] = true;
                self.inbox[*face].clear();
                self.settle_for(None);
                self.subject.close(*face)
            }
            StepKind::Route { prefix, face, cost } => {
                let name = self.env.name(prefix)?;
                self.subject.route(&name, *face, Some(*cost))
            }
            StepKind::Unroute { prefix, face } => {
                let name = self.env.name(prefix)?;
                self.subject.route(&name, *face, None)
            }
            StepKind::Strategy { prefix, strategy } => {
                let name = self.env.name(prefix)?;
                self.subject.strategy(&name, strategy)
            }
            StepKind::Cs(spec) => self.subject.cs(spec),
            StepKind::Expect(counters) => self.counters(counters),
            StepKind::Query { .. } | StepKind::Has(_) | StepKind::Lacks(_) | StepKind::Rows(_) => {
                self.ask(&step.kind)
            }
        }
    }

    /// Lets the forwarder finish with one face before another is used.
    fn settle_for(&mut self, face: Option<usize>) {
        if self.sender.is_some() && self.sender != face {
            self.subject.settle();
        }
        self.sender = face;
    }

    fn send(&mut self, face: usize, packet: &Packet) -> Result<(), String> {
        self.settle_for(Some(face));
        let frame = match &packet.kind {
            PacketKind::Command(verb) => self.command(face, verb, packet)?,
            _ => self.frame(face, packet)?,
        };
        self.subject.send(face, &frame)
    }

    /// Builds a packet; an answer takes the token of its Interest along where far ends do so.
    fn frame(&mut self, face: usize, packet: &Packet) -> Result<Vec<u8>, String> {
        let answers = matches!(
            packet.kind,
            PacketKind::Data(_) | PacketKind::Labelled(_) | PacketKind::Nack(..)
        );
        if !self.returning || !answers || packet.fields.iter().any(|f| f.key == "token") {
            return build::frame(&mut self.env, packet);
        }
        let mut packet = packet.clone();
        let net = build::network(&mut self.env, &packet)?;
        packet.fields.extend(self.token_for(face, &net));
        build::frame(&mut self.env, &packet)
    }

    /// The token of the last Interest that this packet answers.
    fn token_for(&self, face: usize, net: &[u8]) -> Option<Field> {
        let name =
            Data::read(net).map(|d| d.name).or_else(|| Interest::read(net).map(|i| i.name))?;
        let asked = |i: &Interest| i.name == name || (i.can_be_prefix && name.starts_with(&i.name));
        let (_, token) = self.tokens[face].iter().rev().find(|(i, _)| asked(i))?;
        Some(Field { key: "token", value: Value::Bytes(token.clone()) })
    }

    fn note_token(&mut self, face: usize, seen: &Seen) {
        if let (true, Some(token), Some(interest)) =
            (self.returning, &seen.lp.token, seen.interest())
        {
            self.tokens[face].push((interest, token.clone()));
        }
    }

    /// The next packet that the script may see on a face.
    fn next(&mut self, face: usize, patience: Duration) -> Result<Option<Seen>, String> {
        if let Some(seen) = self.inbox[face].pop_front() {
            return Ok(Some(seen));
        }
        loop {
            match self.subject.receive(face, patience)? {
                Received::Nothing => return Ok(None),
                Received::Closed => {
                    self.closed[face] = true;
                    return Ok(None);
                }
                Received::Frame(frame) => {
                    let (heard, reply) = self.peers[face].hear(frame)?;
                    if let Some(frame) = reply {
                        self.subject.send(face, &frame)?;
                    }
                    if let Heard::Packet(seen) = heard {
                        self.note_token(face, &seen);
                        return Ok(Some(*seen));
                    }
                }
            }
        }
    }

    fn receive(
        &mut self,
        face: usize,
        pattern: &Packet,
        within: Option<u64>,
    ) -> Result<(), String> {
        let patience = within.map_or(self.subject.patience(), Duration::from_millis);
        let Some(seen) = self.next(face, patience)? else {
            return Err(self.missing(face, patience));
        };

        let old = self.env.clone();
        self.compare(face, pattern, &seen).map_err(|e| {
            self.env = old;
            format!("got {}: {e}", show::seen(&seen))
        })
    }

    fn missing(&mut self, face: usize, patience: Duration) -> String {
        if self.closed[face] {
            return "the forwarder closed the face".into();
        }
        let mut text = format!("nothing came in {} ms", patience.as_millis());
        if let Some(counts) = self.subject.verdicts() {
            let words: Vec<String> = counts
                .iter()
                .filter(|c| c.count > 0)
                .map(|c| format!("{}.{}={}", c.kind, c.word, c.count))
                .collect();
            text += &format!("; verdicts so far: {}", words.join(" "));
        }
        text
    }

    fn compare(&mut self, face: usize, pattern: &Packet, seen: &Seen) -> Result<(), String> {
        match &pattern.kind {
            PacketKind::Response(code) => self.response(face, code, pattern, seen),
            PacketKind::Event(word) => self.event(word, pattern, seen),
            _ => expect::packet(&mut self.env, pattern, seen, &self.script.faces[face]),
        }
    }

    /// A repeated expectation: as many packets as lines, in any order.
    fn receive_group(&mut self, group: &[Step]) -> Result<(), String> {
        let mut open: Vec<&Step> = group.iter().collect();
        while let Some(first) = open.first().copied() {
            let StepKind::Receive { face, .. } = first.kind else { return Ok(()) };
            let patience = self.subject.patience();
            let seen = self.next(face, patience).map_err(|e| self.place(first, &e))?;
            let Some(seen) = seen else {
                let what = self.missing(face, patience);
                return Err(self.place(first, &what));
            };

            let mut why = String::new();
            let hit = open.iter().position(|step| {
                let StepKind::Receive { packet, .. } = &step.kind else { return false };
                let old = self.env.clone();
                let result = self.compare(face, packet, &seen);
                if let Err(e) = result {
                    self.env = old;
                    if why.is_empty() {
                        why = e;
                    }
                    return false;
                }
                true
            });
            match hit {
                Some(i) => drop(open.remove(i)),
                None => return Err(self.place(first, &format!("got {}: {why}", show::seen(&seen)))),
            }
        }
        Ok(())
    }

    fn nothing(&mut self, face: usize, ms: u64) -> Result<(), String> {
        match self.next(face, Duration::from_millis(ms))? {
            Some(seen) => Err(format!("got {}", show::seen(&seen))),
            None => Ok(()),
        }
    }

    fn expect_closed(&mut self, face: usize) -> Result<(), String> {
        let patience = self.subject.patience();
        match self.next(face, patience)? {
            Some(seen) => Err(format!("got {}", show::seen(&seen))),
            None if self.closed[face] => Ok(()),
            None => Err(format!("the face is open after {} ms", patience.as_millis())),
        }
    }

    fn counters(&mut self, counters: &[(String, Value)]) -> Result<(), String> {
        self.settle_for(None);
        for attempt in 1.. {
            let Some(counts) = self.subject.verdicts() else { return Ok(()) };
            let wrong = counters.iter().find_map(|(word, want)| {
                let (kind, word) =
                    word.split_once('.').map_or((None, word.as_str()), |(k, w)| (Some(k), w));
                let sum = counts
                    .iter()
                    .filter(|c| c.word == word && kind.is_none_or(|k| k == c.kind))
                    .map(|c| c.count)
                    .sum();
                (!fits(&mut self.env, want, &Found::Number(sum)))
                    .then(|| format!("{word} is {sum}"))
            });
            match wrong {
                None => return Ok(()),
                Some(text) if attempt >= self.subject.counter_tries() => return Err(text),
                Some(_) => self.subject.wait(Duration::from_millis(20)),
            }
        }
        Ok(())
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        for face in 0..self.script.faces.len() {
            if self.closed[face] {
                continue;
            }
            if let Some(seen) = self.next(face, Duration::from_millis(1))? {
                let name = &self.script.faces[face].name;
                let path = self.script.path.display();
                return Err(format!(
                    "{path}: at the end face {name} got {}, which no line expects",
                    show::seen(&seen)
                ));
            }
        }
        Ok(())
    }
}
