//! The paths that a file of Rust consists of, as far as they lead to other files.

use super::code::{tokens, without_prose};

/// A path, and the name that it has in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) name: String,
}

/// Every path of a `use`, and every other one that begins with `crate`, `super` or `self`; those of
/// the tests at the end of the file are left out.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let code = without_prose(text);
    let mut reader = Reader { tokens: tokens(&code), at: 0, found: Vec::new() };
    while let Some(token) = reader.peek(0) {
        let begins = matches!(token, "crate" | "super" | "self") && reader.peek(1) == Some("::");
        let goes_on = reader.at > 0 && reader.tokens[reader.at - 1] == "::";
        if token == "use" {
            reader.at += 1;
            reader.tree(Vec::new());
        } else if begins && !goes_on {
            reader.tree(Vec::new());
        } else {
            reader.at += 1;
        }
    }
    reader.found
}

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    found: Vec<Import>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn is_word(&self, ahead: usize) -> bool {
        let first = self.peek(ahead).and_then(|token| token.chars().next());
        first.is_some_and(|c| c.is_alphabetic() || c == '_')
    }

    /// A path behind `prefix`, with all its branches.
    fn tree(&mut self, prefix: Vec<String>) {
        match self.peek(0) {
            Some("{") => {
                self.at += 1;
                while let Some(token) = self.peek(0) {
                    match token {
                        "}" => break,
                        "," => self.at += 1,
                        _ => self.tree(prefix.clone()),
                    }
                }
                self.at += 1;
            }
            Some("*") if !prefix.is_empty() => {
                self.found.push(Import { path: prefix, name: "*".to_owned() });
                self.at += 1;
            }
            Some(segment) if self.is_word(0) => {
                let mut path = prefix;
                // `a::{self}` is `a`.
                if segment != "self" || path.is_empty() {
                    path.push(segment.to_owned());
                }
                self.at += 1;
                let is_branch = matches!(self.peek(1), Some("{" | "*")) || self.is_word(1);
                if self.peek(0) == Some("::") && is_branch {
                    self.at += 1;
                    return self.tree(path);
                }
                let mut name = path.last().cloned().unwrap_or_default();
                if self.peek(0) == Some("as") {
                    name = self.peek(1).unwrap_or_default().to_owned();
                    self.at += 2;
                }
                self.found.push(Import { path, name });
            }
            _ => self.at += 1,
        }
    }
}
