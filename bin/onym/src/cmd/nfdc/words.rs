//! The grammar of `nfdc`: noun, verb, then arguments as keyword and value; the first ones may be
//! given without their keywords.

use std::collections::BTreeMap;

/// A command, and what may follow it.
pub(super) struct Form {
    pub(super) noun: &'static str,
    pub(super) verb: &'static str,
    /// Keywords that take a value; the first `positional` may stand without the keyword, in order.
    keys: &'static [&'static str],
    positional: usize,
    /// Keywords by themselves.
    flags: &'static [&'static str],
    pub(super) about: &'static str,
}

const fn form(
    noun: &'static str,
    verb: &'static str,
    keys: &'static [&'static str],
    positional: usize,
    flags: &'static [&'static str],
    about: &'static str,
) -> Form {
    Form { noun, verb, keys, positional, flags, about }
}

/// All commands; the first of a noun is meant by the noun alone.
pub(super) const FORMS: &[Form] = &[
    form("status", "show", &[], 0, &[], "print general status"),
    form("status", "report", &["format"], 1, &[], "print NFD status report"),
    form("face", "list", &["remote", "local", "scheme"], 0, &[], "print face list"),
    form("face", "show", &["id"], 1, &[], "show face information"),
    form(
        "face",
        "create",
        &[
            "remote",
            "persistency",
            "local",
            "reliability",
            "congestion-marking",
            "congestion-marking-interval",
            "default-congestion-threshold",
            "mtu",
        ],
        1,
        &[],
        "create a face",
    ),
    form("face", "destroy", &["face"], 1, &[], "destroy a face"),
    form("channel", "list", &[], 0, &[], "print channel list"),
    form("strategy", "list", &[], 0, &[], "print strategy choices"),
    form("strategy", "show", &["prefix"], 1, &[], "show strategy choice for a prefix"),
    form("strategy", "set", &["prefix", "strategy"], 2, &[], "set strategy choice for a prefix"),
    form("strategy", "unset", &["prefix"], 1, &[], "clear strategy choice at a prefix"),
    form("fib", "list", &[], 0, &[], "print FIB entries"),
    form("route", "list", &["nexthop", "origin"], 0, &[], "print RIB routes"),
    form("route", "show", &["prefix"], 1, &[], "show routes toward a prefix"),
    form(
        "route",
        "add",
        &["prefix", "nexthop", "origin", "cost", "expires"],
        2,
        &["no-inherit", "capture"],
        "add a route",
    ),
    form("route", "remove", &["prefix", "nexthop", "origin"], 2, &[], "remove a route"),
    form("cs", "info", &[], 0, &[], "print CS information"),
    form("cs", "config", &["capacity", "admit", "serve"], 0, &[], "change CS configuration"),
    form("cs", "erase", &["prefix", "count"], 1, &[], "erase cached Data packets"),
];

/// The arguments of a command, by keyword; a flag has an empty value.
pub(super) type Given = BTreeMap<&'static str, String>;

/// What was typed.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(words: &[String]) -> Result<(&'static Form, Given), String> {
    let noun = words.first().ok_or("no command")?;
    let of_noun = || FORMS.iter().filter(|f| f.noun == *noun);
    let first = of_noun().next().ok_or_else(|| format!("no such command: {}", words.join(" ")))?;
    let Some(verb) = words.get(1) else { return Ok((first, arguments(first, &[])?)) };
    match of_noun().find(|f| f.verb == *verb) {
        Some(form) => Ok((form, arguments(form, &words[2..])?)),
        // `nfdc status report` and `nfdc face list remote …` have a verb; `nfdc face remote …` has not.
        None => Err(format!("no such command: {}", words.join(" "))),
    }
}

fn arguments(form: &Form, words: &[String]) -> Result<Given, String> {
    let mut given = Given::new();
    let mut words = words.iter();
    let mut next = form.keys[..form.positional].iter();
    let mut may_be_bare = true;
    while let Some(word) = words.next() {
        if let Some(flag) = form.flags.iter().find(|f| *f == word) {
            given.insert(flag, String::new());
            may_be_bare = false;
            continue;
        }
        let key = form.keys.iter().find(|k| *k == word && !given.contains_key(*k));
        let (key, value) = match key {
            Some(key) => {
                may_be_bare = form.keys[..form.positional].contains(key) && may_be_bare;
                let value = words.next().ok_or_else(|| format!("{key}: value is missing"))?;
                if next.as_slice().first() == Some(key) {
                    next.next();
                }
                (*key, value)
            }
            None if may_be_bare => {
                let key = next.next().ok_or_else(|| format!("{word}: unexpected argument"))?;
                (*key, word)
            }
            None => return Err(format!("{word}: unexpected argument")),
        };
        if given.insert(key, value.clone()).is_some() {
            return Err(format!("{key}: given twice"));
        }
    }
    let needed = &form.keys[..form.positional];
    // The format of a report is text when nothing is said.
    let missing = needed.iter().find(|k| !given.contains_key(*k) && **k != "format");
    match missing {
        Some(key) => Err(format!("{key}: required argument is missing")),
        None => Ok(given),
    }
}

/// The words of a line of a batch, as a shell would split them: quotes and backslashes.
///
/// # Errors
/// A quote that is not closed.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command with its arguments.
    type Typed = (String, Vec<(&'static str, String)>);

    fn given(line: &str) -> Result<Typed, String> {
        let (form, given) = parse(&split(line)?)?;
        Ok((format!("{} {}", form.noun, form.verb), given.into_iter().collect()))
    }

    #[test]
    fn the_first_arguments_need_no_keyword_and_others_do() {
        let pair = |k, v: &str| (k, v.to_owned());
        for (line, command, arguments) in [
            ("status", "status show", vec![]),
            ("face", "face list", vec![]),
            ("status report xml", "status report", vec![pair("format", "xml")]),
            ("face show 3", "face show", vec![pair("id", "3")]),
            ("face show id 3", "face show", vec![pair("id", "3")]),
            ("face list scheme udp4", "face list", vec![pair("scheme", "udp4")]),
            (
                "route add /x 3 cost 9 capture",
                "route add",
                vec![
                    pair("capture", ""),
                    pair("cost", "9"),
                    pair("nexthop", "3"),
                    pair("prefix", "/x"),
                ],
            ),
            (
                "route add prefix /x nexthop udp4://192.0.2.1",
                "route add",
                vec![pair("nexthop", "udp4://192.0.2.1"), pair("prefix", "/x")],
            ),
            (
                "route add prefix /x 3",
                "route add",
                vec![pair("nexthop", "3"), pair("prefix", "/x")],
            ),
            ("cs erase '/a b' # all", "cs erase", vec![pair("prefix", "/a b")]),
        ] {
            assert_eq!(given(line), Ok((command.to_owned(), arguments)), "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_told() {
        for (line, says) in [
            ("", "no command"),
            ("faces", "no such command"),
            ("face list udp4", "unexpected argument"),
            ("face show", "id: required"),
            ("face show id", "id: value is missing"),
            ("route add /x", "nexthop: required"),
            ("route add /x 3 4", "unexpected argument"),
            ("cs erase '/x", "quote"),
        ] {
            let error = given(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
