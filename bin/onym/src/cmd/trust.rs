//! `onym trust`: schemas, and what they say about names and keys.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::schema;
use anyhow::Context as _;
use clap::Subcommand;
use onym_crypto::store::KeyStore;
use onym_guard::schema::{Names, Source};
use onym_trust::lvs::{Functions, Mode, Model, Schema, compile, lint};
use onym_trust::{Subject, Verdict};
use onym_wire::Name;
use onym_wire::data::Data;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Say which key may sign what, by a trust schema.
///
/// A schema is a file: LightVerSec as text, its compiled model, or validator configuration of ndn-cxx.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym trust compile site.lvs -o site.tlv          the model that python-ndn, ndnd and NDNts load
  onym trust check --schema site.lvs /a/x/1 /a/x/KEY/k/i/v=1
  onym trust check --schema site.lvs /a/x/1        every certificate of the key store
  onym trust explain --schema site.lvs /a/x/1
  onym trust explain --schema nfd.conf --section rib.localhop_security /localhop/nfd/rib/register/x
  onym trust lint site.lvs")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
struct Rules {
    /// File of the schema.
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// Where in a configuration the rules are, with dots, such as rib.localhop_security.
    #[arg(long, value_name = "PATH", default_value = "")]
    section: String,
    /// Match names of objects: segment, version and metadata components are removed first, as ndnd
    /// does.
    #[arg(long)]
    objects: bool,
    /// The packet is a signed Interest, not Data.
    #[arg(long)]
    interest: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile LightVerSec text to its binary model.
    #[command(after_help = "Example:\n  onym trust compile site.lvs -o site.tlv")]
    Compile {
        /// File of the text.
        file: PathBuf,
        /// File to write; without it nothing is written, the text is only checked.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Compile exactly as python-ndn does, even where it loses a constraint.
        #[arg(long)]
        exact: bool,
    },
    /// Say whether a key may sign a packet, and for each key that may not the first rule that fails.
    #[command(after_help = "Examples:
  onym trust check --schema site.lvs /a/x/1 /a/x/KEY/k/i/v=1
  onym trust check --schema site.lvs packet.data /a/x/KEY/k/i/v=1
  onym trust check --schema site.lvs /a/x/1 --json

Ends with 0 when a key may sign it, with 4 when none may.")]
    Check {
        #[command(flatten)]
        rules: Rules,
        /// Name of the packet, or the file of a Data.
        data: String,
        /// Names of certificates; without any, all those of the key store.
        keys: Vec<Name>,
    },
    /// Say which rules a name follows, and which keys may sign it.
    #[command(after_help = "Example:\n  onym trust explain --schema site.lvs /a/x/1")]
    Explain {
        #[command(flatten)]
        rules: Rules,
        /// Name of the packet; without it all rules of a LightVerSec schema.
        name: Option<Name>,
    },
    /// Report what is legal in a schema but probably unintended, or read differently by others.
    #[command(
        after_help = "Example:\n  onym trust lint site.lvs\n\nEnds with 1 when there is something to tell."
    )]
    Lint {
        /// File of the schema.
        file: PathBuf,
        /// Where in a configuration the rules are, with dots.
        #[arg(long, value_name = "PATH", default_value = "")]
        section: String,
    },
}

/// What was compiled, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Compiled {
    octets: usize,
    nodes: usize,
    roots: Vec<String>,
    functions: Vec<String>,
    output: Option<String>,
}

/// What a schema says about one key, as `--json` prints it.
#[derive(Debug, Serialize)]
struct KeyRow {
    key: String,
    allowed: bool,
    /// The rule that the packet follows, or the one that fails first.
    rule: Option<String>,
    why: Option<String>,
}

/// A finding, as `--json` prints it.
#[derive(Debug, Serialize)]
struct FindingRow {
    line: usize,
    text: String,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Compile { file, output, exact } => compiled(cx, &file, output.as_deref(), exact),
        Command::Check { rules, data, keys } => check(cx, &rules, &data, keys),
        Command::Explain { rules, name } => explain(cx, &rules, name.as_ref()),
        Command::Lint { file, section } => findings(cx, &file, &section),
    }
}

fn wrong(file: &Path, why: impl std::fmt::Display) -> anyhow::Error {
    Failure::new(Exit::Failed, format!("{} does not compile", file.display())).why(why).into()
}

