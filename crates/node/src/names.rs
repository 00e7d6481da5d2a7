//! Names as the configuration writes them.

/// Prefix of the names of strategies.
pub const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy";

/// The strategies with their newest version.
pub const STRATEGIES: &[(&str, u64)] = &[
    ("best-route", 5),
    ("multicast", 5),
    ("asf", 5),
    ("access", 1),
    ("random", 1),
    ("self-learning", 1),
];

/// What a wrong strategy is told.
pub const STRATEGIES_ALLOWED: &str = "allowed are best-route, multicast, asf, access, random, \
     self-learning, or their full names under /localhost/nfd/strategy with version and parameters";

/// Whether `uri` is a name.
#[must_use]
pub fn parses(uri: &str) -> bool {
    uri.starts_with("/") && uri.parse::<onym_wire::name::Name>().is_ok()
}

/// The full name of the strategy that `text` means: its own name or the name's last part.
/// `None` when there is no such strategy. A missing version becomes the newest.
#[must_use]
pub fn strategy_name(text: &str) -> Option<String> {
    let rest = match text.strip_prefix(STRATEGY_PREFIX) {
        Some(rest) => rest.strip_prefix('/')?,
        None if text.starts_with('/') => return None,
        None => text,
    };
    let (short, after) = rest.split_once('/').unwrap_or((rest, ""));
    let (_, newest) = STRATEGIES.iter().find(|(name, _)| *name == short)?;
    match after {
        "" => Some(format!("{STRATEGY_PREFIX}/{short}/v={newest}")),
        _ if after.starts_with("v=") => Some(format!("{STRATEGY_PREFIX}/{short}/{after}")),
        _ => Some(format!("{STRATEGY_PREFIX}/{short}/v={newest}/{after}")),
    }
}

/// Why `text` names no strategy that could be set, if so.
#[must_use]
pub fn strategy_problem(text: &str) -> Option<String> {
    let Some(full) = strategy_name(text) else { return Some("there is no such strategy".into()) };
    match full.parse::<onym_wire::name::Name>() {
        Err(error) => Some(error.to_string()),
        Ok(name) => {
            onym_forward::strategy::Instance::create(name.as_ref()).err().map(|e| e.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_strategy_name_becomes_the_newest_version() {
        let name = |t| strategy_name(t);
        assert_eq!(name("asf").unwrap(), "/localhost/nfd/strategy/asf/v=5");
        assert_eq!(name("asf/a~1").unwrap(), "/localhost/nfd/strategy/asf/v=5/a~1");
        assert_eq!(
            name("/localhost/nfd/strategy/multicast/v=3").unwrap(),
            "/localhost/nfd/strategy/multicast/v=3"
        );
        assert_eq!((name("/asf"), name("fastest"), name("")), (None, None, None));
    }
}
