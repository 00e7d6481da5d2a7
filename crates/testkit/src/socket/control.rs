//! The runner's own connection, over which it configures the forwarder.

use super::conn::Conn;
use crate::env::Env;
use crate::expect::Found;
use crate::mgmt::{self, Row};
use crate::script::{Field, Value};
use crate::show;
use crate::subject::Received;
use crate::wire::name::{Component, Part};
use crate::wire::view::{Data, Seen};
use std::time::{Duration, SystemTime};

const ANSWER: Duration = Duration::from_secs(5);

/// Sends commands and waits for their answers.
#[derive(Debug)]
pub struct Control {
    conn: Conn,
    env: Env,
    last_time: u64,
}

/// Unix time in milliseconds.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A number as a field of a command.
#[must_use]
pub fn number(key: &'static str, n: u64) -> Field {
    Field { key, value: Value::Number(n) }
}

/// A name as a field of a command.
#[must_use]
pub fn name(key: &'static str, name: &[Component]) -> Field {
    Field { key, value: Value::Name(name.iter().cloned().map(Part::Fixed).collect()) }
}

/// Text as a field of a command.
#[must_use]
pub fn text(key: &'static str, text: String) -> Field {
    Field { key, value: Value::Text(text) }
}

impl Control {
    /// Uses a local connection.
    #[must_use]
    pub fn new(conn: Conn) -> Self {
        let nonce = u32::try_from(now_ms() & 0xffff_ffff).unwrap_or(7) ^ 0x5555_5555;
        let env = Env { nonce, ..Env::default() };
        Self { conn, env, last_time: 0 }
    }

    /// Sends a command; gives code, text and body of the answer.
    ///
    /// # Errors
    /// No answer came, or it cannot be read.
    pub fn ask(&mut self, verb: &str, fields: &[Field]) -> Result<(u64, String, Row), String> {
        self.last_time = now_ms().max(self.last_time + 1);
        ask(&mut self.conn, &mut self.env, verb, fields, self.last_time)
    }

    /// Sends a command that must succeed; gives the body of the answer.
    ///
    /// # Errors
    /// It was refused, or no answer came.
    pub fn must(&mut self, verb: &str, fields: &[Field]) -> Result<Row, String> {
        match self.ask(verb, fields)? {
            (200, _, body) => Ok(body),
            (code, text, _) => Err(format!("{verb} was answered by {code} {text}")),
        }
    }
}

/// Sends a command over a connection and waits for its answer.
///
/// # Errors
/// No answer came, or it cannot be read.
pub fn ask(
    conn: &mut Conn,
    env: &mut Env,
    verb: &str,
    fields: &[Field],
    time: u64,
) -> Result<(u64, String, Row), String> {
    let command = mgmt::command(env, verb, fields, time)?;
    conn.send(&command.interest)?;
    let data = data(conn, |d| d.name == command.name).map_err(|e| format!("{verb}: {e}"))?;
    mgmt::response(&data).ok_or(format!("{verb}: the answer is no ControlResponse"))
}

fn data(conn: &mut Conn, wanted: impl Fn(&Data) -> bool) -> Result<Data, String> {
    loop {
        match conn.receive(ANSWER)? {
            Received::Nothing => return Err("no answer".into()),
            Received::Closed => return Err("the forwarder closed the connection".into()),
            Received::Frame(frame) => {
                let seen = Seen::read(frame)?;
                match seen.data() {
                    Some(d) if seen.lp.nack.is_none() && wanted(&d) => return Ok(d),
                    _ if seen.lp.nack.is_some() => {
                        return Err(format!("refused: {}", show::seen(&seen)));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The number in a field of an answer.
///
/// # Errors
/// It is not there.
pub fn number_of(row: &Row, key: &str) -> Result<u64, String> {
    match row.get(key) {
        Some(Found::Number(n)) => Ok(*n),
        _ => Err(format!("the answer has no {key}")),
    }
}
