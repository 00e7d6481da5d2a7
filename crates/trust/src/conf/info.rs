//! The INFO format: a key and a value in a line, children in braces, `;` before comments.
//!
//! Source: Boost's property tree, as ndn-cxx and NFD read their configuration with it.

/// Longest configuration with all that it includes, in octets.
const TEXT_MAX: usize = 4 << 20;
/// Most entries.
const ENTRIES_MAX: usize = 1 << 16;
/// Deepest braces, and longest way of includes.
const DEPTH_MAX: usize = 16;

/// Gives the text of a file that a configuration includes, by the path that it writes.
pub type Include<'i> = dyn FnMut(&str) -> Result<String, String> + 'i;

/// Refuses to include anything.
///
/// # Errors
/// Always.
pub fn no_include(path: &str) -> Result<String, String> {
    Err(format!("{path:?} cannot be included here"))
}

/// A key with its value and children.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value; empty where there is none.
    pub value: String,
    /// The line of the key, counted from 1.
    pub line: usize,
    /// What its braces hold, in order.
    pub children: Vec<Self>,
}

/// What is wrong, and in which line.
pub type Fault = (usize, String);

enum Word {
    Text(String),
    Open,
    Close,
}

struct Reader<'i, 'f> {
    include: &'f mut Include<'i>,
    /// The entries of open braces, outermost first.
    open: Vec<Entry>,
    entries: usize,
    octets: usize,
}

/// Reads `text` and what it includes: 4 MiB, 65,536 entries and 16 levels at most.
///
/// # Errors
/// The line and what is wrong there.
pub fn parse(text: &str, include: &mut Include<'_>) -> Result<Vec<Entry>, Fault> {
    let mut reader = Reader { include, open: vec![Entry::default()], entries: 0, octets: 0 };
    reader.text(text, 0)?;
    match (reader.open.pop(), reader.open.is_empty()) {
        (Some(root), true) => Ok(root.children),
        (Some(open), false) => {
            Err((open.line, format!("the braces of {:?} are not closed", open.key)))
        }
        (None, _) => Err((0, "nothing was read".into())),
    }
}

impl Reader<'_, '_> {
    fn text(&mut self, text: &str, depth: usize) -> Result<(), Fault> {
        self.octets += text.len();
        if self.octets > TEXT_MAX {
            return Err((0, format!("the configuration is longer than {TEXT_MAX} octets")));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(path) = line.trim_start().strip_prefix("#include") {
                self.include(number, path, depth)?;
                continue;
            }
            let words = words(line).map_err(|what| (number, what))?;
            self.line(number, words)?;
        }
        Ok(())
    }

    fn include(&mut self, line: usize, path: &str, depth: usize) -> Result<(), Fault> {
        let path = match words(path).map_err(|what| (line, what))?.as_slice() {
            [Word::Text(path)] => path.clone(),
            _ => return Err((line, "#include is followed by one path in quotes".into())),
        };
        if depth >= DEPTH_MAX {
            return Err((line, format!("more than {DEPTH_MAX} files include each other")));
        }
        let text = (self.include)(&path).map_err(|what| (line, what))?;
        self.text(&text, depth + 1).map_err(|(at, what)| (line, format!("{path}:{at}: {what}")))
    }

    fn line(&mut self, line: usize, words: Vec<Word>) -> Result<(), Fault> {
        let mut texts = 0;
        for word in words {
            let parent = self.open.last_mut().ok_or((line, "a } too many".to_owned()))?;
            match word {
                Word::Text(key) if texts == 0 => {
                    self.entries += 1;
                    if self.entries > ENTRIES_MAX {
                        return Err((line, format!("more than {ENTRIES_MAX} entries")));
                    }
                    parent.children.push(Entry { key, line, ..Entry::default() });
                    texts = 1;
                }
                Word::Text(value) => {
                    let last = parent.children.last_mut().filter(|_| texts == 1);
                    let Some(last) = last else {
                        return Err((line, format!("{value:?} follows a key and its value")));
                    };
                    last.value = value;
                    texts = 2;
                }
                Word::Open => {
                    let Some(entry) = parent.children.pop() else {
                        return Err((line, "{ must follow a key".into()));
                    };
                    if self.open.len() > DEPTH_MAX {
                        return Err((line, format!("more than {DEPTH_MAX} braces are open")));
                    }
                    self.open.push(entry);
                    texts = 0;
                }
                Word::Close => {
                    let entry = self.open.pop();
                    match (entry, self.open.last_mut()) {
                        (Some(entry), Some(parent)) => parent.children.push(entry),
                        _ => return Err((line, "} without {".into())),
                    }
                    texts = 0;
                }
            }
        }
        Ok(())
    }
}

fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            ';' => break,
            '{' => {
                found.push(Word::Open);
                rest.get(1..).unwrap_or("")
            }
            '}' => {
                found.push(Word::Close);
                rest.get(1..).unwrap_or("")
            }
            '"' => {
                let (text, behind) = quoted(rest.get(1..).unwrap_or(""))?;
                found.push(Word::Text(text));
                behind
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || c == ';';
                let end = rest.find(ends).unwrap_or(rest.len());
                let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
                found.push(Word::Text(unescape(word)?));
                behind
            }
        }
        .trim_start();
    }
    Ok(found)
}

/// The text up to a closing quote, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => {
                let (inner, behind) = text.split_at_checked(at).unwrap_or((text, ""));
                return Ok((unescape(inner)?, behind.get(1..).unwrap_or("")));
            }
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Err("a quote is not closed on its line".into())
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some(same @ ('\\' | '"' | '\'')) => same,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some(other) => {
                return Err(format!("\\{other} is not an escape; write \\ itself as \\\\"));
            }
            None => return Err("a \\ ends the value".into()),
        });
    }
    Ok(out)
}