fn compiled(cx: &Context, file: &Path, output: Option<&Path>, exact: bool) -> anyhow::Result<()> {
    let model = match schema::read(file)? {
        Source::Text(text) => {
            let mode = if exact { Mode::Exact } else { Mode::Strict };
            compile(&text, mode).map_err(|e| wrong(file, e))?
        }
        Source::Model(octets) => Model::decode(&octets).map_err(|e| wrong(file, e))?,
        Source::Configuration(_) => {
            let why = "validator configuration has no compiled form; `onym trust lint` checks it";
            return Err(wrong(file, why));
        }
    };
    let octets = model.encode();
    if let Some(path) = output {
        fs::write(path, &octets).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = Compiled {
        octets: octets.len(),
        nodes: model.node_count(),
        roots: model.roots().into_iter().map(str::to_owned).collect(),
        functions: model.functions().into_iter().map(str::to_owned).collect(),
        output: output.map(|path| path.display().to_string()),
    };
    cx.print(&report, |r| {
        let roots = if r.roots.is_empty() { "none".to_owned() } else { r.roots.join(", ") };
        let mut text = format!("{} octets, {} nodes, roots of trust: {roots}", r.octets, r.nodes);
        if !r.functions.is_empty() {
            text.push_str(&format!(", functions: {}", r.functions.join(", ")));
        }
        text
    })
}

/// The name of a packet: as it was typed, or that of the Data in a file.
fn packet_name(what: &str) -> anyhow::Result<Name> {
    let path = Path::new(what);
    if what.starts_with('/') && !path.is_file() {
        let wrong = |e| Failure::new(Exit::Usage, format!("{what} is not a name")).why(e);
        return Ok(what.parse().map_err(wrong)?);
    }
    let octets = fs::read(path).map_err(|e| {
        Failure::new(Exit::Usage, format!("{what} is neither a name nor a file")).why(e)
    })?;
    let data = Data::parse(&octets).map_err(|e| {
        Failure::new(Exit::Failed, format!("{what} contains no Data packet")).why(e)
    })?;
    Ok(data.name.to_name())
}

fn subject<'a>(rules: &Rules, name: &'a Name) -> Subject<'a> {
    if rules.interest { Subject::interest(name.as_ref()) } else { Subject::data(name.as_ref()) }
}

fn check(cx: &Context, rules: &Rules, data: &str, keys: Vec<Name>) -> anyhow::Result<()> {
    let loaded = schema::load(&rules.schema, &rules.section, rules.objects.into())?;
    let name = packet_name(data)?;
    let keys = if keys.is_empty() { own_keys()? } else { keys };
    let rows: Vec<KeyRow> = keys
        .iter()
        .map(|key| match loaded.policy.check(&subject(rules, &name), key.as_ref()) {
            Verdict::Allowed { rule } => {
                KeyRow { key: key.to_string(), allowed: true, rule: Some(rule), why: None }
            }
            Verdict::Denied(denial) => KeyRow {
                key: key.to_string(),
                allowed: false,
                rule: denial.rule,
                why: Some(denial.text),
            },
        })
        .collect();
    cx.print(&rows, |rows| rows.iter().map(row).collect::<Vec<_>>().join("\n"))?;
    if rows.iter().any(|row| row.allowed) {
        return Ok(());
    }
    let shown = rules.schema.display();
    Err(Failure::new(Exit::Refused, format!("no key of {} may sign {name}", rows.len()))
        .next(format!("`onym trust explain --schema {shown} {name}` says which may"))
        .into())
}

fn own_keys() -> anyhow::Result<Vec<Name>> {
    let store = KeyStore::of_user().context("cannot open the key store")?;
    let certificates = store.certificates().context("cannot read the key store")?;
    if certificates.is_empty() {
        return Err(Failure::new(Exit::NotFound, "the key store has no certificate")
            .next("name the certificate, or make one: onym key new IDENTITY")
            .into());
    }
    Ok(certificates.iter().map(|certificate| certificate.name().to_name()).collect())
}

fn row(row: &KeyRow) -> String {
    let rule = row.rule.as_deref().unwrap_or("no rule");
    match &row.why {
        None => format!("yes  {}  by {rule}", row.key),
        Some(why) => format!("no   {}\n     {rule}: {why}", row.key),
    }
}

fn explain(cx: &Context, rules: &Rules, name: Option<&Name>) -> anyhow::Result<()> {
    let lines = match name {
        Some(name) => {
            let loaded = schema::load(&rules.schema, &rules.section, rules.objects.into())?;
            loaded.policy.explain(&subject(rules, name))
        }
        None => all_rules(&rules.schema)?,
    };
    cx.print(&lines, |lines| lines.join("\n"))
}

fn all_rules(file: &Path) -> anyhow::Result<Vec<String>> {
    let model = match schema::read(file)? {
        Source::Text(text) => compile(&text, Mode::Strict).map_err(|e| wrong(file, e))?,
        Source::Model(octets) => Model::decode(&octets).map_err(|e| wrong(file, e))?,
        Source::Configuration(_) => {
            return Err(Failure::new(
                Exit::Usage,
                "a validator configuration is explained for one packet name",
            )
            .next("add the name of a packet")
            .into());
        }
    };
    let schema = Schema::new(model, Functions::default()).map_err(|e| wrong(file, e))?;
    Ok(schema.rules())
}

fn findings(cx: &Context, file: &Path, section: &str) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    match schema::read(file)? {
        Source::Text(text) => {
            let found = lint(&text).map_err(|e| wrong(file, e))?;
            rows.extend(found.into_iter().map(|f| FindingRow { line: f.line, text: f.text }));
        }
        // What a model or configuration breaks is told when it is loaded.
        Source::Model(_) | Source::Configuration(_) => {
            let loaded = schema::load(file, section, Names::Packets)?;
            if loaded.policy.allows_anything() {
                let text = "a trust anchor of type `any` disables all rules".to_owned();
                rows.push(FindingRow { line: 0, text });
            }
        }
    }
    cx.print(&rows, |rows| {
        let line = |row: &FindingRow| match row.line {
            0 => row.text.clone(),
            line => format!("line {line}: {}", row.text),
        };
        if rows.is_empty() {
            "nothing to tell".into()
        } else {
            rows.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    })?;
    match rows.len() {
        0 => Ok(()),
        n => Err(Failure::new(Exit::Failed, format!("{n} findings")).into()),
    }
}
