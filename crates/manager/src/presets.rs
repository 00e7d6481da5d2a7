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

/// The description of a preset.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(n, _, _)| *n == name).map(|(_, _, text)| *text)
}
