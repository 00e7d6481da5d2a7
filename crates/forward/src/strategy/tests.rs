//! Strategies in virtual time: one pending Interest, its faces, and what the strategy wants done.

use super::*;
use crate::faces::FaceInfo;
use onym_tables::NameHashes;
use onym_tables::pit::{InRecord, OutRecord};
use onym_wire::Name;
use onym_wire::lp::NackReason;

mod access;
mod asf;
mod learning;
mod simple;

const LIFETIME_MS: u64 = 4000;

/// Ten non-local point-to-point faces 300 to 309 and the local face 290.
fn faces() -> Faces {
    let mut faces = Faces::default();
    faces.add(FaceId(290), FaceInfo::local());
    for id in 300..310 {
        faces.add(FaceId(id), FaceInfo::point_to_point());
    }
    faces
}

/// A strategy, and one pending Interest at a time.
struct Bench {
    strategy: Box<dyn Strategy>,
    now: Tick,
    name: Name,
    entry: Entry,
    hops: Vec<NextHop>,
    fib_prefix: Name,
    faces: Faces,
    measurements: Measurements<Measured>,
    key: HashKey,
    rng: Rng,
    nonce: u32,
    /// What the path was told, one word each.
    said: Vec<String>,
    timer: Option<Tick>,
}

impl Bench {
    /// `strategy` with parameters, and next hops `(face, cost)` for `/p`.
    fn new(strategy: &str, hops: &[(u32, u64)]) -> Self {
        let name: Name = format!("/localhost/nfd/strategy/{strategy}").parse().unwrap();
        Self {
            strategy: Instance::create(name.as_ref()).unwrap().strategy,
            now: Tick::from_ms(1000),
            name: "/p/1".parse().unwrap(),
            entry: Entry::default(),
            hops: hops.iter().map(|&(face, cost)| NextHop { face: FaceId(face), cost }).collect(),
            fib_prefix: "/p".parse().unwrap(),
            faces: faces(),
            measurements: Measurements::new(100),
            key: HashKey::new(1, 2),
            rng: Rng::new(7),
            nonce: 0,
            said: Vec::new(),
            timer: None,
        }
    }

