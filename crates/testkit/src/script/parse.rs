//! Lines to a [`Script`].

use super::fields::{self, Field, Keys, Value};
use super::options::{cs, face, ms};
use super::packets::{self, Role, Wrong, wrong};
use super::{PacketKind, Script, Step, StepKind};
use crate::wire::name;
use std::path::{Path, PathBuf};

/// Why a script cannot be used: where, what, and what would be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}; allowed: {allowed}", path.display())]
pub struct ScriptError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What may stand there.
    pub allowed: String,
}

const TAGS: &[&str] = &["any-forwarder", "virtual", "onym", "slow"];
const NEEDS: &[&str] = &[
    "mgmt",
    "multishard",
    "one-shard",
    "multi-access",
    "ad-hoc",
    "ethernet",
    "tokens",
    "nacks",
    "counters",
    "stream",
    "frames",
    "core",
    "ws",
    "sockets",
    "local-fields",
];
const STATEMENTS: &str = "face region config route unroute strategy cs let wait close drain expect has lacks rows, or FACE> FACE< FACE?";
const NOTHING_MS: u64 = 20;
const REPEAT_MAX: u64 = 100_000;

/// Reads and parses a file.
///
/// # Errors
/// The file cannot be read, or a line is wrong.
pub fn parse_file(path: &Path) -> Result<Script, ScriptError> {
    let text = std::fs::read_to_string(path).map_err(|e| ScriptError {
        path: path.into(),
        line: 0,
        what: format!("cannot be read: {e}"),
        allowed: "a readable ASCII file".into(),
    })?;
    parse(path, &text)
}

/// Parses the text of a script; `path` is for messages and gives the name.
///
/// # Errors
/// A line is wrong.
pub fn parse(path: &Path, text: &str) -> Result<Script, ScriptError> {
    let mut parser = Parser::new(path);
    for (i, line) in text.lines().enumerate() {
        parser.line(i + 1, line).map_err(|(what, allowed)| ScriptError {
            path: path.into(),
            line: i + 1,
            what,
            allowed,
        })?;
    }
    parser.finish().map_err(|(what, allowed)| ScriptError {
        path: path.into(),
        line: 1,
        what,
        allowed,
    })
}

struct Parser {
    script: Script,
    /// The last query, for `has` and its like.
    asked: bool,
}

impl Parser {
    fn new(path: &Path) -> Self {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let script = Script {
            path: path.into(),
            name,
            law: String::new(),
            sections: Vec::new(),
            tags: Vec::new(),
            needs: Vec::new(),
            faces: Vec::new(),
            regions: Vec::new(),
            config: Vec::new(),
            steps: Vec::new(),
        };
        Self { script, asked: false }
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), Wrong> {
        if !line.is_ascii() {
            return Err(wrong("a character outside ASCII", "ASCII; %XX in names"));
        }
        if self.header(line)? {
            return Ok(());
        }
        let words: Vec<&str> =
            line.split_ascii_whitespace().take_while(|w| !w.starts_with('#')).collect();
        if words.is_empty() {
            return Ok(());
        }
        if self.script.law.is_empty() || self.script.sections.is_empty() {
            return Err(wrong("the header is missing", "law: and section: come first"));
        }
        for text in repeat(&words.join(" "))? {
            let words: Vec<&str> = text.split(' ').collect();
            if self.setup(&words)? {
                continue;
            }
            let kind = self.step(&words)?;
            self.script.steps.push(Step { line: number, text: text.clone(), kind });
        }
        Ok(())
    }

