//! Management lines of a script.

use super::Run;
use crate::env::{Env, Kept};
use crate::expect::{self, Found, fits};
use crate::mgmt::{self, Row};
use crate::script::{Field, Packet, StepKind, Value};
use crate::wire::build::wrap;
use crate::wire::name::{self, Component};
use crate::wire::tlv::{nni, put, tlv};
use crate::wire::types as t;
use crate::wire::view::{Data, Seen};
use std::collections::BTreeMap;
use std::time::Duration;

const SEGMENTS_MAX: u64 = 10_000;
/// How long a version of a dataset may be served again, and a little more.
const FRESH_MS: u64 = 1_050;

/// A dataset that was asked for.
pub(super) struct Asked {
    face: usize,
    dataset: String,
    name: Vec<Component>,
    rows: Vec<Row>,
    /// The lines that judged it so far.
    judged: Vec<StepKind>,
    /// What was kept before it was judged.
    kept: BTreeMap<String, Kept>,
}

impl Run<'_> {
    pub(super) fn command(
        &mut self,
        face: usize,
        verb: &str,
        packet: &Packet,
    ) -> Result<Vec<u8>, String> {
        self.last_time = self.subject.now_ms().max(self.last_time + 1);
        let command = mgmt::command(&mut self.env, verb, &packet.fields, self.last_time)?;
        self.commands[face].push_back(command.name);
        let token = packet.fields.iter().find(|f| f.key == "token");
        match token.map(|f| self.env.bytes(&f.value)).transpose()?.flatten() {
            Some(token) => Ok(wrap(vec![(t::PIT_TOKEN, token)], Some(&command.interest))),
            None => Ok(command.interest),
        }
    }

    pub(super) fn response(
        &mut self,
        face: usize,
        code: &Value,
        pattern: &Packet,
        seen: &Seen,
    ) -> Result<(), String> {
        let name = self.commands[face]
            .front()
            .ok_or("no command of this face waits for an answer")?
            .clone();
        let data = seen.data().ok_or("it is no Data")?;
        if data.name != name {
            return Err(format!("the answer to {} was due", name::uri(&name)));
        }
        self.commands[face].pop_front();
        let (seen_code, text, body) =
            mgmt::response(&data).ok_or("its content is no ControlResponse")?;
        if !fits(&mut self.env, code, &Found::Number(seen_code)) {
            return Err(format!("the code is {seen_code} ({text})"));
        }
        let token = seen.lp.token.clone().map_or(Found::Absent, Found::Bytes);
        let look = |key: &str| match key {
            // The words of a sentence are nobody's law.
            "text" => Some(if text.is_empty() { Found::Absent } else { Found::Flag }),
            "token" => Some(token.clone()),
            _ => Some(body.get(key).cloned().unwrap_or(Found::Absent)),
        };
        expect::fields(&mut self.env, &pattern.fields, look)
            .map_err(|e| format!("code {seen_code} ({text}), {e}"))
    }

    pub(super) fn event(
        &mut self,
        word: &str,
        pattern: &Packet,
        seen: &Seen,
    ) -> Result<(), String> {
        let data = seen.data().ok_or("it is no Data")?;
        let (kind, row) = mgmt::event(&data).ok_or("its content is no face event")?;
        if kind != word {
            return Err(format!("the event is {kind}"));
        }
        expect::fields(&mut self.env, &pattern.fields, |key| {
            Some(row.get(key).cloned().unwrap_or(Found::Absent))
        })
    }

    pub(super) fn ask(&mut self, kind: &StepKind) -> Result<(), String> {
        if let StepKind::Query { face, dataset, filter } = kind {
            self.settle_for(None);
            let name = mgmt::dataset_name(&self.env, dataset, filter)?;
            let asked = Asked {
                face: *face,
                dataset: dataset.clone(),
                name,
                rows: Vec::new(),
                judged: Vec::new(),
                kept: self.env.kept.clone(),
            };
            return self.fetch(asked);
        }
        let Some(mut asked) = self.asked.take() else { return Err("no dataset was asked".into()) };
        asked.judged.push(kind.clone());
        let patience = self.subject.patience();
        let end = self.subject.now_ms().saturating_add(millis(patience));
        let mut result = judge(&mut self.env, kind, &asked.rows);
        // What a forwarder does beside the packets may take a moment.
        while result.is_err() && self.subject.now_ms() < end {
            self.env.kept.clone_from(&asked.kept);
            self.fetch(asked)?;
            let Some(again) = self.asked.take() else { return result };
            asked = again;
            result = asked.judged.iter().try_for_each(|k| judge(&mut self.env, k, &asked.rows));
        }
        self.asked = Some(asked);
        result
    }

    /// Fetches a dataset, once the last answer for it is no longer fresh.
    fn fetch(&mut self, mut asked: Asked) -> Result<(), String> {
        let key = name::encode(&asked.name);
        if let Some(last) = self.fetched.get(&key) {
            let over = (last + FRESH_MS).saturating_sub(self.subject.now_ms());
            self.subject.wait(Duration::from_millis(over));
        }
        let content = self.segments(asked.face, &asked.name)?;
        self.fetched.insert(key, self.subject.now_ms());
        asked.rows = mgmt::rows(&asked.dataset, &content).ok_or("the dataset cannot be read")?;
        self.asked = Some(asked);
        Ok(())
    }

    /// Fetches all segments of a dataset.
    fn segments(&mut self, face: usize, name: &[Component]) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let mut ask = name.to_vec();
        for segment in 0..SEGMENTS_MAX {
            let data = self.segment(face, &ask, name, segment == 0)?;
            content.extend(data.content.unwrap_or_default());
            if data.final_block.is_some() && data.final_block.as_ref() == data.name.last() {
                return Ok(content);
            }
            ask = data.name;
            ask.pop();
            ask.push((50, nni(segment + 1)));
        }
        Err("the dataset has no end".into())
    }

    fn segment(
        &mut self,
        face: usize,
        ask: &[Component],
        dataset: &[Component],
        first: bool,
    ) -> Result<Data, String> {
        let mut value = tlv(t::NAME, &name::encode(ask));
        if first {
            put(&mut value, t::CAN_BE_PREFIX, &[]);
            put(&mut value, t::MUST_BE_FRESH, &[]);
        }
        put(&mut value, t::NONCE, &self.env.next_nonce());
        self.subject.send(face, &tlv(t::INTEREST, &value))?;
        let patience = self.subject.patience();
        let mut others = Vec::new();
        let found = loop {
            match self.next(face, patience)? {
                None => break Err(format!("no segment of {} came", name::uri(dataset))),
                Some(seen) => match seen.data().filter(|d| d.name.starts_with(dataset)) {
                    Some(data) if data.content_type == Some(3) => {
                        break Err("the dataset was refused".into());
                    }
                    Some(data) => break Ok(data),
                    None => others.push(seen),
                },
            }
        };
        self.inbox[face].extend(others);
        found
    }
}

