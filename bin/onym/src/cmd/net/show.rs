//! The manager's answers for people.

use serde_json::Value;
use std::fmt::Write as _;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

pub(super) fn done(done: &Value) -> String {
    let mut out = String::new();
    for step in done["steps"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  {}", step.as_str().unwrap_or_default());
    }
    let took = done["took_ms"].as_u64().unwrap_or(0);
    let words = match (done["changed"].as_bool(), took) {
        (Some(true), 0) => "would be done".to_owned(),
        (Some(true), _) => format!("done in {took} ms"),
        _ => "nothing to do".to_owned(),
    };
    out + &words
}

pub(super) fn presets(rows: &Value) -> String {
    let rows = rows.as_array().into_iter().flatten();
    rows.map(|r| format!("{:<12} {}", text(r, "name"), text(r, "about")))
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn network(view: &Value) -> String {
    let settled = view["settled"].as_bool() == Some(true);
    let mut out = format!(
        "{} on {}: {}\n\n{:<20} {:<20} {:<8} {:>6} {:>12} {:>12}\n",
        text(view, "network"),
        text(view, "driver"),
        if settled { "as wanted" } else { "not as wanted" },
        "function",
        "kind",
        "state",
        "load",
        "Interests/s",
        "Data/s"
    );
    for (name, f) in view["functions"].as_object().into_iter().flatten() {
        let sample = &f["sample"];
        let _ = writeln!(
            out,
            "{name:<20} {:<20} {:<8} {:>5.0}% {:>12.0} {:>12.0}",
            text(f, "kind"),
            text(f, "state"),
            number(sample, "load") * 100.0,
            number(sample, "interests"),
            number(sample, "data")
        );
    }
    out.push('\n');
    for link in view["links"].as_array().into_iter().flatten() {
        let arrow = if text(link, "side") == "producer" { "=>" } else { "->" };
        let ends = format!("{} {arrow} {}", text(link, "from"), text(link, "to"));
        let _ = writeln!(
            out,
            "{ends:<41} {:<8} {:>6} {:>12.0} {:>12.0}",
            text(link, "state"),
            text(link, "transport"),
            number(link, "interests"),
            number(link, "data")
        );
    }
    for (router, prefixes) in view["registered"].as_object().into_iter().flatten() {
        let names: Vec<&str> =
            prefixes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "\nregistered at {router}: {}", names.join(" "));
        }
    }
    out
}

pub(super) fn event(event: &Value) -> String {
    let at_ms = event["at_ms"].as_i64().unwrap_or(0);
    let at = jiff::Timestamp::from_millisecond(at_ms).map(|t| t.to_string()).unwrap_or_default();
    format!("{at} {:<14} {}", text(event, "kind"), text(event, "text"))
}

pub(super) fn edges(edges: &Value) -> String {
    let rows = edges.as_array().into_iter().flatten();
    rows.map(|e| format!("{} -> {}", text(e, "from"), text(e, "to"))).collect::<Vec<_>>().join("\n")
}
