//! Suggests the nearest known name for an unknown one.

/// The nearest name, for a mistyped one.
pub(crate) fn near(word: &str, names: &[&str]) -> String {
    let distance = |name: &str| {
        let common = word.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        (word.len().abs_diff(name.len()), std::cmp::Reverse(common))
    };
    let close = names.iter().filter(|n| n.chars().next() == word.chars().next());
    match close.min_by_key(|n| distance(n)) {
        Some(name) => format!("did you mean {name:?}?"),
        None if names.is_empty() => "declare it first".to_owned(),
        None => format!("declare it, or use one of: {}", names.join(", ")),
    }
}
