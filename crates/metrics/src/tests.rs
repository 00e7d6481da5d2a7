use super::*;
use catalogue::{ALL, BUILD, FACE_SENT_BYTES, FACES, MANAGER_LINKS, SHARD_BUSY};
use std::collections::HashSet;

#[derive(Debug)]
struct Sample;

impl Source for Sample {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        page.family(&BUILD)?.sample(["1.0".into()], 1u64)?;
        page.single(&FACES, 2u64)?;
        let mut octets = page.family(&FACE_SENT_BYTES)?;
        octets.sample([256.into()], 10u64)?;
        octets.sample([257.into()], u64::MAX)?;
        page.family(&SHARD_BUSY)?.sample([0.into()], 1.5)?;
        page.family(&MANAGER_LINKS)?.sample(["a\"b\\c\nd".into()], 1u64)
    }
}

#[test]
fn a_page_is_openmetrics_text_with_escaped_labels() {
    let want = "\
# HELP onym_build The version of the program.
# TYPE onym_build info
onym_build_info{version=\"1.0\"} 1
# HELP onym_faces Faces.
# TYPE onym_faces gauge
onym_faces 2
# HELP onym_face_sent_bytes Octets sent on a face.
# TYPE onym_face_sent_bytes counter
# UNIT onym_face_sent_bytes bytes
onym_face_sent_bytes_total{face=\"256\"} 10
onym_face_sent_bytes_total{face=\"257\"} 18446744073709551615
# HELP onym_shard_busy_seconds Time that a shard spent not waiting.
# TYPE onym_shard_busy_seconds counter
# UNIT onym_shard_busy_seconds seconds
onym_shard_busy_seconds_total{shard=\"0\"} 1.5
# HELP onym_manager_links Links between functions, by state.
# TYPE onym_manager_links gauge
onym_manager_links{state=\"a\\\"b\\\\c\\nd\"} 1
# EOF
";
    assert_eq!(page(Sample).unwrap(), want);
}

#[test]
fn names_follow_the_scheme() {
    let mut names = HashSet::new();
    for metric in ALL {
        let name = metric.name;
        assert!(names.insert(name), "{name} twice");
        assert!(name.starts_with("onym_") && !metric.programs.is_empty(), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert_eq!(metric.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        assert_eq!(metric.kind == Kind::Info, name.ends_with("_info"), "{name}");
        let measured = name.trim_end_matches("_total");
        for (unit, suffix) in [
            (Unit::Bytes, "_bytes"),
            (Unit::Seconds, "_seconds"),
            (Unit::Ratio, "_ratio"),
            (Unit::Cores, "_cores"),
        ] {
            assert_eq!(metric.unit == unit, measured.ends_with(suffix), "{name}");
        }
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\']), "{name}");
    }
}

#[test]
fn the_reference_is_that_of_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == reference(), "docs/metrics.md is stale; run: cargo run -p xtask -- gen");
}
