//! Lines of the daemon's log as JSON objects.

use serde_json::{Map, Value};
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// One object a line.
pub(crate) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Line(Map::new());
        event.record(&mut line);
        let about = event.metadata();
        for (key, value) in
            [("time", time.as_str()), ("level", about.level().as_str()), ("target", about.target())]
        {
            line.0.insert(key.to_owned(), value.into());
        }
        writeln!(writer, "{}", Value::Object(line.0))
    }
}

/// The fields of an event.
struct Line(Map<String, Value>);

impl Line {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_ring::Ring;
    use tracing_subscriber::prelude::*;

    #[test]
    fn an_event_is_one_object_whatever_its_texts_hold() {
        let ring = Ring::default();
        let layer = tracing_subscriber::fmt::layer().event_format(JsonLines);
        let layer = layer.with_writer(ring.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let trace_id = format_args!("{:032x}", 7);
            tracing::warn!(trace_id = %trace_id, face = 256_u32, up = false, "said \"no\"\n\u{1b}[1m");
        });
        let lines = ring.lines();
        assert_eq!(lines.len(), 1);
        let line: Value = serde_json::from_str(&lines[0].text).unwrap();
        assert_eq!(line["message"], "said \"no\"\n\u{1b}[1m");
        assert_eq!(line["trace_id"], "00000000000000000000000000000007");
        assert_eq!((&line["face"], &line["up"]), (&256.into(), &false.into()));
        assert_eq!((&line["level"], &line["target"]), (&"WARN".into(), &line_target().into()));
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }

    fn line_target() -> &'static str {
        module_path!()
    }
}
