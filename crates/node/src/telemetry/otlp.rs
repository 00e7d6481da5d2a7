//! Spans as OTLP has them: `ExportTraceServiceRequest` in JSON, written as text: a tree of values would
//! cost more than the packets that it tells of.

use onym_engine::Clock;
use onym_tables::Tick;
use onym_watch::{End, Span};
use onym_wire::name::NameRef;
use onym_wire::tlv::tlv_len;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// Octets of a span in JSON, about.
const SPAN_LEN: usize = 900;

/// Who tells.
#[derive(Debug)]
pub(super) struct Resource {
    /// What this node is called.
    pub(super) name: String,
}

/// What is between the node's clock and Unix time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    offset_ns: i128,
}

impl Moment {
    pub(super) fn of(clock: Clock) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        Self { offset_ns: unix_ns - i128::from(clock.now().0) }
    }

    fn unix_ns(self, at: Tick) -> u64 {
        u64::try_from(i128::from(at.0) + self.offset_ns).unwrap_or_default()
    }
}

/// The body of a request.
pub(super) fn body<'a>(
    resource: &Resource,
    spans: impl ExactSizeIterator<Item = &'a Span>,
    moment: Moment,
) -> Vec<u8> {
    let text = Vec::with_capacity(SPAN_LEN * (spans.len() + 1));
    let mut out = Json { text, names: Names::default() };
    out.raw(concat!(
        r#"{"resourceSpans":[{"resource":{"attributes":["#,
        r#"{"key":"service.name","value":{"stringValue":"onym"}},"#,
        r#"{"key":"service.version","value":{"stringValue":""#,
        env!("CARGO_PKG_VERSION"),
        r#""}},{"key":"service.instance.id","value":{"stringValue":"#,
    ));
    out.quoted(&resource.name);
    out.raw(r#"}}]},"scopeSpans":[{"scope":{"name":"onym"},"spans":["#);
    for (n, span) in spans.enumerate() {
        out.raw(if n == 0 { "" } else { "," });
        out.span(span, moment);
    }
    out.raw("]}]}]}");
    out.text
}

/// How many spans of a request the collector says that it did not take.
pub(super) fn rejected(answer: &Value) -> usize {
    let said = &answer["partialSuccess"]["rejectedSpans"];
    let number = said.as_u64().or_else(|| said.as_str()?.parse().ok());
    number.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// The name of the Interest of a span.
pub(super) fn name_of(span: &Span) -> String {
    NameRef::parse_value(&span.name).map(|name| name.to_string()).unwrap_or_default()
}

/// How a span ended, in a word.
pub(super) fn end_word(span: &Span) -> &'static str {
    match span.end {
        End::Decided => "decided",
        End::Data(_) => "data",
        End::Nack(..) => "nack",
        End::Unanswered => "unanswered",
        End::Ended => "ended",
    }
}

/// Text of JSON that grows: few long pieces, since each costs as much as some tens of octets.
#[derive(Default)]
struct Json<'a> {
    text: Vec<u8>,
    names: Names<'a>,
}

/// What names have in common with the one before, and where that is written already: those of a moment
/// often differ in their last components only.
#[derive(Default)]
struct Names<'a> {
    /// VALUE of the name that was written last.
    last: &'a [u8],
    /// Its first octets, whole components, which the one before it had, too.
    shared: usize,
    /// Their URI in the text.
    written: Range<usize>,
}

impl fmt::Write for Json<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.raw(text);
        Ok(())
    }
}

impl<'a> Json<'a> {
    #[inline]
    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// The digits of a number; one of 64 bits is a string in this JSON.
    fn number(&mut self, number: u64) {
        self.raw(itoa::Buffer::new().format(number));
    }

