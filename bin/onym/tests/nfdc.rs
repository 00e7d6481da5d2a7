//! `nfdc` as scripts have it: its words, its lines, its XML and its exit codes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use support::Place;

/// What a program said, and how it ended.
struct Said {
    code: i32,
    out: String,
    err: String,
}

/// `nfdc WORDS…`, by a link of that name.
fn nfdc(place: &Place, words: &str) -> Said {
    let link = place.path("nfdc");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_onym"), &link).unwrap();
    }
    let mut command = Command::new(link);
    let done = command
        .args(words.split_whitespace())
        .env("NDN_CLIENT_TRANSPORT", place.node())
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    Said { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

/// The one line that `words` print, without numbers of faces.
fn line(place: &Place, words: &str) -> String {
    let said = nfdc(place, words);
    assert_eq!(said.code, 0, "{words}: {}", said.err);
    said.out.trim_end().to_owned()
}

#[test]
fn faces_routes_strategies_and_the_cache_answer_in_the_lines_of_nfdc() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let made = line(&place, "face create udp4://127.0.0.1:7777");
    let id = made.split_once("id=").unwrap().1.split(' ').next().unwrap().to_owned();
    assert!(made.starts_with(&format!("face-created id={id} local=udp4://")), "{made}");
    assert!(
        made.contains(" remote=udp4://127.0.0.1:7777 persistency=persistent reliability=off congestion-marking="),
        "{made}"
    );
    let again = line(&place, "face create remote udp4://127.0.0.1:7777");
    assert!(again.starts_with(&format!("face-exists id={id} ")), "{again}");
    let raised = line(&place, "face create udp4://127.0.0.1:7777 persistency permanent");
    assert!(raised.starts_with(&format!("face-updated id={id} ")), "{raised}");
    assert!(raised.contains(" persistency=permanent "), "{raised}");
    let lowered = line(&place, "face create udp4://127.0.0.1:7777 persistency persistent");
    assert!(lowered.starts_with("face-exists "), "persistency is not lowered: {lowered}");
    let listed = line(&place, "face list scheme udp4");
    assert!(
        listed.starts_with(&format!("faceid={id} remote=udp4://127.0.0.1:7777 local=")),
        "{listed}"
    );
    assert!(listed.contains(" counters={in={0i 0d 0n 0B} out={0i 0d 0n 0B}} flags={non-local permanent point-to-point"), "{listed}");
    let ours = place.run(&["face", "list", "--scheme", "udp4", "--format", "nfdc"]);
    assert_eq!(ours.out.trim_end(), listed);
    let shown = line(&place, &format!("face show {id}"));
    assert!(shown.contains("\n    remote=udp4://127.0.0.1:7777\n"), "{shown}");

    assert_eq!(
        line(&place, &format!("route add /x {id} cost 9 expires 3600000")),
        format!(
            "route-add-accepted prefix=/x nexthop={id} origin=static cost=9 flags=child-inherit expires=3600s"
        )
    );
    assert_eq!(
        line(&place, "route add prefix /y nexthop udp4://127.0.0.1:7777 no-inherit capture"),
        format!(
            "route-add-accepted prefix=/y nexthop={id} origin=static cost=0 flags=capture expires=never"
        )
    );
    let routes = line(&place, "route list origin static");
    assert!(
        routes.lines().any(|l| l
            == format!("prefix=/y nexthop={id} origin=static cost=0 flags=capture expires=never")),
        "{routes}"
    );
    let ours = place.run(&["route", "list", "--prefix", "/y", "--format", "nfdc"]);
    assert!(routes.contains(ours.out.trim_end()) && !ours.out.is_empty(), "{}", ours.out);
    let fib = line(&place, "fib");
    assert!(fib.contains(&format!("  /x nexthops={{faceid={id} (cost=9)}}")), "{fib}");
    assert_eq!(
        line(&place, &format!("route remove /x {id}")),
        format!("route-removed prefix=/x nexthop={id} origin=static")
    );

    let set = line(&place, "strategy set /x /localhost/nfd/strategy/multicast");
    assert!(
        set.starts_with("strategy-set prefix=/x strategy=/localhost/nfd/strategy/multicast/"),
        "{set}"
    );
    let ours = place.run(&["strategy", "list", "--format", "nfdc"]);
    assert_eq!(ours.out.trim_end(), line(&place, "strategy list"));
    assert_eq!(line(&place, "strategy unset /x"), "strategy-unset prefix=/x");
    assert_eq!(
        line(&place, "cs config capacity 100 admit on serve off"),
        "cs-config-updated capacity=100 admit=on serve=off"
    );
    assert_eq!(line(&place, "cs erase /x"), "cs-erased prefix=/x count=0");
    assert!(line(&place, "cs").contains("\n     serve=off\n"), "{}", line(&place, "cs"));
    let gone = line(&place, &format!("face destroy {id}"));
    assert!(gone.starts_with(&format!("face-destroyed id={id} local=udp4://")), "{gone}");
}

