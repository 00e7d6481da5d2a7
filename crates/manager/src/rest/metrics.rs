//! `/metrics` of the manager; those of the services are at the services.

use crate::engine::View;
use crate::store::Saved;
use std::fmt::Write as _;

/// Prometheus text. Labels are names of functions: the network's own, bounded.
pub(super) fn text(view: &View, saved: &Saved) -> String {
    let mut out = String::new();
    let head = |out: &mut String, name: &str, about: &str| {
        let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} gauge");
    };
    head(&mut out, "onym_manager_settled", "1 while what runs is what must run.");
    let _ = writeln!(out, "onym_manager_settled {}", u8::from(view.settled));
    head(&mut out, "onym_manager_function_up", "1 while a function runs and answers.");
    for (name, function) in &view.functions {
        let up = u8::from(function.state == "up");
        let kind = function.kind.word();
        let _ =
            writeln!(out, "onym_manager_function_up{{function=\"{name}\",kind=\"{kind}\"}} {up}");
    }
    head(&mut out, "onym_manager_function_cores", "Processor time of a function, in cores.");
    for (name, function) in &view.functions {
        let _ = writeln!(
            out,
            "onym_manager_function_cores{{function=\"{name}\"}} {:.4}",
            function.sample.cores
        );
    }
    head(&mut out, "onym_manager_links", "Links by state.");
    let mut states = std::collections::BTreeMap::new();
    for link in &view.links {
        *states.entry(link.state.as_str()).or_insert(0u32) += 1;
    }
    for (state, count) in states {
        let _ = writeln!(out, "onym_manager_links{{state=\"{state}\"}} {count}");
    }
    head(&mut out, "onym_scale_instances", "Instances of a function.");
    for (name, count) in &saved.decisions.instances {
        let _ = writeln!(out, "onym_scale_instances{{function=\"{name}\"}} {count}");
    }
    head(&mut out, "onym_manager_verifiers", "Verifiers that the manager placed.");
    let _ = writeln!(out, "onym_manager_verifiers {}", saved.decisions.verifiers.len());
    head(&mut out, "onym_manager_starts_total", "Services started so far.");
    let _ = writeln!(out, "onym_manager_starts_total {}", saved.starts);
    out
}
