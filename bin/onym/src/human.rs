//! Numbers and tables for people.

use crate::plain;
use std::fmt::Write as _;

/// `1.5 MB`: octets with a decimal prefix.
pub(crate) fn bytes(n: u64) -> String {
    scaled(n as f64, "B")
}

/// Octets as people write them: `1500`, `64k`, `4G`, or `none` for as many as there are.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "write a number of octets, one with k, M, G or T (as 4G), or none".to_owned();
    if text == "none" {
        return Ok(u64::MAX);
    }
    let (digits, unit) = match text.strip_suffix(['k', 'M', 'G', 'T']) {
        None => (text, 1),
        Some(digits) => match &text[digits.len()..] {
            "k" => (digits, 1_000),
            "M" => (digits, 1_000_000),
            "G" => (digits, 1_000_000_000),
            _ => (digits, 1_000_000_000_000),
        },
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

/// `1.5 Gbit/s`.
pub(crate) fn bits_per_second(n: f64) -> String {
    scaled(n, "bit/s")
}

fn scaled(n: f64, unit: &str) -> String {
    let mut n = n;
    for prefix in ["", "k", "M", "G", "T"] {
        if n < 1000.0 || prefix == "T" {
            return if prefix.is_empty() {
                format!("{n:.0} {unit}")
            } else {
                format!("{n:.2} {prefix}{unit}")
            };
        }
        n /= 1000.0;
    }
    unreachable!("invariant: the last prefix returns")
}

/// `1 segment`, `2 segments`.
pub(crate) fn count(n: impl Into<u64>, what: &str) -> String {
    let n = n.into();
    let end = if n == 1 { "" } else { "s" };
    format!("{n} {what}{end}")
}

/// `1d 2h 3m 4s` from milliseconds.
pub(crate) fn duration_ms(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    for (n, unit) in [(days, "d"), (hours, "h"), (minutes, "m")] {
        if n > 0 || !text.is_empty() {
            let _ = write!(text, "{n}{unit} ");
        }
    }
    let _ = write!(text, "{}s", seconds % 60);
    text
}

/// A moment in milliseconds since the Unix epoch, in UTC.
pub(crate) fn moment_ms(ms: u64) -> String {
    let moment = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| format!("{ms} ms"), |m| m.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Rows under a heading, columns aligned; nothing but the heading when there are no rows.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells =
            rows.iter().filter_map(|r| r.get(column)).map(|c| plain::line(c).chars().count());
        cells.chain([heading[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ", cell = plain::line(cell));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(100_000_000), "100.00 MB");
        assert_eq!(bits_per_second(1.25e9), "1.25 Gbit/s");
        assert_eq!(
            (count(1_u64, "segment"), count(0_u64, "shard")),
            ("1 segment".into(), "0 shards".into())
        );
        assert_eq!(duration_ms(59_999), "59s");
        assert_eq!(duration_ms(90_061_000), "1d 1h 1m 1s");
        assert_eq!(moment_ms(0), "1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("1500"), Ok(1500));
        assert_eq!(parse_size("4G"), Ok(4_000_000_000));
        assert_eq!(parse_size("64k"), Ok(64_000));
        assert_eq!(parse_size("none"), Ok(u64::MAX));
        for wrong in ["", "G", "-1", "4 G", "4GB", "99999999999T", "1.5G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["1".into(), "long cell".into()], vec!["22".into(), "x".into()]];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID  NAME\n1   long cell\n22  x\n");
    }
}
