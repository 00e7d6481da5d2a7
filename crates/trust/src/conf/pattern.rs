//! Regular expressions over names, compiled to an automaton: time grows with the name's length
//! times the expression's, whatever both are.
//!
//! ```text
//! ["^"] item* ["$"]     item = atom [quantifier]     atom = <re> | <> | [<re><re>…] | [^<re>…] | ( item* )
//! quantifier = * + ? {n} {n,} {,n} {m,n}
//! ```
//!
//! A component is compared as its URI text with the expression between the angle brackets, as a
//! whole. Without `^` or `$` any components may precede or follow.

use super::item::{Item, Test};
use super::program::{Compiler, Instruction, Program};
use onym_wire::{Name, NameRef};

/// Longest expression, in octets.
pub const PATTERN_MAX: usize = 4096;

/// Most repetitions of an item that `{}` may ask for.
pub const REPEAT_MAX: usize = 256;

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the expression {pattern:?} is not usable: {what}")]
pub struct PatternError {
    /// The expression.
    pub pattern: String,
    /// What is wrong.
    pub what: String,
}

/// An expression over names.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    program: Program,
}

/// What an expression found: the groups, by number; 0 is the whole name.
#[derive(Debug, Clone)]
pub struct Found {
    groups: Vec<Option<Name>>,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let error = |what| PatternError { pattern: text.chars().take(200).collect(), what };
        if text.len() > PATTERN_MAX {
            return Err(error(format!("it is longer than {PATTERN_MAX} octets")));
        }
        let program = compile(text).map_err(error)?;
        Ok(Self { text: text.to_owned(), program })
    }

    /// The expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the name matches.
    #[must_use]
    pub fn is_match(&self, name: NameRef<'_>) -> bool {
        self.program.run(name).is_some()
    }

    /// The groups, when the name matches.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<Found> {
        self.program.run(name).map(|groups| Found { groups })
    }
}

fn compile(text: &str) -> Result<Program, String> {
    let (is_start, rest) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (is_end, rest) = match rest.strip_suffix('$') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut parser = Parser { rest, groups: 0, depth: 0 };
    let items = parser.items()?;
    if !parser.rest.is_empty() {
        return Err(format!("{:?} is not expected there", parser.rest));
    }
    let mut compiler = Compiler::new(parser.groups);
    let any = || Item::Repeat { item: Box::new(Item::One(Test::Any)), least: 0, most: None };
    if !is_start {
        // First without anything in front, as ndn-cxx tries it, then with as much as possible.
        let split = compiler.add(Instruction::Split(0, 0))?;
        compiler.item(&any())?;
        let end = compiler.len();
        compiler.set(split, Instruction::Split(end, split + 1));
    }
    for item in &items {
        compiler.item(item)?;
    }
    if !is_end {
        compiler.item(&any())?;
    }
    compiler.finish()
}

struct Parser<'t> {
    rest: &'t str,
    groups: usize,
    depth: usize,
}

/// Most groups of an expression, and how deep they may be.
const GROUPS_MAX: usize = 64;

