//! docs/config.md, written from the schema.

use super::Config;
use super::reload::Taken;
use schemars::Schema;
use serde_json::Value;
use std::fmt::Write as _;

const HEAD: &str = "# Configuration

Written by `cargo run -p onym-node --example config_reference > docs/config.md`; do not edit.

TOML; `onym daemon --config FILE`, and `--set key=value` over it.
Unknown keys are refused.
`onym daemon --print-config` shows the merged result, `onym check-config FILE` checks a file.
Files `FILE.d/*.toml` are read after FILE in the order of their names: their tables are merged into its, their values and lists take the place of its.
On SIGHUP the daemon reads its files again and says which changes took effect and which wait for a restart.
The column `reload`: `yes` takes effect at once, `new faces` for faces made afterwards, `restart` at the next start.
A configuration that is wrong is refused as a whole and the node goes on with the old one.

";

const TABLE: &str = "| key | default | reload | meaning |\n|---|---|---|---|\n";

/// The reference of all keys, in Markdown.
#[must_use]
pub fn reference() -> String {
    let schema: Schema = schemars::schema_for!(Config);
    let root = schema.to_value();
    let defaults = serde_json::to_value(Config::default()).unwrap_or(Value::Null);
    let mut out = HEAD.to_owned();
    let mut sections = Vec::new();
    out.push_str(TABLE);
    rows(&root, &root, "", &defaults, &mut out, &mut sections);
    let mut next = 0;
    while next < sections.len() {
        let section: Section<'_> = sections[next].clone();
        let title = if section.list { format!("[[{}]]", section.key) } else { section.key.clone() };
        let _ = write!(out, "\n## {title}\n\n{}\n\n", text(section.schema));
        out.push_str(TABLE);
        rows(&root, section.schema, &section.key, &section.defaults, &mut out, &mut sections);
        next += 1;
    }
    out
}

#[derive(Clone)]
struct Section<'a> {
    key: String,
    schema: &'a Value,
    defaults: Value,
    list: bool,
}

/// One row for each plain key of `schema`; tables and lists of tables become sections.
fn rows<'a>(
    root: &'a Value,
    schema: &'a Value,
    prefix: &str,
    defaults: &Value,
    out: &mut String,
    sections: &mut Vec<Section<'a>>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|l| l.iter().any(|v| v == name))
    };
    for (name, property) in properties {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let target = resolve(root, property);
        let default = defaults.get(name).or_else(|| property.get("default"));
        let items = target.get("items").map(|i| resolve(root, i));
        if let Some(items) = items.filter(|i| i.get("properties").is_some()) {
            let section = Section { key, schema: items, defaults: Value::Null, list: true };
            sections.push(section);
        } else if target.get("properties").is_some() {
            let defaults = default.cloned().unwrap_or(Value::Null);
            sections.push(Section { key, schema: target, defaults, list: false });
        } else {
            let shown = match default {
                _ if required(name) => "(needed)".to_owned(),
                Some(Value::Null) | None => "(none)".to_owned(),
                Some(value) => format!("`{}`", toml_text(value)),
            };
            let words = choices(root, target);
            let reload = Taken::of(&key).word();
            let _ = writeln!(out, "| `{key}` | {shown} | {reload} | {}{words} |", text(property));
        }
    }
}

fn toml_text(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// The schema that `property` refers to, if it is a reference.
fn resolve<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let alternatives = property.get("anyOf").or_else(|| property.get("allOf"));
    let first = alternatives.and_then(Value::as_array).and_then(|l| l.first());
    let holder = first.unwrap_or(property);
    let Some(path) = holder.get("$ref").and_then(Value::as_str) else { return holder };
    root.pointer(path.trim_start_matches('#')).unwrap_or(holder)
}

fn text(schema: &Value) -> String {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    description.replace('\n', " ").replace('|', "\\|")
}

/// The words that a key with a closed set of values takes.
fn choices(_root: &Value, target: &Value) -> String {
    let Some(list) = target.get("oneOf").and_then(Value::as_array) else { return String::new() };
    let words = list.iter().filter_map(|c| {
        let word = c.get("const").and_then(Value::as_str)?;
        Some(format!("`{word}`: {}", text(c)))
    });
    format!(" {}", words.collect::<Vec<_>>().join(" "))
}
