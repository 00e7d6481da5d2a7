//! The list of scripts by section, `spec/conformance/README.md`.

use crate::script::Script;
use std::fmt::Write as _;

const HEAD: &str = "# Conformance scripts

Written by `cargo run -p onym-testkit -- --index > spec/conformance/README.md`; do not edit.

The grammar is in [FORMAT.md](FORMAT.md), the sections in [sections.txt](sections.txt), known deviations of other forwarders in [deviations](deviations).

```
cargo test -p onym-testkit                                  # core, and a node with one and two shards
cargo test -p onym --test conformance                       # the daemon as a process
make conformance-foreign                                    # ndnd, when it is on PATH
cargo run -p onym-testkit -- --subject core [FILE…]
cargo run -p onym-testkit -- --subject node --shards 2 [FILE…]
cargo run -p onym-testkit -- --subject daemon [FILE…]
cargo run -p onym-testkit -- --subject unix:/run/nfd/nfd.sock [FILE…]
```

";

/// A section that scripts may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its number.
    pub number: String,
    /// Its title.
    pub title: String,
    /// Where the rules come from.
    pub source: String,
}

/// Reads `sections.txt`.
#[must_use]
pub fn sections(text: &str) -> Vec<Section> {
    let line = |line: &str| {
        let (head, source) = line.split_once('|')?;
        let (number, title) = head.trim().split_once(' ')?;
        Some(Section {
            number: number.into(),
            title: title.trim().into(),
            source: source.trim().into(),
        })
    };
    text.lines().filter(|l| !l.starts_with('#')).filter_map(line).collect()
}

/// The index of these scripts in Markdown.
#[must_use]
pub fn index(scripts: &[Script], sections: &[Section]) -> String {
    let mut out = HEAD.to_owned();
    let any = scripts.iter().filter(|s| s.has_tag("any-forwarder")).count();
    let _ = writeln!(out, "{} scripts, {any} of them hold for any forwarder.\n", scripts.len());
    out.push_str("| section | scripts |\n|---|---|\n");
    let of =
        |s: &Section| scripts.iter().filter(|x| x.sections.contains(&s.number)).collect::<Vec<_>>();
    for section in sections {
        let _ = writeln!(
            out,
            "| {} {} ({}) | {} |",
            section.number,
            section.title,
            section.source,
            of(section).len()
        );
    }
    for section in sections {
        let _ = write!(out, "\n## {} {}\n\n", section.number, section.title);
        for script in of(section) {
            let mut tags = script.tags.clone();
            tags.extend(script.needs.iter().map(|n| format!("needs {n}")));
            let tags =
                if tags.is_empty() { String::new() } else { format!(" ({})", tags.join(", ")) };
            let _ = writeln!(
                out,
                "- [{}](pull/{}.pkt): {}{tags}",
                script.name, script.name, script.law
            );
        }
    }
    out
}
