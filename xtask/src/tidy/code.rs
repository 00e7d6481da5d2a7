//! A file of Rust, taken apart as far as the checks need it.

/// `text` without comments, without what stands in its strings, and without the tests at its end.
pub(super) fn without_prose(text: &str) -> String {
    let text = text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]);
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("\"'") && code.ends_with('\'') {
            // A sign of its own.
            1
        } else if rest.starts_with('"') && code.ends_with("r#") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with('"') {
            string_len(rest)
        } else {
            code.push('/');
            1
        };
        rest = &rest[length..];
    }
    code.push_str(rest);
    code
}

/// Octets of the string that `text` begins with.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Words, `::`, and single signs.
pub(super) fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}
