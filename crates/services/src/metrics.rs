//! Metrics of each kind, taken from its statistics; names are those of spec/services.md.

use serde_json::Value;
use std::fmt::Write as _;

/// Metric, its label if any, and where its value lies in the statistics.
const ALL: &[(&str, &str, &str)] = &[
    ("onym_pit_entries", "", "/backward_router/entries"),
    ("onym_pit_entries", "", "/forwarder/pit_entries"),
    ("onym_pit_unsolicited_data_total", "", "/backward_router/unsolicited"),
    ("onym_pit_retransmitted_interests_total", "", "/backward_router/retransmitted"),
    ("onym_fib_entries", "", "/name_router/routes"),
    ("onym_fib_entries", "", "/forwarder/routes"),
    ("onym_fib_registrations_total", "result=\"accepted\"", "/name_router/registrations/accepted"),
    ("onym_fib_registrations_total", "result=\"refused\"", "/name_router/registrations/refused"),
    ("onym_fib_registrations_total", "result=\"accepted\"", "/forwarder/registrations/accepted"),
    ("onym_fib_registrations_total", "result=\"refused\"", "/forwarder/registrations/refused"),
    ("onym_cs_lookups_total", "result=\"hit\"", "/content_store/hits"),
    ("onym_cs_lookups_total", "result=\"miss\"", "/content_store/misses"),
    ("onym_cs_lookups_total", "result=\"hit\"", "/forwarder/hits"),
    ("onym_cs_lookups_total", "result=\"miss\"", "/forwarder/misses"),
    ("onym_cs_entries", "", "/content_store/entries"),
    ("onym_cs_entries", "", "/forwarder/cs_entries"),
    ("onym_cs_bytes", "", "/content_store/bytes"),
    ("onym_sv_verified_total", "result=\"valid\"", "/signature_verifier/valid"),
    ("onym_sv_verified_total", "result=\"invalid\"", "/signature_verifier/invalid"),
    ("onym_sv_verified_total", "result=\"unknown_key\"", "/signature_verifier/unknown_key"),
    ("onym_sv_verified_total", "result=\"unsigned\"", "/signature_verifier/unsigned"),
    ("onym_sv_verified_total", "result=\"skipped\"", "/signature_verifier/skipped"),
    ("onym_sv_sampling_ratio", "", "/signature_verifier/sampling"),
    ("onym_nf_dropped_total", "type=\"interest\"", "/name_filter/dropped_interests"),
    ("onym_nf_dropped_total", "type=\"data\"", "/name_filter/dropped_data"),
    ("onym_pd_sessions", "", "/packet_dispatcher/sessions"),
];

/// Appends what `stats` says of the kind.
pub fn of_kind(stats: &Value, out: &mut String) {
    for (name, label, at) in ALL {
        if let Some(value) = stats.pointer(at) {
            let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    }
    let faces = stats.pointer("/strategy_forwarder/faces").and_then(Value::as_array);
    for face in faces.into_iter().flatten() {
        let (label, count) = (face["label"].as_str().unwrap_or_default(), &face["interests"]);
        let _ = writeln!(out, "onym_sf_forwarded_total{{face=\"{label}\"}} {count}");
    }
}