    fn call(&mut self, what: impl FnOnce(&dyn Strategy, &mut Ctx<'_>)) -> String {
        let mut actions = Vec::new();
        let hashes = NameHashes::new(&self.key, self.fib_prefix.value(), u64::MAX >> 31);
        let fib_prefix = hashes.prefix(self.fib_prefix.value(), self.fib_prefix.len()).unwrap();
        let mut ctx = Ctx {
            now: self.now,
            name: self.name.value(),
            entry: &mut self.entry,
            next_hops: &self.hops,
            fib_prefix,
            faces: &self.faces,
            measurements: &mut self.measurements,
            key: &self.key,
            rng: &mut self.rng,
            actions: &mut actions,
        };
        what(&*self.strategy, &mut ctx);
        self.said.clear();
        for action in actions {
            self.carry_out(action);
        }
        self.said.join(" ")
    }

    fn carry_out(&mut self, action: Action) {
        let said = match action {
            Action::Forward(face) => {
                self.sent(face, 0);
                format!("{}", face.0)
            }
            Action::Probe(face) => {
                self.sent(face, 0);
                format!("probe:{}", face.0)
            }
            Action::ForwardNonDiscovery(face) => {
                self.sent(face, out_marks::NON_DISCOVERY);
                format!("known:{}", face.0)
            }
            Action::Nack(face, reason) => {
                self.entry.ins.retain(|r| r.face != face);
                format!("nack:{}:{reason}", face.0)
            }
            Action::NackAll(reason) => {
                self.entry.ins.clear();
                format!("nackall:{reason}")
            }
            Action::Reject(refusal) => format!("reject:{refusal:?}"),
            Action::Hold(refusal) => format!("hold:{refusal:?}"),
            Action::Suppress => "suppress".to_owned(),
            Action::Linger(time) => format!("linger:{}", time.as_millis()),
            Action::SetTimer(at) => {
                self.timer = Some(at);
                return;
            }
            Action::Learn(face, _) => format!("learn:{}", face.0),
            Action::Unlearn(face) => format!("unlearn:{}", face.0),
            Action::AttachAnnouncement => "attach".to_owned(),
        };
        self.said.push(said);
    }

    fn sent(&mut self, face: FaceId, marks: u8) {
        let (nonce, sent) = (self.nonce, self.now);
        let expiry = self.now.plus_ms(LIFETIME_MS);
        if let Some(out) = self.entry.out_record_mut(face) {
            (out.nonce, out.sent, out.expiry, out.nack, out.marks) =
                (nonce, sent, expiry, None, marks);
            return;
        }
        let (interval_us, deadline) = (0, Tick::NEVER);
        let nack = None;
        let out = OutRecord { face, nonce, sent, expiry, nack, interval_us, deadline, marks };
        self.entry.outs.push(out);
    }

    /// An Interest of the present name from `ingress`.
    fn interest(&mut self, ingress: u32) -> String {
        self.interest_with(ingress, false)
    }

    fn interest_with(&mut self, ingress: u32, non_discovery: bool) -> String {
        let face = FaceId(ingress);
        self.nonce += 1;
        let repeats = self.entry.in_record(face).is_some();
        self.entry.ins.retain(|r| r.face != face);
        self.entry.ins.push(InRecord {
            face,
            nonce: self.nonce,
            expiry: self.now.plus_ms(LIFETIME_MS),
            token: pit::Token::new(),
            non_discovery,
            repeats,
        });
        self.call(|strategy, ctx| strategy.after_receive_interest(ctx, face))
    }

    /// Data for the present name from `face`.
    fn data(&mut self, face: u32) -> String {
        self.data_with(face, None)
    }

    fn data_with(&mut self, face: u32, announcement: Option<&Buf>) -> String {
        let name = self.name.clone();
        let data = DataIn { face: FaceId(face), name: name.value(), announcement };
        let said = self.call(|strategy, ctx| strategy.before_satisfy(ctx, &data));
        self.entry.ins.clear();
        self.entry.outs.retain(|r| r.face.0 != face);
        said
    }

    fn nack(&mut self, face: u32, reason: NackReason) -> String {
        if let Some(out) = self.entry.out_record_mut(FaceId(face)) {
            out.nack = Some(u8::try_from(reason.0).unwrap());
        }
        self.call(|strategy, ctx| strategy.after_receive_nack(ctx, FaceId(face), reason))
    }

    /// Lets time pass; calls the timer when it is due.
    fn after(&mut self, ms: u64) -> String {
        let until = self.now.plus_ms(ms);
        let mut said = String::new();
        if let Some(at) = self.timer.take_if(|at| *at <= until) {
            self.now = at;
            said = self.call(|strategy, ctx| strategy.on_timer(ctx));
        }
        self.now = until;
        said
    }

    /// Another Interest: name and entry are new.
    fn next(&mut self, uri: &str) -> &mut Self {
        self.name = uri.parse().unwrap();
        self.entry = Entry::default();
        self.timer = None;
        self
    }

    /// One Interest that `answers` after so many milliseconds, from whichever upstreams it went
    /// to; where it went.
    fn exchange(&mut self, number: u32, answers: &[(u32, u64)]) -> String {
        let went = self.next(&format!("/p/{number}")).interest(301);
        let mut due: Vec<_> = self
            .entry
            .outs
            .iter()
            .filter_map(|out| answers.iter().find(|(face, _)| *face == out.face.0).copied())
            .map(|(face, ms)| (ms, face))
            .collect();
        due.sort_unstable();
        let start = self.now;
        for (ms, face) in due {
            self.now = start.plus_ms(ms);
            self.data(face);
        }
        self.now = start.plus_ms(100);
        went
    }
}