#[test]
fn what_fails_ends_with_the_codes_of_nfdc() {
    let place = Place::new();
    let daemon = place.daemon(&[]);
    for (words, code, says) in [
        ("face show 99999", 3, "Face not found"),
        ("face list scheme nothing", 3, "Face not found"),
        ("face create nonsense", 4, "Error when canonizing"),
        ("route show /nobody", 6, "Route not found"),
        ("strategy set /x /no/strategy", 7, "Unknown strategy"),
        ("face create udp4://127.0.0.1:7777 persistency on-demand", 1, "when creating face"),
        ("faces", 2, "no such command"),
        ("face create", 2, "remote: required"),
    ] {
        let said = nfdc(&place, words);
        assert_eq!(said.code, code, "{words}: {}{}", said.out, said.err);
        assert!(said.err.contains(says) && said.out.is_empty(), "{words}: {}", said.err);
    }
    drop(daemon);
    assert_eq!(nfdc(&place, "status").code, 1);
}

#[test]
fn a_batch_ends_at_the_first_line_that_fails() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let batch = "# a comment\n\nstrategy set /a '/localhost/nfd/strategy/multicast'\nface show 99999\nstrategy unset /a\n";
    fs::write(place.path("batch"), batch).unwrap();
    let said = nfdc(&place, "-f batch");
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("line 4: Face not found"), "{}", said.err);
    assert!(
        line(&place, "strategy list").contains("prefix=/a "),
        "the line before was carried out"
    );
    assert_eq!(nfdc(&place, "-f nothing").code, 2);
}

#[test]
fn the_report_has_the_sections_and_the_document_of_nfd() {
    let place = Place::new();
    let _daemon = place.daemon(&["faces.udp.listen=[\"127.0.0.1:0\"]"]);
    let text = line(&place, "status report");
    let heads: Vec<&str> = text.lines().filter(|l| !l.starts_with(' ')).collect();
    assert_eq!(
        heads,
        [
            "General NFD status:",
            "Channels:",
            "Faces:",
            "FIB:",
            "RIB:",
            "CS information:",
            "Strategy choices:"
        ]
    );
    assert!(text.contains("\n                version=onym "), "{text}");
    assert!(text.contains("\n  nUnsatisfiedInterests="), "{text}");
    let xml = line(&place, "status report xml");
    assert!(xml.starts_with("<?xml version=\"1.0\"?>\n<nfdStatus xmlns=\"ndn:/localhost/nfd/status/1\"><generalStatus><version>onym "), "{xml}");
    let order = [
        "<generalStatus>",
        "<uptime>PT",
        "<nCsEntries>",
        "<packetCounters><incomingPackets><nInterests>",
        "<nSatisfiedInterests>",
        "</generalStatus><channels><channel><localUri>",
        "</channels><faces><face><faceId>",
        "<linkType>",
        "<flags",
        "<byteCounters><incomingBytes>",
        "</faces><fib><fibEntry><prefix>",
        "<nextHops><nextHop><faceId>",
        "</fib><rib",
        "<cs><capacity>",
        "<admitEnabled/><serveEnabled/><nEntries>",
        "</cs><strategyChoices><strategyChoice><namespace>/</namespace><strategy><name>",
        "</nfdStatus>",
    ];
    let mut at = 0;
    for part in order {
        at += xml[at..]
            .find(part)
            .unwrap_or_else(|| panic!("{part} is missing or out of order: {xml}"));
    }
}
