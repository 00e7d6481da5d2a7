//! Networks that come with the manager (`onym net preset NAME`).

/// Name, what it is, and its description in TOML.
pub const PRESETS: [(&str, &str, &str); 5] = [
    ("nfd", "the forwarder taken apart", include_str!("../presets/nfd.toml")),
    ("minimal", "one way in for each kind of client", include_str!("../presets/minimal.toml")),
    (
        "interlinked",
        "two name routers, a guarded loop",
        include_str!("../presets/interlinked.toml"),
    ),
    (
        "scaling",
        "a backward router that is the bottleneck",
        include_str!("../presets/scaling.toml"),
    ),
    ("poisoning", "a cache that can be poisoned", include_str!("../presets/poisoning.toml")),
];

/// One of them, for readers.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its description in TOML.
    pub toml: &'static str,
}

/// All of them.
#[must_use]
pub fn list() -> Vec<Preset> {
    PRESETS.iter().map(|(name, about, toml)| Preset { name, about, toml }).collect()
}

/// The description of a preset.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(n, _, _)| *n == name).map(|(_, _, text)| *text)
}
