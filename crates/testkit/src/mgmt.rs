//! Management in scripts: command Interests, ControlResponses, datasets as rows.

use crate::env::Env;
use crate::expect::Found;
use crate::script::{Field, Value};
use crate::wire::name::{self, Component};
use crate::wire::tlv::{children, nni, read_nni, sha256, split, tlv};
use crate::wire::types as t;
use crate::wire::view::Data;
use std::collections::BTreeMap;

/// Fields by their names in scripts.
pub type Row = BTreeMap<&'static str, Found>;

/// How the value of a management field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    Text,
    Name,
    /// A name inside another element.
    Nested,
}

use Form::{Name, Nested, Number, Text};

/// ControlParameters in their canonical order.
const CONTROL: &[(&str, u64, Form)] = &[
    ("name", 7, Name),
    ("face", 105, Number),
    ("uri", 114, Text),
    ("local-uri", 129, Text),
    ("origin", 111, Number),
    ("cost", 106, Number),
    ("capacity", 131, Number),
    ("count", 132, Number),
    ("flags", 108, Number),
    ("mask", 112, Number),
    ("strategy", 107, Nested),
    ("expires", 109, Number),
    ("persistency", 133, Number),
    ("marking-interval", 135, Number),
    ("marking-threshold", 136, Number),
    ("mtu", 137, Number),
];

const FACE: &[(&str, u64, Form)] = &[
    ("face", 105, Number),
    ("uri", 114, Text),
    ("local-uri", 129, Text),
    ("expires", 109, Number),
    ("scope", 132, Number),
    ("persistency", 133, Number),
    ("link", 134, Number),
    ("marking-interval", 135, Number),
    ("marking-threshold", 136, Number),
    ("mtu", 137, Number),
    ("in-interests", 144, Number),
    ("in-data", 145, Number),
    ("in-nacks", 151, Number),
    ("out-interests", 146, Number),
    ("out-data", 147, Number),
    ("out-nacks", 152, Number),
    ("in-bytes", 148, Number),
    ("out-bytes", 149, Number),
    ("flags", 108, Number),
];

const GENERAL: &[(&str, u64, Form)] = &[
    ("version", 128, Text),
    ("fib-entries", 132, Number),
    ("pit-entries", 133, Number),
    ("cs-entries", 135, Number),
    ("in-interests", 144, Number),
    ("in-data", 145, Number),
    ("in-nacks", 151, Number),
    ("out-interests", 146, Number),
    ("out-data", 147, Number),
    ("out-nacks", 152, Number),
    ("satisfied", 153, Number),
    ("unsatisfied", 154, Number),
];

const CS_INFO: &[(&str, u64, Form)] = &[
    ("capacity", 131, Number),
    ("flags", 108, Number),
    ("entries", 135, Number),
    ("hits", 129, Number),
    ("misses", 130, Number),
];

const EVENT: &[(&str, u64, Form)] = &[
    ("face", 105, Number),
    ("uri", 114, Text),
    ("local-uri", 129, Text),
    ("scope", 132, Number),
    ("persistency", 133, Number),
    ("link", 134, Number),
    ("flags", 108, Number),
];

const FILTER: &[(&str, u64, Form)] = &[
    ("face", 105, Number),
    ("uri-scheme", 131, Text),
    ("uri", 114, Text),
    ("local-uri", 129, Text),
    ("scope", 132, Number),
    ("persistency", 133, Number),
    ("link", 134, Number),
];

