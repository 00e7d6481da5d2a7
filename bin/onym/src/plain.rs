//! Escapes text from outside (a node, a producer, a manager, a file) before it reaches a terminal.
//!
//! [`text`] lets line ends and tabs through and is what [`crate::output`] prints everything with;
//! [`line()`] does not, for what stands in a line of ours: a cell of a table, a sentence of an error.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether `c` could move the cursor, change colours, start a command of the terminal, or make text
/// read otherwise than it is.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn made_plain(
    text: &str,
    may_stay: impl Fn(char) -> bool,
    write: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    let is_bad = |c: char| is_harmful(c) && !may_stay(c);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) { write(&mut plain, c) } else { plain.push(c) }
    }
    Cow::Owned(plain)
}

fn escaped(out: &mut String, c: char) {
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if u32::from(c) < 0x80 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// `text` with escapes for what is harmful; line ends and tabs stay.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    made_plain(text, |c| matches!(c, '\n' | '\t'), escaped)
}

/// `text` as part of one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    made_plain(text, |_| false, escaped)
}

/// JSON that means the same and has nothing harmful: what its writer left in strings is escaped as
/// JSON escapes it.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    made_plain(
        text,
        |c| c == '\n',
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;x\x07b\x1b[2Jc\u{9b}31md\u{202e}e\r\nf\x7f\u{2028}g\tü 名";

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(
            text(HOSTILE),
            "a\\x1b]0;x\\x07b\\x1b[2Jc\\u{9b}31md\\u{202e}e\\r\nf\\x7f\\u{2028}g\tü 名"
        );
        assert_eq!(line("a\nonym: fine\t"), "a\\nonym: fine\\t");
        assert!(matches!(text("plain – ü\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "text": HOSTILE });
        let written = serde_json::to_string_pretty(&value).unwrap();
        let plain = json(&written);
        assert!(!plain.contains(|c| is_harmful(c) && c != '\n'), "{plain}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&plain).unwrap(), value);
    }
}
