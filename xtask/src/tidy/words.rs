//! Words that docs/glossary.md does not want.
//!
//! Its table "Words not used" has the words; `xtask/words.toml` has how often each still stands in
//! the tree, which only falls.

use super::files;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The heading in the glossary above the table of words.
const HEADING: &str = "## Words not used";
/// What has prose of ours.
const PROSE: &[&str] = &["rs", "md", "c", "h", "py", "ts", "toml", "sh"];
/// What is not ours to word, or lists the words.
const LEFT_OUT: &[&str] =
    &["docs/glossary.md", "docs/results", "xtask/words.toml", "xtask/src/tidy"];

pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let glossary = fs::read_to_string(root.join("docs/glossary.md")).context("docs/glossary.md")?;
    let words = forbidden(&glossary);
    if words.is_empty() {
        faults.push(format!("docs/glossary.md has no table under {HEADING:?}"));
    }
    let budget = fs::read_to_string(root.join("xtask/words.toml")).context("xtask/words.toml")?;
    let budget: BTreeMap<String, usize> = toml::from_str(&budget).context("xtask/words.toml")?;
    for unknown in budget.keys().filter(|word| !words.iter().any(|(w, _)| w == *word)) {
        faults.push(format!("xtask/words.toml: docs/glossary.md does not forbid {unknown:?}"));
    }
    let found = count(root, &words)?;
    for ((word, instead), places) in words.iter().zip(found) {
        let most = budget.get(word).copied().unwrap_or(0);
        let Some(place) = places.get(most) else {
            if places.len() < most {
                println!(
                    "tidy: {word:?} stands in {} places: lower xtask/words.toml",
                    places.len()
                );
            }
            continue;
        };
        faults.push(format!(
            "{word:?} stands in {} places, at most {most} are left (xtask/words.toml); the last one \
             is {place}. Write {instead} (docs/glossary.md)",
            places.len()
        ));
    }
    Ok(())
}

/// The words of the glossary's table, each with what is written instead.
fn forbidden(glossary: &str) -> Vec<(String, String)> {
    let Some((_, table)) = glossary.split_once(HEADING) else { return Vec::new() };
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        Some((cells.next()?.to_lowercase(), cells.next()?.to_owned()))
    })
    .collect()
}

/// Where each of the words stands, a place for each line.
fn count(root: &Path, words: &[(String, String)]) -> Result<Vec<Vec<String>>> {
    let mut found = vec![Vec::new(); words.len()];
    for file in files(root)? {
        let has_prose = file.extension().is_some_and(|e| PROSE.iter().any(|p| e == *p));
        if !has_prose || LEFT_OUT.iter().any(|f| file.starts_with(f)) {
            continue;
        }
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for ((word, _), places) in words.iter().zip(&mut found) {
                if has_word(line, word) {
                    places.push(format!("{}:{}", file.display(), number + 1));
                }
            }
        }
    }
    Ok(found)
}

/// Whether one of the words that `line` consists of is `word`, in the singular or the plural:
/// identifiers are taken apart where their words meet.
fn has_word(line: &str, word: &str) -> bool {
    parts(line).any(|part| {
        let part = part.to_lowercase();
        part == word || part.strip_suffix('s') == Some(word)
    })
}

/// The words of a line: `FatherName`, `father_name` and `father name` have two.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphabetic()).flat_map(|word| {
        let mut starts: Vec<usize> = vec![0];
        let letters: Vec<(usize, char)> = word.char_indices().collect();
        for pair in letters.windows(2) {
            if pair[0].1.is_lowercase() && pair[1].1.is_uppercase() {
                starts.push(pair[1].0);
            }
        }
        let ends = starts.clone().into_iter().skip(1).chain([word.len()]);
        starts.into_iter().zip(ends).map(|(from, to)| &word[from..to]).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_prose_and_within_identifiers() {
        for line in ["its father is", "NO_FATHER", "fn father_of(", "struct HasFather;", "Fathers"]
        {
            assert!(has_word(line, "father"), "{line}");
        }
        for line in ["farther", "fatherless", "grandfather"] {
            assert!(!has_word(line, "father"), "{line}");
        }
    }

    #[test]
    fn the_table_of_the_glossary_is_read() {
        let text = "# G\n\n## Words not used\n\nText.\n\n| word | instead | why |\n|---|---|---|\n\
            | father | parent | x |\n| heed | obey | y |\n\n## Other\n\n| a | b |\n|---|---|\n| c | d |\n";
        let words = forbidden(text);
        assert_eq!(words, [("father".into(), "parent".into()), ("heed".into(), "obey".into())]);
    }
}