fn read_fields(value: &[u8], table: &[(&'static str, u64, Form)]) -> Option<Row> {
    let mut row = Row::new();
    for (typ, v) in children(value)? {
        let Some((key, _, form)) = table.iter().find(|(_, t, _)| *t == typ) else { continue };
        let found = match form {
            Number => Found::Number(read_nni(v)?),
            Text => Found::Text(String::from_utf8(v.to_vec()).ok()?),
            Name => Found::Name(name::decode(v)?),
            Nested => {
                let (t::NAME, inner, _) = split(v)? else { return None };
                Found::Name(name::decode(inner)?)
            }
        };
        row.insert(key, found);
    }
    Some(row)
}

fn write_fields(
    env: &Env,
    fields: &[Field],
    table: &[(&'static str, u64, Form)],
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (key, typ, form) in table {
        let Some(field) = fields.iter().find(|f| f.key == *key) else { continue };
        if field.value == Value::Absent {
            continue;
        }
        let value = match (form, &field.value) {
            (Number, v) => nni(env.number(v)?.unwrap_or(0)),
            (Text, Value::Text(text)) => text.clone().into_bytes(),
            (Text, Value::Capture(label)) => env.text(label)?.into_bytes(),
            (Name, Value::Name(parts)) => name::encode(&env.name(parts)?),
            (Nested, Value::Name(parts)) => tlv(t::NAME, &name::encode(&env.name(parts)?)),
            (_, v) => return Err(format!("{key}: {v:?} cannot be sent")),
        };
        out.extend(tlv(*typ, &value));
    }
    Ok(out)
}

/// A command Interest, bare, and its name.
#[derive(Debug)]
pub struct Command {
    /// The Interest.
    pub interest: Vec<u8>,
    /// Its name, which the answer has too.
    pub name: Vec<Component>,
}

fn generic(text: &[u8]) -> Component {
    (t::GENERIC, text.to_vec())
}

/// Builds a command; `now_ms` is Unix time.
///
/// # Errors
/// A value that cannot be sent.
pub fn command(
    env: &mut Env,
    verb: &str,
    fields: &[Field],
    now_ms: u64,
) -> Result<Command, String> {
    let get = |key: &str| fields.iter().find(|f| f.key == key).map(|f| &f.value);
    let mut name = match get("at") {
        Some(Value::Name(parts)) => env.name(parts)?,
        _ => vec![generic(b"localhost"), generic(b"nfd")],
    };
    name.extend(verb.split('/').map(|c| generic(c.as_bytes())));
    let announcement = get("announce").map(|v| env.bytes(v)).transpose()?.flatten();
    if announcement.is_none() {
        let body = match get("body") {
            Some(v) => env.bytes(v)?.unwrap_or_default(),
            None => tlv(t::CONTROL_PARAMETERS, &write_fields(env, fields, CONTROL)?),
        };
        name.push(generic(&body));
    }
    let time = match get("time") {
        Some(Value::Offset(ms)) => now_ms.saturating_add_signed(*ms),
        _ => now_ms,
    };
    let nonce = env.next_nonce();
    let sig_nonce = [nonce, env.next_nonce()].concat();
    let format = match get("format") {
        Some(Value::Text(word)) => word.as_str(),
        _ => "v03",
    };
    let tail = match format {
        "v03" | "broken" => {
            sign_v03(&mut name, announcement.as_deref(), &sig_nonce, time, format == "broken")
        }
        "v02" => {
            sign_v02(&mut name, &sig_nonce, time);
            Vec::new()
        }
        "unsigned" => Vec::new(),
        other => return Err(format!("format={other}: v03, v02, broken or unsigned")),
    };
    let mut out = tlv(t::NAME, &name::encode(&name));
    let nonce = get("nonce")
        .map(|v| env.bytes(v))
        .transpose()?
        .flatten()
        .unwrap_or_else(|| env.next_nonce().to_vec());
    out.extend(tlv(t::NONCE, &nonce));
    if let Some(ms) = get("lifetime").map(|v| env.number(v)).transpose()?.flatten() {
        out.extend(tlv(t::LIFETIME, &nni(ms)));
    }
    out.extend(tail);
    Ok(Command { interest: tlv(t::INTEREST, &out), name })
}

fn sign_v03(
    name: &mut Vec<Component>,
    params: Option<&[u8]>,
    nonce: &[u8],
    time: u64,
    broken: bool,
) -> Vec<u8> {
    let mut tail = tlv(t::PARAMS, params.unwrap_or_default());
    let info =
        [tlv(t::SIG_TYPE, &[0]), tlv(t::SIG_NONCE, nonce), tlv(t::SIG_TIME, &time.to_be_bytes())]
            .concat();
    tail.extend(tlv(t::INTEREST_SIG_INFO, &info));
    let mut value = sha256(&[&name::encode(name), &tail]);
    if broken {
        value[0] ^= 1;
    }
    tail.extend(tlv(t::INTEREST_SIG_VALUE, &value));
    name.push((t::PARAMS_DIGEST, sha256(&[&tail]).to_vec()));
    tail
}

fn sign_v02(name: &mut Vec<Component>, nonce: &[u8], time: u64) {
    name.push(generic(&time.to_be_bytes()));
    name.push(generic(nonce));
    name.push(generic(&tlv(t::SIG_INFO, &tlv(t::SIG_TYPE, &[0]))));
    let value = sha256(&[&name::encode(name)]);
    name.push(generic(&tlv(t::SIG_VALUE, &value)));
}

/// Reads a ControlResponse out of Data: `code`, `text` and the fields of its body.
#[must_use]
pub fn response(data: &Data) -> Option<(u64, String, Row)> {
    let (t::CONTROL_RESPONSE, value, []) = split(data.content.as_deref()?)? else { return None };
    let (t::STATUS_CODE, code, rest) = split(value)? else { return None };
    let (t::STATUS_TEXT, text, rest) = split(rest)? else { return None };
    let body = match split(rest) {
        Some((t::CONTROL_PARAMETERS, body, _)) => read_fields(body, CONTROL)?,
        _ => Row::new(),
    };
    Some((read_nni(code)?, String::from_utf8_lossy(text).into_owned(), body))
}

/// Reads a face event: its kind and fields.
#[must_use]
pub fn event(data: &Data) -> Option<(&'static str, Row)> {
    let (192, value, []) = split(data.content.as_deref()?)? else { return None };
    let (193, kind, rest) = split(value)? else { return None };
    let word = match read_nni(kind)? {
        1 => "created",
        2 => "destroyed",
        3 => "up",
        4 => "down",
        _ => return None,
    };
    Some((word, read_fields(rest, EVENT)?))
}

/// The name of a dataset, with its filter.
///
/// # Errors
/// A filter value that cannot be sent.
pub fn dataset_name(env: &Env, dataset: &str, filter: &[Field]) -> Result<Vec<Component>, String> {
    let mut name = vec![generic(b"localhost"), generic(b"nfd")];
    name.extend(dataset.split('/').map(|c| generic(c.as_bytes())));
    if dataset == "faces/query" {
        name.push(generic(&tlv(150, &write_fields(env, filter, FILTER)?)));
    }
    Ok(name)
}

/// The rows of a dataset.
#[must_use]
pub fn rows(dataset: &str, content: &[u8]) -> Option<Vec<Row>> {
    match dataset {
        "status/general" => Some(vec![read_fields(content, GENERAL)?]),
        "cs/info" => list(content, 128, |v| Some(vec![read_fields(v, CS_INFO)?])),
        "faces/list" | "faces/query" => list(content, 128, |v| Some(vec![read_fields(v, FACE)?])),
        "faces/channels" => {
            list(content, 130, |v| Some(vec![read_fields(v, &[("local-uri", 129, Text)])?]))
        }
        "fib/list" => {
            list(content, 128, |v| nested(v, 129, &[("face", 105, Number), ("cost", 106, Number)]))
        }
        "rib/list" => list(content, 128, |v| nested(v, 129, CONTROL)),
        "strategy-choice/list" => list(content, 128, |v| Some(vec![read_fields(v, CONTROL)?])),
        _ => None,
    }
}

fn list(content: &[u8], typ: u64, read: impl Fn(&[u8]) -> Option<Vec<Row>>) -> Option<Vec<Row>> {
    let mut out = Vec::new();
    for (t, v) in children(content)? {
        if t == typ {
            out.extend(read(v)?);
        }
    }
    Some(out)
}

/// A name and records: one row for each record, or one for the name alone.
fn nested(value: &[u8], typ: u64, table: &[(&'static str, u64, Form)]) -> Option<Vec<Row>> {
    let head = read_fields(value, &[("name", 7, Name)])?;
    let mut out = Vec::new();
    for (t, v) in children(value)? {
        if t == typ {
            let mut row = read_fields(v, table)?;
            row.extend(head.clone());
            out.push(row);
        }
    }
    if out.is_empty() {
        out.push(head);
    }
    Some(out)
}
