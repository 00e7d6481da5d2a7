//! The verifier in memory, beside a loop that only verifies the same Data.

use super::{BENCH, ServicesArgs};
use crate::report::{Report, median};
use anyhow::{Result, ensure};
use onym_crypto::{KeyType, PrivateKey, Signer};
use onym_engine::{Bell, Jobs};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_services::control::{KeySpec, Request, SetRequest};
use onym_services::verify::Job;
use onym_services::{Function, Kind, Now, Port, Side};
use onym_sys::epoll::{Epoll, Interest};
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use std::time::{Duration, Instant};

/// Signed Data through the element, beside a loop that only verifies them: what that does a second.
pub(super) fn verifying(report: &mut Report, kind: KeyType, args: &ServicesArgs) -> Result<f64> {
    let (packets, spki) = signed(kind, args.payload)?;
    let now = Now { tick: Tick::from_ms(1000), unix_ms: 1_700_000_000_000 };
    let mut out = Outbox::default();
    let mut sv = Function::new(Kind::SignatureVerifier, HashKey::new(1, 2), 3);
    sv.face_added(now, Port::new(FaceId(256), "in", Side::Consumer), &mut out);
    sv.face_added(now, Port::new(FaceId(300), "out", Side::Producer), &mut out);
    let key = KeySpec { name: "/bench/KEY/1".into(), spki: Some(spki), ..KeySpec::default() };
    let request = Request::Keys(SetRequest::Change { add: vec![key], remove: Vec::new() });
    sv.control(now, request, &mut out).map_err(|e| anyhow::anyhow!(e.message))?;
    let job = |sv: &mut Function, packet: &Packet, out: &mut Outbox| -> Option<Job> {
        sv.receive(now, packet.clone(), out);
        sv.jobs().pop()
    };
    let (mut whole, mut bare, mut pair) = (Vec::new(), Vec::new(), Vec::new());
    let mut waiting = [Vec::new(), Vec::new()];
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
        for (threads, rates) in (1..).zip(&mut waiting) {
            rates.push(backlog(part, threads, jobs())?);
        }
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
    let [one, two] = waiting.map(|rates| median(&rates));
    for (threads, rate) in [(1, one), (2, two)] {
        let name = format!("kind=SV,key={},threads={threads},place=backlog", kind.word());
        report.add(BENCH, &name, "onym", "exchanges_per_second", rate);
    }
    println!(
        "{:<26} {one:>7.0} verifications a second of what waits already, \
         {two:.0} with two threads ({:.2} times)",
        format!("kind=SV,key={}", kind.word()),
        two / one
    );
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

/// So many Data with signatures of one key, and that key.
fn signed(kind: KeyType, payload: usize) -> Result<(Vec<Packet>, String)> {
    const COUNT: u64 = 256;
    let key = PrivateKey::generate(kind)?;
    let spki = base64_of(key.spki());
    let signer = Signer::key(key, "/bench/KEY/1".parse()?);
    let content = vec![0x58; payload];
    let packet = |n| -> Result<Packet> {
        let mut name: Name = "/bench".parse()?;
        name.append_segment(n);
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &content), &mut wire)?;
        Ok(Packet { face: FaceId(300), bytes: Buf::copy_from(&wire), lp: LpIn::default() })
    };
    Ok(((0..COUNT).map(packet).collect::<Result<_>>()?, spki))
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

/// Verifications a second by the threads of a service when everything waits already: nothing is
/// received or sent, and the data thread only takes what is done and lets it wait again.
fn backlog(time: Duration, threads: usize, mut jobs: Vec<Job>) -> Result<f64> {
    let (epoll, bell) = (Epoll::new()?, Bell::new()?);
    epoll.add(bell.waker(), 0, Interest::Read)?;
    let mut verifiers = Jobs::start(threads, &bell, onym_host::verify)?;
    verifiers.submit(&mut jobs);
    let (start, mut count, mut ready) = (Instant::now(), 0_u32, Vec::new());
    while start.elapsed() < time {
        let look = |_: &mut Vec<_>| verifiers.has_work();
        bell.rest(&mut ready, look, |ready, has_work| {
            ready.clear();
            let waited = if has_work { Ok(0) } else { epoll.wait(None, ready) };
            waited.is_ok_and(|count| count > 0)
        });
        verifiers.finished(&mut jobs);
        ensure!(
            jobs.iter().all(|job| job.valid == Some(true)),
            "a good signature was not accepted"
        );
        count += u32::try_from(jobs.len())?;
        verifiers.submit(&mut jobs);
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
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
