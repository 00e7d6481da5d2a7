//! Names of strategy instances: `/localhost/nfd/strategy/<name>[/v=<n>[/<parameter>~<value>]…]`.

use super::{KINDS, Kind, Strategy, StrategyError};
use onym_wire::{Component, Name, NameRef};

/// The first components of the name of every strategy.
const PREFIX: [&[u8]; 3] = [b"localhost", b"nfd", b"strategy"];

/// The marker of a version in the older convention.
const VERSION_MARKER: u8 = 0xfd;

/// A strategy made from its instance name.
#[derive(Debug)]
pub struct Instance {
    /// The strategy.
    pub strategy: Box<dyn Strategy>,
    /// Its full name: our version, and the parameters as they were given.
    pub name: Name,
}

impl Instance {
    /// Makes the strategy that `name` asks for. Without a version, or with an older one, it is the
    /// newest that there is.
    ///
    /// # Errors
    /// [`StrategyError`]; [`StrategyError::status_code`] is its code in management.
    ///
    /// ```
    /// use onym_forward::strategy::Instance;
    /// use onym_wire::Name;
    /// let name: Name = "/localhost/nfd/strategy/multicast".parse().unwrap();
    /// let instance = Instance::create(name.as_ref()).unwrap();
    /// assert_eq!(instance.name.to_string(), "/localhost/nfd/strategy/multicast/v=5");
    /// ```
    pub fn create(name: NameRef<'_>) -> Result<Self, StrategyError> {
        let kind = kind_of(name)?;
        let mut full = name.prefix(PREFIX.len() + 1).to_name();
        full.append_version(kind.version);
        let mut rest = name.suffix(PREFIX.len() + 1).components();
        if let Some(component) = rest.next() {
            let asked = version_of(component).ok_or_else(|| StrategyError::Parameter {
                parameter: component.to_string(),
                reason: "a version (v=<number>) comes before the first parameter".to_owned(),
            })?;
            if asked > kind.version {
                return Err(StrategyError::Version { name: kind.name, ours: kind.version, asked });
            }
        }
        let mut parameters = Vec::new();
        for component in rest {
            parameters.push(parameter_of(component)?);
            full.push(component);
        }
        Ok(Self { strategy: (kind.create)(&parameters)?, name: full })
    }
}

fn kind_of(name: NameRef<'_>) -> Result<&'static Kind, StrategyError> {
    let unknown = || StrategyError::Unknown(name.to_string());
    let mut components = name.components();
    for expected in PREFIX {
        if components.next() != Some(Component::generic(expected)) {
            return Err(unknown());
        }
    }
    let called = components.next().filter(|c| c.is_generic()).ok_or_else(unknown)?;
    KINDS.iter().find(|kind| kind.name.as_bytes() == called.value).ok_or_else(unknown)
}

fn version_of(component: Component<'_>) -> Option<u64> {
    component.as_version().or_else(|| component.as_marked(VERSION_MARKER))
}

fn parameter_of(component: Component<'_>) -> Result<(&str, &str), StrategyError> {
    let text = component.is_generic().then(|| std::str::from_utf8(component.value).ok()).flatten();
    text.and_then(|text| text.split_once('~')).filter(|(name, _)| !name.is_empty()).ok_or_else(
        || StrategyError::Parameter {
            parameter: component.to_string(),
            reason: "a parameter is written <name>~<value>".to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(uri: &str) -> Result<String, StrategyError> {
        let name: Name = uri.parse().unwrap();
        Instance::create(name.as_ref()).map(|i| i.name.to_string())
    }

    #[test]
    fn every_strategy_is_found_without_version_with_any_up_to_its_own_and_no_newer() {
        for kind in KINDS {
            let base = format!("/localhost/nfd/strategy/{}", kind.name);
            let full = format!("{base}/v={}", kind.version);
            assert_eq!(create(&base).unwrap(), full);
            for version in 1..=kind.version {
                assert_eq!(create(&format!("{base}/v={version}")).unwrap(), full);
                assert_eq!(create(&format!("{base}/%FD%0{version}")).unwrap(), full);
            }
            let newer = create(&format!("{base}/v={}", kind.version + 1)).unwrap_err();
            assert_eq!(newer.status_code(), 404, "{newer}");
        }
    }

    #[test]
    fn names_outside_the_namespace_and_unknown_names_are_404() {
        for uri in [
            "/",
            "/localhost/nfd/strategy",
            "/localhost/nfd/strategy/fastest",
            "/localhost/nfd/best-route",
            "/localhop/nfd/strategy/best-route",
            "/localhost/nfd/strategy/32=best-route",
        ] {
            assert_eq!(create(uri).unwrap_err().status_code(), 404, "{uri}");
        }
    }

    #[test]
    fn parameters_follow_the_version_and_are_kept_in_the_name() {
        let base = "/localhost/nfd/strategy";
        let full = format!("{base}/multicast/v=5/retx-suppression-initial~20");
        assert_eq!(create(&full).unwrap(), full);
        let older = format!("{base}/multicast/v=4/retx-suppression-initial~20");
        assert_eq!(create(&older).unwrap(), full);
        let both = format!(
            "{base}/asf/v=5/probing-interval~5000/max-timeouts~2/retx-suppression-multiplier~1.5"
        );
        assert_eq!(create(&both).unwrap(), both);
    }

    #[test]
    fn bad_parameters_are_409_and_say_what_is_allowed() {
        for (tail, says) in [
            ("multicast/retx-suppression-initial~20", "version"),
            ("multicast/v=5/retx-suppression-initial", "<name>~<value>"),
            ("multicast/v=5/colour~red", "no such parameter"),
            ("best-route/v=5/equal~any", "flow or first"),
            ("best-route/v=5/others~drop", "join or forward"),
            ("multicast/v=5/retx-suppression-initial~fast", "milliseconds"),
            ("multicast/v=5/retx-suppression-multiplier~0.5", "at least 1"),
            ("multicast/v=5/retx-suppression-max~5", "retx-suppression-initial"),
            ("asf/v=5/probing-interval~999", "1000"),
            ("asf/v=5/max-timeouts~0", "1"),
            ("asf/v=5/measurements-lifetime~60000", "probing-interval"),
            ("random/v=1/retx-suppression-max~5", "no such parameter"),
            ("access/v=1/a~b", "no such parameter"),
            ("self-learning/v=1/a~b", "no such parameter"),
        ] {
            let error = create(&format!("/localhost/nfd/strategy/{tail}")).unwrap_err();
            assert_eq!(error.status_code(), 409, "{tail}: {error}");
            assert!(error.to_string().contains(says), "{tail}: {error}");
        }
    }
}