impl Parser<'_> {
    fn skip(&mut self, octets: usize) {
        self.rest = self.rest.get(octets..).unwrap_or("");
    }

    fn items(&mut self) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        while let Some(first) = self.rest.chars().next() {
            let atom = match first {
                '<' => Item::One(self.component()?),
                '[' => Item::One(self.set()?),
                '(' => self.group()?,
                ')' if self.depth > 0 => break,
                other => return Err(format!("{other:?} is not expected at {:?}", self.rest)),
            };
            items.push(self.repeated(atom)?);
        }
        Ok(items)
    }

    fn group(&mut self) -> Result<Item, String> {
        self.skip(1);
        self.count(1)?;
        let number = self.groups;
        self.depth += 1;
        let items = self.items()?;
        self.depth -= 1;
        if !self.rest.starts_with(')') {
            return Err("a ( is not closed".into());
        }
        self.skip(1);
        Ok(Item::Group(number, items))
    }

    /// Takes the next numbers for groups.
    fn count(&mut self, groups: usize) -> Result<(), String> {
        self.groups += groups;
        if self.groups > GROUPS_MAX {
            return Err(format!("it has more than {GROUPS_MAX} groups"));
        }
        Ok(())
    }

    /// The expression of a component, up to its closing bracket.
    fn component(&mut self) -> Result<Test, String> {
        let mut open = 0_usize;
        for (at, c) in self.rest.char_indices() {
            match c {
                '<' => open += 1,
                '>' if open == 1 => {
                    let inner = self.rest.get(1..at).unwrap_or("").to_owned();
                    self.skip(at + 1);
                    let first = self.groups + 1;
                    let test = Test::new(&inner, first)?;
                    self.count(test.groups())?;
                    return Ok(test);
                }
                '>' => open -= 1,
                _ => {}
            }
        }
        Err("a < is not closed".into())
    }

    fn set(&mut self) -> Result<Test, String> {
        self.skip(1);
        let is_negated = self.rest.starts_with('^');
        self.skip(usize::from(is_negated));
        let mut members = Vec::new();
        while self.rest.starts_with('<') {
            members.push(self.component()?);
        }
        if !self.rest.starts_with(']') || members.is_empty() {
            return Err("a set is [<a><b>] or [^<a><b>]".into());
        }
        self.skip(1);
        Ok(Test::Set { members, is_negated })
    }

    fn repeated(&mut self, atom: Item) -> Result<Item, String> {
        let (least, most) = match self.rest.chars().next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(atom),
            _ => return Ok(atom),
        };
        self.skip(1);
        Ok(Item::Repeat { item: Box::new(atom), least, most })
    }

    fn counted(&mut self, atom: Item) -> Result<Item, String> {
        let end = self.rest.find('}').ok_or("a { is not closed")?;
        let inner = self.rest.get(1..end).unwrap_or("");
        let number = |text: &str| -> Result<usize, String> {
            let n = text.parse().map_err(|_| format!("{{{inner}}} is not a repetition"))?;
            if n > REPEAT_MAX {
                return Err(format!("{{{inner}}} repeats more than {REPEAT_MAX} times"));
            }
            Ok(n)
        };
        let (least, most) = match inner.split_once(',') {
            None => (number(inner)?, Some(number(inner)?)),
            Some(("", "")) => return Err("{,} is not a repetition".into()),
            Some(("", most)) => (0, Some(number(most)?)),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        if most.is_some_and(|most| most < least) {
            return Err(format!("{{{inner}}} ends before it begins"));
        }
        self.skip(end + 1);
        Ok(Item::Repeat { item: Box::new(atom), least, most })
    }
}

/// A name made of groups and components: `\1<x>\2`.
#[derive(Debug, Clone)]
pub struct Expansion {
    parts: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Group(usize),
    Components(Name),
}

impl Expansion {
    /// Reads an expansion for what `pattern` finds.
    ///
    /// # Errors
    /// [`PatternError`], also when it names a group that the pattern does not have.
    pub fn new(text: &str, pattern: &Pattern) -> Result<Self, PatternError> {
        let error = |what: String| PatternError { pattern: text.to_owned(), what };
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, len) = if let Some(digits) = rest.strip_prefix('\\') {
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                let number = digits.get(..end).unwrap_or("");
                let group = number.parse().ok().filter(|n: &usize| *n <= pattern.program.groups());
                let what = || error(format!("\\{number} is no group of {:?}", pattern.as_str()));
                (Piece::Group(group.ok_or_else(what)?), end + 1)
            } else if let Some(inner) = rest.strip_prefix('<') {
                let end = inner.find('>').ok_or_else(|| error("a < is not closed".into()))?;
                let uri = inner.get(..end).unwrap_or("");
                let name: Name = uri.parse().map_err(|e| error(format!("{e}")))?;
                (Piece::Components(name), end + 2)
            } else {
                return Err(error("an expansion is made of \\N and <component>".into()));
            };
            parts.push(piece);
            rest = rest.get(len..).unwrap_or("");
        }
        Ok(Self { parts })
    }

    /// The name; `None` when a group took no part in the match, which decides nothing.
    #[must_use]
    pub fn expand(&self, found: &Found) -> Option<Name> {
        let mut name = Name::new();
        for part in &self.parts {
            match part {
                Piece::Group(number) => {
                    name.append(found.groups.get(*number)?.as_ref()?.as_ref());
                }
                Piece::Components(components) => {
                    name.append(components.as_ref());
                }
            }
        }
        Some(name)
    }
}
