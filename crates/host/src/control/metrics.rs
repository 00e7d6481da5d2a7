//! `/metrics` of a service: one page, with the counters of its threads added up.

use super::each::each;
use super::refused::Refused;
use super::state::counted;
use super::{App, json_of, respond, stopping};
use crate::worker::Order;
use crate::worker::order::FaceCounts;
use axum::http::StatusCode;
use axum::response::Response;
use onym_link::PacketKind;
use onym_metrics::{CONTENT_TYPE, Metric, Page, Source, catalogue as m};
use onym_services::ports::Counts;
use onym_services::stats::{KindStats, Stats};
use onym_services::verdict::Unsent;
use onym_services::{Kind, Side, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// The counters of a service at one moment.
#[derive(Debug)]
struct Sample {
    kind: Kind,
    name: String,
    cpu_seconds: f64,
    stats: Stats,
    /// By label and side; received and sent.
    faces: BTreeMap<(String, &'static str), (Counts, Counts)>,
}

pub(super) async fn answer(app: &App) -> Response {
    let sample = match sample(app).await {
        Ok(sample) => sample,
        Err(refusal) => return json_of(Err(refusal)),
    };
    match onym_metrics::page(sample) {
        Ok(page) => respond(StatusCode::OK, CONTENT_TYPE, page),
        Err(_) => json_of(Err(stopping())),
    }
}

async fn sample(app: &App) -> Result<Sample, Refused> {
    let threads = each(app, Order::FaceCounts).await?;
    let mut faces: BTreeMap<_, (Counts, Counts)> = BTreeMap::new();
    for FaceCounts { label, side, received, sent } in threads.into_iter().flatten() {
        let sum = faces.entry((label, side.word())).or_default();
        sum.0.add(&received);
        sum.1.add(&sent);
    }
    Ok(Sample {
        kind: app.kind,
        name: app.name.clone(),
        cpu_seconds: onym_sys::thread::process_cpu_time().as_secs_f64(),
        stats: counted(app).await?.stats,
        faces,
    })
}

impl Source for Sample {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let labels = [self.kind.word(), &self.name, env!("CARGO_PKG_VERSION")].map(Into::into);
        page.family(&m::SERVICE)?.sample(labels, true)?;
        page.single(&m::SERVICE_CPU, self.cpu_seconds)?;
        packets(page, &self.stats)?;
        self.faces(page)?;
        of_kind(page, &self.stats.own)
    }
}

impl Sample {
    fn faces(&self, page: &mut Page<'_>) -> fmt::Result {
        let mut count = page.family(&m::SERVICE_FACES)?;
        for side in [Side::Consumer, Side::Producer].map(Side::word) {
            let faces = self.faces.keys().filter(|(_, of)| *of == side).count() as u64;
            count.sample([side.into()], faces)?;
        }
        type Way = fn(&(Counts, Counts)) -> &Counts;
        let ways: [(&Metric<3>, Way); 2] = [
            (&m::SERVICE_FACE_RECEIVED_PACKETS, |(received, _)| received),
            (&m::SERVICE_FACE_SENT_PACKETS, |(_, sent)| sent),
        ];
        for (metric, of) in ways {
            let mut family = page.family(metric)?;
            for ((label, side), counts) in &self.faces {
                let of = of(counts);
                let by_kind = [of.interests, of.data, of.nacks];
                for (kind, n) in PacketKind::ALL.iter().zip(by_kind) {
                    let labels = [label.as_str(), side, kind.label()].map(Into::into);
                    family.sample(labels, n)?;
                }
            }
        }
        Ok(())
    }
}

fn packets(page: &mut Page<'_>, stats: &Stats) -> fmt::Result {
    let mut packets = page.family(&m::PACKETS)?;
    for kind in PacketKind::ALL {
        for verdict in Verdict::ALL {
            let labels = [verdict.label().into(), kind.label().into()];
            packets.sample(labels, stats.verdicts.of(kind, *verdict))?;
        }
    }
    let mut unsent = page.family(&m::PACKETS_UNSENT)?;
    for (reason, n) in Unsent::ALL.iter().zip(stats.unsent) {
        unsent.sample([reason.label().into()], n)?;
    }
    Ok(())
}

/// What only one kind counts.
fn of_kind(page: &mut Page<'_>, stats: &KindStats) -> fmt::Result {
    match stats {
        KindStats::NameRouter(s) => {
            page.single(&m::FIB_ENTRIES, s.routes)?;
            results(page, &m::FIB_REGISTRATIONS, &registrations(&s.registrations))
        }
        KindStats::BackwardRouter(s) => {
            page.single(&m::PIT_ENTRIES, s.entries)?;
            page.single(&m::PIT_UNSOLICITED, s.unsolicited)?;
            page.single(&m::PIT_RETRANSMITTED, s.retransmitted)
        }
        KindStats::PacketDispatcher(s) => page.single(&m::DISPATCHER_SESSIONS, s.sessions),
        KindStats::ContentStore(s) => {
            page.single(&m::CS_ENTRIES, s.entries)?;
            page.single(&m::CS_BYTES, s.bytes)?;
            results(page, &m::CS_LOOKUPS, &[("hit", s.hits), ("miss", s.misses)])
        }
        KindStats::StrategyForwarder(s) => {
            let mut family = page.family(&m::STRATEGY_FORWARDED)?;
            s.faces.iter().try_for_each(|f| family.sample([f.label.as_str().into()], f.interests))
        }
        KindStats::SignatureVerifier(s) => {
            let all = [
                ("valid", s.valid),
                ("invalid", s.invalid),
                ("unknown_key", s.unknown_key),
                ("unsigned", s.unsigned),
                ("skipped", s.skipped),
            ];
            results(page, &m::SIGNATURES, &all)?;
            page.single(&m::SAMPLING, s.sampling)
        }
        KindStats::NameFilter(s) => {
            let all = [("interest", s.dropped_interests), ("data", s.dropped_data)];
            results(page, &m::FILTER_DROPPED, &all)
        }
        KindStats::Forwarder(s) => {
            page.single(&m::FIB_ENTRIES, s.routes)?;
            results(page, &m::FIB_REGISTRATIONS, &registrations(&s.registrations))?;
            page.single(&m::PIT_ENTRIES, s.pit_entries)?;
            page.single(&m::CS_ENTRIES, s.cs_entries)?;
            results(page, &m::CS_LOOKUPS, &[("hit", s.hits), ("miss", s.misses)])
        }
    }
}

fn registrations(counted: &onym_services::stats::Registrations) -> [(&'static str, u64); 2] {
    [("accepted", counted.accepted), ("refused", counted.refused)]
}

/// A metric whose one label is a word.
fn results(page: &mut Page<'_>, metric: &Metric<1>, all: &[(&str, u64)]) -> fmt::Result {
    let mut family = page.family(metric)?;
    all.iter().try_for_each(|(word, n)| family.sample([(*word).into()], *n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_services::{Function, Now};
    use onym_tables::{HashKey, Tick};
    use std::collections::BTreeSet;

    fn page_of(kind: Kind, label: &str) -> String {
        let now = Now { tick: Tick(0), unix_ms: 0 };
        let stats = Function::new(kind, HashKey::new(1, 2), 3).stats(now);
        let counts = Counts { interests: 4, data: 5, nacks: 6 };
        let faces = [((label.to_owned(), "producer"), (counts, Counts::default()))].into();
        let name = "one".to_owned();
        onym_metrics::page(Sample { kind, name, cpu_seconds: 0.5, stats, faces }).unwrap()
    }

    /// Names of a page as the catalogue has them.
    fn names(page: &str) -> BTreeSet<String> {
        let lines = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let suffixed = |line: &str| {
            let (name, kind) = line.split_once(' ').unwrap();
            match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            }
        };
        lines.map(suffixed).collect()
    }

    #[test]
    fn the_kinds_together_show_every_metric_of_services_and_no_other() {
        let shown: BTreeSet<String> =
            Kind::ALL.iter().flat_map(|kind| names(&page_of(*kind, "a"))).collect();
        let of_services = m::ALL
            .iter()
            .filter(|metric| metric.programs.contains(&onym_metrics::Program::Service));
        let listed: BTreeSet<String> = of_services.map(|metric| metric.name.to_owned()).collect();
        assert_eq!(shown, listed);
    }

    #[test]
    fn the_label_of_a_face_cannot_add_a_sample() {
        let page = page_of(Kind::NameFilter, "a\"} 1\nonym_made_up 1");
        assert!(!page.lines().any(|line| line.starts_with("onym_made_up")), "{page}");
        let line = "onym_service_face_received_packets_total{face=\"a\\\"} 1\\nonym_made_up 1\",\
                    side=\"producer\",kind=\"nack\"} 6";
        assert!(page.lines().any(|found| found == line), "{page}");
    }
}