/// Judges a dataset by one line.
fn judge(env: &mut Env, kind: &StepKind, rows: &[Row]) -> Result<(), String> {
    match kind {
        StepKind::Has(fields) if !any_row(env, fields, rows) => {
            Err(format!("no such row among {}", show(rows)))
        }
        StepKind::Lacks(fields) if any_row(env, fields, rows) => {
            Err(format!("there is such a row among {}", show(rows)))
        }
        StepKind::Rows(count) if !fits(env, count, &Found::Number(rows.len() as u64)) => {
            Err(format!("there are {} rows: {}", rows.len(), show(rows)))
        }
        _ => Ok(()),
    }
}

fn any_row(env: &mut Env, fields: &[Field], rows: &[Row]) -> bool {
    rows.iter().any(|row| {
        let mut trial = env.clone();
        let good = row_fits(&mut trial, fields, row);
        if good {
            *env = trial;
        }
        good
    })
}

fn show(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let fields: Vec<String> = row.iter().map(|(k, v)| format!("{k}={}", v.show())).collect();
        format!("[{}]", fields.join(" "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn row_fits(env: &mut Env, fields: &[Field], row: &Row) -> bool {
    fields.iter().all(|f| {
        let found = row.get(f.key).cloned().unwrap_or(Found::Absent);
        fits(env, &f.value, &found)
    })
}