    fn quoted(&mut self, text: &str) {
        self.raw("\"");
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|c| matches!(c, b'"' | b'\\') || c < b' ') {
            self.raw(&rest[..at]);
            self.raw("\\u00");
            let [high, low] = [rest.as_bytes()[at] >> 4, rest.as_bytes()[at] & 15];
            self.text.extend([high, low].map(|n| if n < 10 { b'0' + n } else { b'a' + n - 10 }));
            rest = &rest[at + 1..];
        }
        self.raw(rest);
        self.raw("\"");
    }

    fn span(&mut self, span: &'a Span, moment: Moment) {
        self.text.extend_from_slice(&head(span));
        self.number(moment.unix_ns(span.began));
        self.raw(r#"","endTimeUnixNano":""#);
        self.number(moment.unix_ns(span.ended));
        self.raw(r#"","attributes":[{"key":"ndn.name","value":{"stringValue":""#);
        self.name(&span.name);
        self.raw(r#""}},{"key":"onym.face.in","value":{"intValue":""#);
        self.number(span.from.0.into());
        self.raw(r#""}},{"key":"onym.faces.out","value":{"arrayValue":{"values":["#);
        for (n, face) in span.to.iter().enumerate() {
            self.raw(if n == 0 { r#"{"intValue":""# } else { r#""},{"intValue":""# });
            self.number(face.0.into());
        }
        // The outcome and the end are words.
        self.raw(match span.to.is_empty() {
            true => r#"]}}},{"key":"onym.verdict","value":{"stringValue":""#,
            false => r#""}]}}},{"key":"onym.verdict","value":{"stringValue":""#,
        });
        self.raw(span.outcome.word);
        self.raw(r#""}},{"key":"onym.end","value":{"stringValue":""#);
        self.raw(end_word(span));
        if let End::Data(face) | End::Nack(face, _) = span.end {
            self.raw(r#""}},{"key":"onym.face.answer","value":{"intValue":""#);
            self.number(face.0.into());
        }
        self.raw(r#""}}],"status":{"#);
        if let Some(why) = failure(span) {
            // The code of an error.
            self.raw(r#""code":2,"message":"#);
            self.quoted(&why);
        }
        if let Some(parent) = span.parent {
            self.raw(r#"},"parentSpanId":""#);
            self.text.extend_from_slice(&hex(parent));
            self.raw(r#""}"#);
        } else {
            self.raw("}}");
        }
    }

    /// The URI of a name: it has nothing that JSON would escape.
    fn name(&mut self, name: &'a [u8]) {
        let Names { last, shared, written } = &self.names;
        if *shared > 0 && name.starts_with(&last[..*shared]) {
            self.text.extend_from_within(written.clone());
        } else {
            let shared = components_of_both(last, name);
            let start = self.text.len();
            if shared > 0 {
                self.uri(&name[..shared]);
            }
            (self.names.shared, self.names.written) = (shared, start..self.text.len());
        }
        self.names.last = name;
        match &name[self.names.shared..] {
            [] if !name.is_empty() => {}
            rest => self.uri(rest),
        }
    }

    fn uri(&mut self, name: &[u8]) {
        if let Ok(name) = NameRef::parse_value(name) {
            // It takes everything.
            let _ = name.write_uri(self);
        }
    }
}

/// Octets of the first components that two names have, by their VALUES.
fn components_of_both(one: &[u8], other: &[u8]) -> usize {
    let components = |name| NameRef::parse_value(name).ok().into_iter().flatten();
    let both = components(one).zip(components(other));
    both.take_while(|(a, b)| a == b).map(|(a, _)| tlv_len(a.typ.into(), a.value.len())).sum()
}

/// What stands before the digits of a trace, of a span, and of the time when that began. Its kind is 2, of
/// a server, which another one called.
const BEFORE_TRACE: &[u8; 12] = br#"{"traceId":""#;
const BEFORE_SPAN: &[u8; 12] = br#"","spanId":""#;
const BEFORE_START: &[u8; 50] = br#"","name":"interest","kind":2,"startTimeUnixNano":""#;

/// A span up to the time when it began: all of it has its place.
// No truncation: a trace has 128 bits, told in two halves.
#[allow(clippy::cast_possible_truncation)]
fn head(span: &Span) -> [u8; 122] {
    let trace = span.context.trace;
    let (high, low, id) = (hex((trace >> 64) as u64), hex(trace as u64), hex(span.context.span));
    let mut head = [0; 122];
    let mut rest = &mut head[..];
    for part in [&BEFORE_TRACE[..], &high, &low, BEFORE_SPAN, &id, BEFORE_START] {
        let (place, behind) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    head
}

/// The digits of an identifier, in hexadecimal.
const fn hex(number: u64) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = hex_digits(number >> 32);
    let [i, j, k, l, m, n, o, p] = hex_digits(number & 0xffff_ffff);
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// The lower 32 bits as eight digits in hexadecimal, all at once: each in an octet of a word.
const fn hex_digits(number: u64) -> [u8; 8] {
    let n = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let n = (n | n << 8) & 0x00ff_00ff_00ff_00ff;
    let n = (n | n << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (n + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (n + 0x3030_3030_3030_3030 + is_letter * 39).to_be_bytes()
}

/// Why an Interest was not answered; none where it was, or where it was for this node.
fn failure(span: &Span) -> Option<String> {
    match span.end {
        End::Decided => span.outcome.is_drop.then(|| span.outcome.word.to_owned()),
        End::Data(_) => None,
        End::Nack(_, reason) => Some(format!("Nack {reason}")),
        End::Unanswered => Some("no answer within its lifetime".to_owned()),
        End::Ended => Some("nobody waits any more, and no answer was seen".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::name::Name;

    /// Law: whatever a text holds, what is written is JSON that means it.
    #[test]
    fn a_text_is_read_as_it_was_written() {
        for text in ["", "/a/%20b", "say \"no\"\\", "\u{0}\n\u{1f}é\u{10ffff}"] {
            let mut json = Json::default();
            json.quoted(text);
            assert_eq!(serde_json::from_slice::<String>(&json.text).unwrap(), text);
        }
    }

    /// Law: digits are those that the library writes.
    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 9, 10, 0xfedc_ba98_7654_3210, u64::MAX] {
            let mut json = Json::default();
            json.text.extend(hex(number));
            json.number(number);
            assert_eq!(json.text, format!("{number:016x}{number}").into_bytes());
        }
    }

    /// Law: a name is written as its URI, whatever names were written before it.
    #[test]
    fn names_are_their_uris_whatever_they_share() {
        let uris = ["/a", "/a/b", "/a/b", "/", "/a/b/v=1/seg=0", "/a/b/v=1/seg=1", "/ab/seg=1"];
        let names = uris.map(|uri| uri.parse::<Name>().unwrap());
        for order in [[0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 4, 5, 4, 0], [3, 1, 4, 0, 2, 6, 5]] {
            let mut json = Json::default();
            for n in order {
                json.name(names[n].as_ref().value());
                json.raw(" ");
            }
            let written = String::from_utf8(json.text).unwrap();
            assert_eq!(written.trim_end(), order.map(|n| uris[n]).join(" "));
        }
    }

    #[test]
    fn what_a_collector_did_not_take_is_a_number_or_a_string() {
        for (answer, count) in [
            (r#"{"partialSuccess":{"rejectedSpans":"3"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
            (r#"{"partialSuccess":{}}"#, 0),
            ("{}", 0),
            ("null", 0),
        ] {
            assert_eq!(rejected(&serde_json::from_str(answer).unwrap()), count, "{answer}");
        }
    }
}
