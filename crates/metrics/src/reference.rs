//! docs/metrics.md, generated from the catalogue.

use crate::catalogue::ALL;
use crate::{About, Kind, Program, Unit};
use std::fmt::Write as _;

const HEAD: &str = "\
# Metrics

Written by `cargo run -p onym-metrics --example metrics_reference > docs/metrics.md`; do not edit.

`/metrics` of a node (`metrics.listen`), of each service and of the manager is a page in the text format of OpenMetrics 1.0, which Prometheus reads.
Words of `verdict` and `reason`: [verdicts.md](verdicts.md), [push-verdicts.md](push-verdicts.md), [verdicts-services.md](verdicts-services.md). A node's `face` is its FaceId, a service's is the face's label.
The counters of faces that were closed are gone from the page.
";

/// Names of before the scheme, for who reads them.
const RENAMED: &[(&str, &str)] = &[
    ("onym_unsent_total", "onym_packets_unsent_total"),
    ("onym_face_in_{interests,data,nacks}_total", "onym_face_received_packets_total{kind}"),
    ("onym_face_out_{interests,data,nacks}_total", "onym_face_sent_packets_total{kind}"),
    ("onym_face_{in,out}_bytes_total", "onym_face_{received,sent}_bytes_total"),
    ("onym_cs_hits_total, onym_cs_misses_total", "onym_cs_lookups_total{result}"),
    (
        "onym_{satisfied,unsatisfied,displaced}_interests_total",
        "onym_pit_{satisfied,unsatisfied,displaced}_interests_total",
    ),
    ("onym_push_copies_total", "onym_push_frames_sent_total"),
    (
        "onym_push_{sent,delivered,missed}_total",
        "onym_push_publications_{sent,delivered,missed}_total",
    ),
    ("onym_push_missing_total", "onym_push_publications_lost_total"),
    ("onym_push_apps", "onym_push_applications"),
    (
        "onym_face_{in,out}_…_total of a service",
        "onym_service_face_{received,sent}_packets_total{kind}",
    ),
    ("onym_sf_forwarded_total", "onym_strategy_forwarded_interests_total"),
    ("onym_sv_verified_total", "onym_verifier_packets_total"),
    ("onym_sv_sampling_ratio", "onym_verifier_sampling_ratio"),
    ("onym_nf_dropped_total{type}", "onym_filter_dropped_packets_total{kind}"),
    ("onym_pd_sessions", "onym_dispatcher_sessions"),
    ("onym_manager_function_cores", "onym_manager_function_cpu_cores"),
    ("onym_scale_instances", "onym_manager_function_instances"),
];

/// The text of docs/metrics.md.
#[must_use]
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    for (program, title) in [
        (Program::Node, "Node"),
        (Program::Router, "Routing, on the page of a node with `routing.network`"),
        (Program::Service, "Services"),
        (Program::Manager, "Manager"),
    ] {
        let _ = writeln!(
            out,
            "\n## {title}\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|"
        );
        for metric in ALL.iter().filter(|metric| metric.programs.contains(&program)) {
            row(&mut out, metric);
        }
    }
    out.push_str("\n## Renamed\n\n| before | now |\n|---|---|\n");
    for (before, now) in RENAMED {
        let _ = writeln!(out, "| `{before}` | `{now}` |");
    }
    out
}

fn row(out: &mut String, metric: &About) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Info => "info",
    };
    let unit = match metric.unit {
        Unit::Count => "",
        Unit::Bytes => "octets",
        Unit::Seconds => "seconds",
        Unit::Ratio => "0 to 1",
        Unit::Cores => "cores",
    };
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let (name, labels, help) = (metric.name, labels.join(" "), metric.help);
    let _ = writeln!(out, "| `{name}` | {kind} | {unit} | {labels} | {help} |");
}
