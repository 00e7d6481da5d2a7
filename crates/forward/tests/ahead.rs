//! Law: what a forwarder is shown of packets ahead changes nothing, whether they come, in which order, and
//! whether others come between them.

use onym_forward::{BATCH, Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::pit::Token;
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;

/// So many routes, pending Interests and packets that every table is looked at ahead.
const FILL: u32 = 1500;

fn name(n: u32) -> Name {
    let mut name = Name::new();
    name.append_generic("r").append_generic((n % FILL).to_string());
    name.append_generic("file").append_segment(n.into());
    name
}

fn interest(n: u32, nonce: u32, can_be_prefix: bool) -> Packet {
    let (name, mut wire) = (name(n), Vec::new());
    let asked = InterestBuilder::new(name.as_ref());
    InterestBuilder { nonce: Some(nonce.to_be_bytes()), can_be_prefix, ..asked }.write(&mut wire);
    packet(256 + nonce % 2, &wire, Token::new())
}

fn data(n: u32, token: Token) -> Packet {
    let (name, mut wire) = (name(n), Vec::new());
    let data = DataBuilder { freshness_ms: 1000, ..DataBuilder::new(name.as_ref(), b"x") };
    data.write(&mut wire, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
        .expect("a constant signs");
    packet(300, &wire, token)
}

fn packet(face: u32, wire: &[u8], pit_token: Token) -> Packet {
    let lp = LpIn { pit_token, ..LpIn::default() };
    Packet { face: FaceId(face), bytes: Buf::copy_from(wire), lp }
}

struct Subject {
    fw: Forwarder,
    out: Outbox,
    looks: bool,
}

impl Subject {
    fn new(looks: bool) -> Self {
        let cs = CsConfig { packets_max: FILL as usize, ..CsConfig::default() };
        let mut fw = Forwarder::new(Config { cs, fairness: false, ..Config::default() });
        let mut out = Outbox::default();
        for id in [256, 257, 300] {
            fw.face_add(FaceId(id), FaceInfo::point_to_point());
        }
        for n in 0..FILL {
            let hop = NextHop { face: FaceId(300), cost: 0 };
            fw.fib_add(Tick(1), name(n).as_ref().prefix(2), hop, &mut out).expect("room");
        }
        Self { fw, out, looks }
    }

    fn foresee(&mut self, packets: &[Packet]) {
        if self.looks {
            self.fw.foresee(packets.iter().map(|p| (&*p.bytes, &*p.lp.pit_token)));
        }
    }

    /// All that can be seen of what became of a packet.
    fn receive(&mut self, now: Tick, packet: &Packet) -> (Verdict, Vec<(Token, Vec<u8>)>) {
        let verdict = self.fw.receive(now, packet.clone(), &mut self.out);
        self.fw.handle_timeout(now, &mut self.out);
        let sent = |item| {
            let token = onym_link::Transmit::as_pull(item).map(|(_, lp)| lp.pit_token.clone());
            (token.unwrap_or_default(), self.out.bytes(item).to_vec())
        };
        let sent = self.out.items.iter().map(sent).collect();
        self.out.clear();
        (verdict, sent)
    }
}

#[test]
fn what_is_seen_ahead_changes_no_outcome() {
    let (mut subjects, mut rng) = ([true, false].map(Subject::new), Rng::new(7));
    let (mut now, mut pending) = (Tick::from_ms(1), Vec::new());
    let mut chance = |n: u64| u32::try_from(rng.below(n)).expect("a small number");
    let mut verdicts = std::collections::BTreeSet::new();
    for round in 0..400 {
        now = now.plus_ms(u64::from(chance(20)));
        let mut batch = Vec::new();
        for _ in 0..chance(BATCH as u64 + 8) {
            // Names of a few come again and again, as long as the tables are not filled from the start on.
            let n = if round < 200 { chance(1 << 20) } else { chance(4000) };
            batch.push(match chance(8) {
                0 | 1 => data(n, Token::new()),
                2..5 if !pending.is_empty() => {
                    let at = chance(pending.len() as u64) as usize;
                    let (n, token) = pending.swap_remove(at);
                    data(n + u32::from(chance(20) == 0), token)
                }
                _ => interest(n, chance(1 << 30), chance(30) == 0),
            });
        }
        subjects.iter_mut().for_each(|subject| subject.foresee(&batch));
        // Some do not come, some come that were not seen, some in another order.
        batch.retain(|_| chance(10) > 0);
        if chance(3) == 0 && batch.len() > 2 {
            batch.swap(0, 1);
            batch.insert(1, interest(chance(4000), chance(1 << 30), false));
        }
        for packet in &batch {
            let [seen, blind] = subjects.each_mut().map(|subject| subject.receive(now, packet));
            assert_eq!(seen, blind);
            verdicts.insert(seen.0.label());
            for (token, octets) in seen.1 {
                if let (6, Ok(interest)) = (token.len(), onym_wire::Interest::parse(&octets)) {
                    let n = interest.name.last().and_then(|c| c.as_segment()).unwrap_or(0);
                    pending.push((u32::try_from(n).unwrap_or(0), token));
                }
            }
        }
    }
    let [seen, blind] = &subjects;
    assert_eq!(format!("{:?}", seen.fw.counters()), format!("{:?}", blind.fw.counters()));
    assert!(seen.fw.foresees() && seen.fw.cs().len() == FILL as usize);
    for word in ["forwarded", "satisfied", "cs_hit", "unsolicited", "suppressed"] {
        assert!(verdicts.contains(word), "{word}: {verdicts:?}");
    }
}
