use super::*;
use std::io::Write as _;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut f = tempfile::NamedTempFile::new().unwrap();
    f.write_all(text.as_bytes()).unwrap();
    f
}

#[test]
fn the_merged_configuration_reads_as_itself() {
    let config = Config::default();
    assert_eq!(Config::parse(&config.to_toml(), "printed").unwrap(), config);
}

#[test]
fn a_setting_goes_over_the_file() {
    let f = file("shards = 2\n[cs]\npackets_max = 5\n");
    let sets = [
        "cs.packets_max=7",
        "faces.udp.listen=127.0.0.1:0",
        "faces.tcp.listen=",
        "faces.unix.path=/tmp/a.sock",
        "strategy.\"/a.b\"=multicast",
    ]
    .map(str::to_owned);
    let config = Config::load(Some(f.path()), &sets).unwrap();
    assert_eq!((config.shards, config.cs.packets_max), (2, 7));
    assert_eq!(config.faces.udp.listen, OneOrMany::of(&["127.0.0.1:0"]));
    assert_eq!(config.faces.tcp.listen, OneOrMany::default());
    assert_eq!(config.faces.unix.path.0, "/tmp/a.sock");
    assert_eq!(config.strategy["/a.b"], "multicast");
}

#[test]
fn an_unknown_key_is_refused_with_file_line_and_what_is_allowed() {
    let f = file("shards = 1\n[faces.udp]\nlisten = []\nmtuu = 1000\n");
    let error = Config::load(Some(f.path()), &[]).unwrap_err().to_string();
    for word in [f.path().to_str().unwrap(), "line 4", "mtuu", "receive_buffer_bytes"] {
        assert!(error.contains(word), "{word} is missing in: {error}");
    }
}

#[test]
fn a_value_out_of_range_is_refused_with_key_and_what_is_allowed() {
    let f = file("[faces.udp]\nmtu = 20\n");
    let error = Config::load(Some(f.path()), &[]).unwrap_err().to_string();
    for word in ["faces.udp.mtu", "20", "64 to 8800"] {
        assert!(error.contains(word), "{word} is missing in: {error}");
    }
    let error = Config::load(None, &["faces.udp.listen=nowhere".into()]).unwrap_err().to_string();
    assert!(error.contains("faces.udp.listen") && error.contains("address:port"), "{error}");
    let error = Config::load(None, &["strategy.\"/\"=fastest".into()]).unwrap_err().to_string();
    assert!(error.contains("best-route"), "{error}");
}

#[test]
fn a_wrong_setting_is_refused_with_the_setting() {
    for set in ["cs.packets_max", "cs.packets_max=many", "cs.nothing=1", "shards.x=1"] {
        let error = Config::load(None, &[set.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(set), "{error}");
    }
    let sets = ["shards=1", "cs.packets_max=many", "push.key=7"].map(str::to_owned);
    let error = Config::load(None, &sets).unwrap_err().to_string();
    assert!(error.starts_with("--set cs.packets_max=many: "), "{error}");
    assert!(!error.contains("shards=1") && !error.contains("push.key"), "{error}");
}

#[test]
fn what_looks_like_a_number_is_text_where_the_key_wants_text() {
    let sets = ["push.node=12", "push.key=007", "push.domain=1e3", "shards=3"].map(str::to_owned);
    let config = Config::load(None, &sets).unwrap();
    assert_eq!((config.push.node.as_str(), config.push.key.as_str()), ("12", "007"));
    assert_eq!((config.push.domain.as_str(), config.shards), ("1e3", 3));
}

#[test]
fn the_reference_in_docs_is_what_the_schema_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == reference(),
        "stale; run: cargo run -p onym-node --example config_reference > docs/config.md"
    );
}

#[test]
fn a_change_says_whether_it_waits_for_a_restart() {
    let old = Config::default();
    let mut new = old.clone();
    new.shards = 3;
    new.cs.packets_max = 9;
    new.strategy.insert("/a".into(), "multicast".into());
    let found = changes(&old, &new);
    assert_eq!(found.restart, ["shards"]);
    assert_eq!(found.live, ["cs.packets_max", "strategy"]);
    let kept = new.keeping(&old, &found.restart);
    assert_eq!((kept.shards, kept.cs.packets_max), (0, 9));
    assert_eq!(kept.strategy["/a"], "multicast");
}

#[test]
fn drop_ins_lie_over_the_file_in_the_order_of_their_names() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("onym.toml");
    let drop_ins = place.path().join("onym.toml.d");
    std::fs::create_dir(&drop_ins).unwrap();
    std::fs::write(&file, "shards = 1\n[cs]\npackets_max = 10\npolicy = \"priority-fifo\"")
        .unwrap();
    std::fs::write(drop_ins.join("10-a.toml"), "[cs]\npackets_max = 20\n").unwrap();
    std::fs::write(drop_ins.join("20-b.toml"), "[cs]\npackets_max = 30\n").unwrap();
    std::fs::write(drop_ins.join("30-c.toml~"), "this is read by nobody").unwrap();
    let config = Config::load(Some(&file), &["cs.bytes_max=4096".into()]).unwrap();
    assert_eq!((config.shards, config.cs.packets_max, config.cs.bytes_max), (1, 30, 4096));
    assert!(config.to_toml().contains("priority-fifo"));
    std::fs::write(drop_ins.join("40-d.toml"), "\n[cs]\nbytes = 1\n").unwrap();
    let error = Config::load(Some(&file), &[]).unwrap_err().to_string();
    assert!(error.contains("40-d.toml") && error.contains("line 3"), "{error}");
}

#[test]
fn networks_of_a_border_and_what_they_tell_each_other_are_checked() {
    let refused = |more: &str| {
        let text = format!("[routing]\nnetwork = \"/net\"\n{more}");
        Config::parse(&text, "given").err().map(|e| e.to_string())
    };
    let far = "[[routing.area]]\nnetwork = \"/far\"\n";
    let link = "[[routing.area.neighbour]]\nuri = \"udp4://192.0.2.1:6363\"\n";
    let export = "[[routing.export]]\nfrom = \"/far\"\nto = \"/net\"\n";
    assert_eq!(refused(&format!("{far}{link}{export}")), None);
    for (text, key) in [
        ("[[routing.area]]\nnetwork = \"/net\"\n".to_owned(), "routing.area[0].network"),
        (format!("{far}router = \"/net/a\"\n"), "routing.area[0].router"),
        (format!("{far}accept = [\"no name\"]\n"), "routing.area[0].accept"),
        (format!("{far}{link}{link}"), "routing.area[0].neighbour"),
        (export.to_owned(), "routing.export[0].from"),
        (format!("{far}{export}{export}"), "routing.export[1].to"),
        (format!("{far}{export}[[routing.export.summary]]\nprefix = \"x%\"\n"), "prefix"),
        (far.replace("/far", "/n").repeat(16), "routing.area"),
    ] {
        let told = refused(&text);
        assert!(told.as_ref().is_some_and(|told| told.contains(key)), "{key}: {told:?}");
    }
    let alone = Config::parse(far, "given").unwrap_err().to_string();
    assert!(alone.contains("routing.network"), "{alone}");
}