    fn header(&mut self, line: &str) -> Result<bool, Wrong> {
        if let Some(law) = line.strip_prefix("law:") {
            self.script.law = law.trim().into();
        } else if let Some(numbers) = line.strip_prefix("section:") {
            self.script.sections =
                numbers.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        } else if let Some(tags) = line.strip_prefix("tags:") {
            for tag in tags.split_ascii_whitespace() {
                match tag.strip_prefix("needs=") {
                    Some(needs) => {
                        for need in needs.split(',') {
                            known(need, NEEDS, "need")?;
                            self.script.needs.push(need.into());
                        }
                    }
                    None => {
                        known(tag, TAGS, "tag")?;
                        self.script.tags.push(tag.into());
                    }
                }
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn setup(&mut self, words: &[&str]) -> Result<bool, Wrong> {
        match words[0] {
            "face" => self.faces(&words[1..])?,
            "region" => {
                let text = words.get(1).copied().unwrap_or("");
                self.script.regions.push(a_name(text)?);
            }
            "config" => {
                let [_, key, value] = words else {
                    return Err(wrong(
                        "config wants a key and a value",
                        "config cs.unsolicited admit-all",
                    ));
                };
                self.script.config.push(((*key).into(), (*value).into()));
            }
            _ => return Ok(false),
        }
        let begun = |s: &Step| {
            let table = matches!(
                s.kind,
                StepKind::Route { .. }
                    | StepKind::Strategy { .. }
                    | StepKind::Cs(_)
                    | StepKind::Let { .. }
            );
            !table
        };
        if self.script.steps.iter().any(begun) {
            return Err(wrong(
                format!("{} after the first step", words[0]),
                "setup lines come first",
            ));
        }
        Ok(true)
    }

    fn faces(&mut self, words: &[&str]) -> Result<(), Wrong> {
        let names: Vec<&&str> = words.iter().take_while(|w| !w.contains('=')).collect();
        if names.is_empty() {
            return Err(wrong("face wants a name", "face a b scope=local"));
        }
        for name in &names {
            if !name.chars().all(|c| c.is_ascii_alphanumeric())
                || !name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                return Err(wrong(
                    format!("{name:?} is no face name"),
                    "a letter, then letters and digits",
                ));
            }
            if self.script.face(name).is_some() {
                return Err(wrong(format!("face {name} twice"), "each face once"));
            }
            self.script.faces.push(face(name, &words[names.len()..])?);
        }
        Ok(())
    }

    fn step(&mut self, words: &[&str]) -> Result<StepKind, Wrong> {
        let (head, rest) = (words[0], &words[1..]);
        if let Some(face) = head.strip_suffix('>').filter(|h| *h != "-") {
            let packet = packets::packet(rest, Role::Build)?;
            return Ok(StepKind::Send { face: self.face(face)?, packet });
        }
        if let Some(face) = head.strip_suffix('<') {
            let face = self.face(face)?;
            return self.receive(face, rest);
        }
        if let Some(face) = head.strip_suffix('?') {
            let face = self.face(face)?;
            let dataset = rest.first().filter(|d| d.contains('/'));
            let dataset = dataset.ok_or_else(|| {
                wrong("a dataset is missing", "fib/list, rib/list, faces/query, …")
            })?;
            self.asked = true;
            return Ok(StepKind::Query {
                face,
                dataset: (*dataset).into(),
                filter: list(&rest[1..], &[fields::ROW])?,
            });
        }
        self.statement(head, rest)
    }

    fn statement(&mut self, head: &str, rest: &[&str]) -> Result<StepKind, Wrong> {
        Ok(match head {
            "has" | "lacks" | "rows" if !self.asked => {
                return Err(wrong(format!("{head} before a query"), "FACE? dataset"));
            }
            "has" => StepKind::Has(list(rest, &[fields::ROW])?),
            "lacks" => StepKind::Lacks(list(rest, &[fields::ROW])?),
            "rows" => StepKind::Rows(amount(rest.first().copied().unwrap_or(""))?),
            "let" => match rest {
                [label, "=", packet @ ..] => {
                    let packet = packets::packet(packet, Role::Build)?;
                    if !matches!(
                        packet.kind,
                        PacketKind::Interest(_) | PacketKind::Data(_) | PacketKind::Raw(_)
                    ) {
                        return Err(wrong(
                            "let keeps a network-layer packet",
                            "interest, data or raw",
                        ));
                    }
                    StepKind::Let { label: (*label).into(), packet }
                }
                _ => return Err(wrong("let wants a label and a packet", "let D = data /x")),
            },
            "wait" => StepKind::Wait(ms(rest.first().copied().unwrap_or(""))?),
            "close" => StepKind::Close(self.face(rest.first().copied().unwrap_or(""))?),
            "drain" => StepKind::Drain(self.face(rest.first().copied().unwrap_or(""))?),
            "expect" => StepKind::Expect(counters(rest)?),
            "route" | "unroute" => self.route(head, rest)?,
            "strategy" => match rest {
                [prefix, strategy] => {
                    StepKind::Strategy { prefix: a_name(prefix)?, strategy: (*strategy).into() }
                }
                _ => {
                    return Err(wrong(
                        "strategy wants a prefix and a name",
                        "strategy /x multicast",
                    ));
                }
            },
            "cs" => StepKind::Cs(cs(rest)?),
            other => return Err(wrong(format!("unknown statement {other:?}"), STATEMENTS)),
        })
    }

    fn receive(&self, face: usize, words: &[&str]) -> Result<StepKind, Wrong> {
        match words {
            ["nothing"] => return Ok(StepKind::Nothing { face, for_ms: NOTHING_MS }),
            ["nothing", time] if time.starts_with("for=") => {
                return Ok(StepKind::Nothing { face, for_ms: ms(&time[4..])? });
            }
            ["nothing", ..] => {
                return Err(wrong("a word after nothing", "nothing, nothing for=MS"));
            }
            ["closed"] => return Ok(StepKind::Closed { face }),
            _ => {}
        }
        let (words, within) = match words.split_last() {
            Some((last, rest)) if last.starts_with("within=") => (rest, Some(ms(&last[7..])?)),
            _ => (words, None),
        };
        if within.is_some() && !self.script.has_tag("virtual") {
            return Err(wrong("within= in a script for real time", "only with the tag virtual"));
        }
        Ok(StepKind::Receive { face, packet: packets::packet(words, Role::Pattern)?, within })
    }

    fn route(&self, head: &str, rest: &[&str]) -> Result<StepKind, Wrong> {
        let (prefix, face, cost) = match rest {
            [p, "->", f] => (p, f, 0),
            [p, "->", f, c] if head == "route" && c.starts_with("cost=") => (p, f, ms(&c[5..])?),
            _ => {
                return Err(wrong(
                    format!("{head}: bad form"),
                    "route /x -> b cost=5, unroute /x -> b",
                ));
            }
        };
        let (prefix, face) = (a_name(prefix)?, self.face(face)?);
        Ok(match head {
            "route" => StepKind::Route { prefix, face, cost },
            _ => StepKind::Unroute { prefix, face },
        })
    }

    fn face(&self, name: &str) -> Result<usize, Wrong> {
        self.script.face(name).ok_or_else(|| {
            let all: Vec<&str> = self.script.faces.iter().map(|f| f.name.as_str()).collect();
            wrong(format!("unknown face {name:?}"), all.join(" "))
        })
    }

    fn finish(self) -> Result<Script, Wrong> {
        if self.script.law.is_empty() || self.script.sections.is_empty() {
            return Err(wrong("the header is missing", "law: and section: come first"));
        }
        if self.script.steps.is_empty() {
            return Err(wrong("the script does nothing", "at least one step"));
        }
        Ok(self.script)
    }
}

fn known(word: &str, all: &[&str], what: &str) -> Result<(), Wrong> {
    if all.contains(&word) {
        Ok(())
    } else {
        Err(wrong(format!("unknown {what} {word:?}"), all.join(" ")))
    }
}

fn a_name(text: &str) -> Result<Vec<name::Part>, Wrong> {
    name::parse(text).map_err(|e| wrong(e, "an NDN URI such as /a/b"))
}

fn amount(text: &str) -> Result<Value, Wrong> {
    fields::number(text).ok_or_else(|| wrong(format!("{text:?} is no number"), "N, M..N, M.., ..N"))
}

fn list(words: &[&str], tables: &[Keys]) -> Result<Vec<Field>, Wrong> {
    words.iter().map(|w| fields::parse(w, tables)).collect()
}

fn counters(words: &[&str]) -> Result<Vec<(String, Value)>, Wrong> {
    if words.is_empty() {
        return Err(wrong("expect wants a counter", "expect forwarded=1"));
    }
    let one = |w: &&str| {
        let (k, v) =
            w.split_once('=').ok_or_else(|| wrong(format!("{w:?}: no value"), "counter=N"))?;
        Ok((k.to_owned(), amount(v)?))
    };
    words.iter().map(one).collect()
}

/// Writes a line with `{M..N}` once for each number; in values of the configuration `{` is theirs.
pub(crate) fn repeat(line: &str) -> Result<Vec<String>, Wrong> {
    let split = line.split_once('{').filter(|_| !line.starts_with("config "));
    let Some((before, rest)) = split else {
        return Ok(vec![line.into()]);
    };
    let bad = || wrong("a repetition that is no {M..N}", "{1..10}");
    let (inner, _) = rest.split_once('}').ok_or_else(bad)?;
    let (lo, hi) = inner.split_once("..").ok_or_else(bad)?;
    let (lo, hi): (u64, u64) = (lo.parse().map_err(|_| bad())?, hi.parse().map_err(|_| bad())?);
    if lo > hi || hi - lo >= REPEAT_MAX || before.contains('}') {
        return Err(bad());
    }
    let mark = format!("{{{inner}}}");
    Ok((lo..=hi).map(|n| line.replace(&mark, &n.to_string())).collect())
}
