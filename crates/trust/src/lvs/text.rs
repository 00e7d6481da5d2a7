//! The text of a schema: reading it into rules.
//!
//! ```text
//! #rule : name [& sets] [<= signers]
//! name    = ["/"] component *("/" component)     component = "literal" | variable | #rule
//! sets    = { var : opt | opt, … } | { … }       opt = "literal" | variable | $function(arg, …)
//! signers = #rule | #rule
//! ```
//!
//! Comments run from `//` to the end of the line; spaces mean nothing.

use onym_wire::Name;

/// Longest text of a schema, in octets.
pub const TEXT_MAX: usize = 1 << 20;

/// Why a text is not a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// A definition of a rule, as it was written.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// With its `#`.
    pub(super) id: String,
    pub(super) line: usize,
    pub(super) name: Vec<Part>,
    /// One set must hold; none when the rule has no constraints.
    pub(super) sets: Vec<Vec<Term>>,
    pub(super) signers: Vec<String>,
}

/// A component of a rule's name.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A whole component element.
    Literal(Vec<u8>),
    Variable(String),
    Rule(String),
}

/// What a variable must be.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) variable: String,
    pub(super) line: usize,
    pub(super) options: Vec<Alternative>,
}

/// One thing that a variable may be.
#[derive(Debug, Clone)]
pub(super) enum Alternative {
    Literal(Vec<u8>),
    Variable(String),
    Call { function: String, arguments: Vec<Value> },
}

/// An argument of a function.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Literal(Vec<u8>),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Literal(Vec<u8>),
    Rule(String),
    Function(String),
    Variable(String),
    Signers,
    Sign(char),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Literal(_) => "a literal".into(),
            Self::Rule(id) | Self::Function(id) | Self::Variable(id) => id.clone(),
            Self::Signers => "<=".into(),
            Self::Sign(c) => c.to_string(),
        }
    }
}

/// Where a token starts.
#[derive(Debug, Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, what: impl Into<String>) -> TextError {
        TextError { line: self.line, column: self.column, what: what.into() }
    }
}

/// Reads all rules of `text`.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, TextError> {
    if text.len() > TEXT_MAX {
        let what = format!("the text is longer than {TEXT_MAX} octets");
        return Err(TextError { line: 1, column: 1, what });
    }
    let (tokens, end) = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, end };
    let mut rules = Vec::new();
    while parser.at < parser.tokens.len() {
        rules.push(parser.rule()?);
    }
    Ok(rules)
}

fn tokens(text: &str) -> Result<(Vec<(Token, Place)>, Place), TextError> {
    let mut found = Vec::new();
    let mut place = Place { line: 1, column: 1 };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            let (token, len) = token(rest, first, place)?;
            found.push((token, place));
            len
        };
        let (taken, behind) = rest.split_at_checked(len).unwrap_or((rest, ""));
        for c in taken.chars() {
            place = match c {
                '\n' => Place { line: place.line + 1, column: 1 },
                _ => Place { column: place.column + 1, ..place },
            };
        }
        rest = behind;
    }
    Ok((found, place))
}

fn token(rest: &str, first: char, place: Place) -> Result<(Token, usize), TextError> {
    let word = |from: usize| {
        let tail = rest.get(from..).unwrap_or("");
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        let starts = tail.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts { rest.get(..from + len) } else { None }
    };
    let named = |make: fn(String) -> Token, from, what: &str| {
        let word = word(from).ok_or_else(|| place.error(what))?;
        Ok((make(word.to_owned()), word.len()))
    };
    match first {
        '#' => named(Token::Rule, 1, "# must be followed by the name of a rule"),
        '$' => named(Token::Function, 1, "$ must be followed by the name of a function"),
        '"' => literal(rest, place),
        '<' if rest.starts_with("<=") => Ok((Token::Signers, 2)),
        ':' | '/' | '&' | '|' | '{' | '}' | ',' | '(' | ')' => Ok((Token::Sign(first), 1)),
        _ => named(Token::Variable, 0, &format!("{first:?} does not belong here")),
    }
}

fn literal(rest: &str, place: Place) -> Result<(Token, usize), TextError> {
    let inner = rest.get(1..).unwrap_or("");
    let line = inner.split('\n').next().unwrap_or("");
    let Some(end) = line.find('"') else {
        return Err(place.error("the literal has no closing quote on its line"));
    };
    let text = inner.get(..end).unwrap_or("");
    let component = component(text).map_err(|what| place.error(what))?;
    Ok((Token::Literal(component), end + 2))
}

