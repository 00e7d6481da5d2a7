//! Known deviations of foreign forwarders, `spec/conformance/deviations/NAME.toml`.

use crate::report::Report;
use crate::run::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Scripts that a forwarder does not keep, each with the reason.
#[derive(Debug, Default, Clone)]
pub struct Deviations {
    scripts: BTreeMap<String, String>,
    not_run: BTreeMap<String, String>,
}

impl Deviations {
    /// Reads a file: tables `[scripts]` and `[not_run]` (scripts that would end the forwarder) of
    /// `name = "reason"`, and `about` in words.
    ///
    /// # Errors
    /// It cannot be read, or is not of that form.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        table.remove("about");
        let scripts = reasons(&mut table, "scripts")?;
        let not_run = reasons(&mut table, "not_run")?;
        match table.keys().next() {
            Some(key) => Err(format!("unknown key {key:?}; allowed: about, scripts, not_run")),
            None => Ok(Self { scripts, not_run }),
        }
    }

    /// The names of the scripts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scripts.keys().chain(self.not_run.keys()).map(String::as_str)
    }

    /// Why a script must not be run against this forwarder.
    #[must_use]
    pub fn forbids(&self, script: &str) -> Option<&str> {
        self.not_run.get(script).map(String::as_str)
    }

    /// Makes failures that are known deviations, and says which deviations are there no longer.
    pub fn apply(&self, report: &mut Report) -> String {
        let mut gone = String::new();
        for (name, outcome) in &mut report.outcomes {
            let Some(reason) = self.scripts.get(name) else { continue };
            match outcome {
                Outcome::Failed(_) => *outcome = Outcome::Deviates(reason.clone()),
                Outcome::Passed => {
                    let _ = writeln!(
                        gone,
                        "note  {name} passed, and is listed as a deviation: {reason}"
                    );
                }
                _ => {}
            }
        }
        gone
    }
}

fn reasons(table: &mut toml::Table, key: &str) -> Result<BTreeMap<String, String>, String> {
    let Some(value) = table.remove(key) else { return Ok(BTreeMap::new()) };
    let toml::Value::Table(scripts) = value else {
        return Err(format!("{key} is no table of script = \"reason\""));
    };
    let one = |(name, reason): (String, toml::Value)| match reason {
        toml::Value::String(text) if !text.is_empty() => Ok((name, text)),
        _ => Err(format!("{key}.{name}: a reason in words is missing")),
    };
    scripts.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_deviation_fails_nothing_and_a_past_one_is_told() {
        let list = Deviations::parse(
            "about = \"x\"\n[scripts]\nold = \"was so\"\nbad = \"is so\"\ndown = \"?\"\n",
        )
        .unwrap();
        let outcomes = vec![
            ("bad".to_owned(), Outcome::Failed("t".into())),
            ("old".to_owned(), Outcome::Passed),
            ("new".to_owned(), Outcome::Failed("t".into())),
            ("down".to_owned(), Outcome::NotSetUp("u".into())),
        ];
        let mut report = Report { subject: "x".into(), outcomes };
        assert_eq!(
            list.apply(&mut report),
            "note  old passed, and is listed as a deviation: was so\n"
        );
        assert_eq!(report.outcomes[0].1, Outcome::Deviates("is so".into()));
        assert_eq!(report.failures(), ["t", "u"]);
    }

    #[test]
    fn a_list_without_reasons_is_refused() {
        for text in ["[scripts]\na = 1\n", "a = \"b\"\n", "[scripts]\n[other]\n", "not_run = 5\n"] {
            assert!(Deviations::parse(text).is_err(), "{text}");
        }
    }
}
