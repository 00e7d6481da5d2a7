//! The verifier in memory, beside a loop that only verifies the same Data.

use super::{BENCH, ServicesArgs};
use crate::report::{Report, median};
use anyhow::{Result, ensure};
use onym_crypto::{KeyType, PrivateKey, Signer};
use onym_forward::packet::{LpIn, Outbox, Packet};
use onym_services::verify::Job;
use onym_services::{Function, Kind, Method, Now, Port, Request, Side};
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use serde_json::json;
use std::time::{Duration, Instant};

/// Signed Data through the element, beside a loop that only verifies them: what that does a second.
pub(super) fn verifying(report: &mut Report, kind: KeyType, args: &ServicesArgs) -> Result<f64> {
    const COUNT: u64 = 256;
    let key = PrivateKey::generate(kind)?;
    let spki = base64_of(key.spki());
    let name: Name = "/bench/KEY/1".parse()?;
    let signer = Signer::key(key, name);
    let content = vec![0x58; args.payload];
    let mut packets = Vec::new();
    for n in 0..COUNT {
        let mut name: Name = "/bench".parse()?;
        name.append_segment(n);
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &content), &mut wire)?;
        let bytes = Buf::copy_from(&wire);
        packets.push(Packet { face: FaceId(300), bytes, lp: LpIn::default() });
    }
    let now = Now { tick: Tick::from_ms(1000), unix_ms: 1_700_000_000_000 };
    let mut out = Outbox::default();
    let mut sv = Function::new(Kind::SignatureVerifier, HashKey::new(1, 2), 3);
    sv.face_added(now, Port::new(FaceId(256), "in", Side::Consumer), &mut out);
    sv.face_added(now, Port::new(FaceId(300), "out", Side::Producer), &mut out);
    let body = json!({ "add": [{ "name": "/bench/KEY/1", "spki": spki }] });
    let request = Request { method: Method::Post, resource: "keys", query: &[], body: &body };
    sv.control(now, &request, &mut out).map_err(|e| anyhow::anyhow!(e.message))?;
    let job = |sv: &mut Function, packet: &Packet, out: &mut Outbox| -> Option<Job> {
        sv.receive(now, packet.clone(), out);
        sv.jobs().pop()
    };
    let (mut whole, mut bare, mut pair) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds * PIECES {
        let part = Duration::from_secs_f64(args.seconds / 2.0 / PIECES as f64);
        whole.push(rate(part, &packets, |packet| {
            let Some(mut job) = job(&mut sv, packet, &mut out) else { return false };
            job.run();
            let verdict = sv.verified(now, job, &mut out);
            out.clear();
            verdict == Some(onym_services::Verdict::Forwarded)
        })?);
        let mut jobs = || packets.iter().filter_map(|p| job(&mut sv, p, &mut out)).collect();
        let (one, other): (Vec<Job>, Vec<Job>) = (jobs(), jobs());
        bare.push(only(part, vec![one])?);
        pair.push(only(part, vec![jobs(), other])?);
    }
    #[allow(clippy::cast_precision_loss)]
    let bits = args.payload as f64 * 8.0;
    let case = |threads| {
        let key = kind.word();
        format!("kind=SV,key={key},threads={threads},place=memory,payload={}", args.payload)
    };
    let (whole, bare, pair) = (median(&whole), median(&bare), median(&pair));
    report.add(BENCH, &case(1), "onym", "exchanges_per_second", whole);
    report.add(BENCH, &case(1), "onym", "goodput_bps", whole * bits);
    for (threads, rate) in [(1, bare), (2, pair)] {
        report.add(BENCH, &case(threads), "relay", "exchanges_per_second", rate);
        report.add(BENCH, &case(threads), "relay", "goodput_bps", rate * bits);
    }
    println!(
        "{:<26} {:>7.0} Mbit/s in memory, {:.1} % of a loop that only verifies \
         ({:.0} Mbit/s, two threads {:.0} Mbit/s)",
        format!("kind=SV,key={}", kind.word()),
        whole * bits / 1e6,
        whole / bare * 100.0,
        bare * bits / 1e6,
        pair * bits / 1e6,
    );
    Ok(bare)
}

/// Pieces of each measurement in memory, which take turns: what the machine does meanwhile varies.
const PIECES: usize = 5;

/// Verifications per second of loops that do nothing else, a thread for each of `jobs`.
fn only(time: Duration, jobs: Vec<Vec<Job>>) -> Result<f64> {
    let one = move |core: usize, mut jobs: Vec<Job>| -> Result<f64> {
        // Left alone, two threads may share a core for longer than a piece lasts.
        onym_sys::thread::pin_to_core(core)?;
        let (start, mut count) = (Instant::now(), 0_u32);
        while start.elapsed() < time {
            for job in &mut jobs {
                job.run();
                ensure!(job.valid == Some(true), "a good signature was not accepted");
                count += 1;
            }
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    };
    let threads: Vec<_> = jobs
        .into_iter()
        .enumerate()
        .map(|(n, jobs)| std::thread::spawn(move || one(n, jobs)))
        .collect();
    let rates = threads.into_iter().map(|t| t.join().unwrap_or(Ok(f64::NAN)));
    rates.sum()
}

/// How often per second `work` is done, which must always succeed.
fn rate(time: Duration, packets: &[Packet], mut work: impl FnMut(&Packet) -> bool) -> Result<f64> {
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        for packet in packets {
            ensure!(work(packet), "a good signature was not accepted");
            count += 1;
        }
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

pub(super) fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