/// The component that `text` is in URI form. Periods stand for themselves here, as in the other
/// implementation of the language.
fn component(text: &str) -> Result<Vec<u8>, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~=%".contains(c);
    if let Some(bad) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(format!(
            "{bad:?} cannot stand in a literal: write its octets as %XX, as in a name"
        ));
    }
    let mut name = Name::new();
    if text.bytes().all(|octet| octet == b'.') {
        name.append_generic(text);
    } else {
        name = text.parse().map_err(|e| format!("the literal is no component: {e}"))?;
    }
    Ok(name.value().to_vec())
}

struct Parser {
    tokens: Vec<(Token, Place)>,
    at: usize,
    end: Place,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn place(&self) -> Place {
        self.tokens.get(self.at).map_or(self.end, |(_, place)| *place)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn error(&self, wanted: &str) -> TextError {
        let found = self.peek().map_or_else(|| "the end of the text".into(), Token::shown);
        self.place().error(format!("{wanted} is expected here, not {found}"))
    }

    fn accept(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: char) -> Result<(), TextError> {
        if self.accept(&Token::Sign(sign)) { Ok(()) } else { Err(self.error(&format!("{sign:?}"))) }
    }

    fn rule_id(&mut self, wanted: &str) -> Result<String, TextError> {
        match self.peek() {
            Some(Token::Rule(id)) => {
                let id = id.clone();
                self.at += 1;
                Ok(id)
            }
            _ => Err(self.error(wanted)),
        }
    }

    fn rule(&mut self) -> Result<Rule, TextError> {
        let line = self.place().line;
        let id = self.rule_id("a rule (#name)")?;
        self.sign(':')?;
        self.accept(&Token::Sign('/'));
        let mut name = vec![self.part()?];
        while self.accept(&Token::Sign('/')) {
            name.push(self.part()?);
        }
        let mut sets = Vec::new();
        if self.accept(&Token::Sign('&')) {
            sets.push(self.set()?);
            while self.accept(&Token::Sign('|')) {
                sets.push(self.set()?);
            }
        }
        let mut signers = Vec::new();
        if self.accept(&Token::Signers) {
            signers.push(self.rule_id("a signer (#rule)")?);
            while self.accept(&Token::Sign('|')) {
                signers.push(self.rule_id("a signer (#rule)")?);
            }
        }
        Ok(Rule { id, line, name, sets, signers })
    }

    fn part(&mut self) -> Result<Part, TextError> {
        let part = match self.peek() {
            Some(Token::Literal(component)) => Part::Literal(component.clone()),
            Some(Token::Variable(id)) => Part::Variable(id.clone()),
            Some(Token::Rule(id)) => Part::Rule(id.clone()),
            _ => return Err(self.error("a component: a literal, a variable or a #rule")),
        };
        self.at += 1;
        Ok(part)
    }

    fn set(&mut self) -> Result<Vec<Term>, TextError> {
        self.sign('{')?;
        let mut terms = vec![self.term()?];
        while self.accept(&Token::Sign(',')) {
            terms.push(self.term()?);
        }
        self.sign('}')?;
        Ok(terms)
    }

    fn term(&mut self) -> Result<Term, TextError> {
        let line = self.place().line;
        let Some(Token::Variable(variable)) = self.peek().cloned() else {
            return Err(self.error("a variable"));
        };
        self.at += 1;
        self.sign(':')?;
        let mut options = vec![self.option()?];
        while self.accept(&Token::Sign('|')) {
            options.push(self.option()?);
        }
        Ok(Term { variable, line, options })
    }

    fn option(&mut self) -> Result<Alternative, TextError> {
        let place = self.place();
        match self.next() {
            Some(Token::Literal(component)) => Ok(Alternative::Literal(component)),
            Some(Token::Variable(id)) => Ok(Alternative::Variable(id)),
            Some(Token::Function(function)) => {
                self.sign('(')?;
                let mut arguments = Vec::new();
                while !self.accept(&Token::Sign(')')) {
                    if !arguments.is_empty() {
                        self.sign(',')?;
                    }
                    arguments.push(self.argument()?);
                }
                Ok(Alternative::Call { function, arguments })
            }
            found => {
                let found = found.map_or_else(|| "the end of the text".into(), |t| t.shown());
                let wanted = "a literal, a variable or a $function() is expected here";
                Err(place.error(format!("{wanted}, not {found}")))
            }
        }
    }

    fn argument(&mut self) -> Result<Value, TextError> {
        let value = match self.peek() {
            Some(Token::Literal(component)) => Value::Literal(component.clone()),
            Some(Token::Variable(id)) => Value::Variable(id.clone()),
            _ => return Err(self.error("an argument: a literal or a variable")),
        };
        self.at += 1;
        Ok(value)
    }
}
