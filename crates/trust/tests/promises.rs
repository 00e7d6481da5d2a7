//! The page that tells what is promised about trust names tests that exist.

#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
fn every_test_that_the_page_names_is_in_the_file_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/trust.md")).unwrap();
    let mut seen = 0;
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let (mut file, mut source) = ("", String::new());
        for word in line.split('`').skip(1).step_by(2) {
            let is_source = [".rs", ".py"].iter().any(|end| word.ends_with(end));
            if is_source {
                let read = std::fs::read_to_string(root.join(word));
                (file, source) = (word, read.unwrap_or_else(|e| panic!("{word}: {e}")));
            } else if !file.is_empty() {
                let starts = [format!("fn {word}("), format!("def {word}(")];
                assert!(starts.iter().any(|start| source.contains(start)), "{file}: {word}");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} tests");
}

/// What is on a command line is read by everybody on the machine.
#[test]
fn no_option_takes_a_secret_but_only_the_file_that_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/cli.md")).unwrap();
    let mut seen = 0;
    for line in page.lines() {
        let mut words = line.split_whitespace().filter(|word| *word != "-o,");
        let Some(option) = words.next().and_then(|word| word.strip_prefix("--")) else { continue };
        let Some(value) = words.next().filter(|value| value.starts_with('<')) else { continue };
        let secret = ["passphrase", "password", "pin", "secret", "code", "token", "key"];
        if option.split('-').any(|part| secret.contains(&part)) {
            // The label of a hardware token, and the names of keys.
            let is_name = ["<LABEL>", "<NAME>", "<KEY>"].contains(&value);
            assert!(is_name || value == "<FILE>" || value == "<DIR>", "{line}");
            seen += usize::from(value == "<FILE>");
        }
    }
    assert!(seen >= 5, "{seen} options");
}
