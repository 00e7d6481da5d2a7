//! Every script against the forwarding core, and proof that a wrong script fails.

use onym_testkit::core::Core;
use onym_testkit::run::{Outcome, run};
use onym_testkit::script::parse;
use onym_testkit::{files, report};
use std::path::Path;

fn all_laws(core: Core) {
    let all = files::load_all(&files::conformance().join("pull"));
    let scripts = all.unwrap_or_else(|e| panic!("{e:?}"));
    let report = report::run_all(&core, &scripts, 4);
    assert!(report.failures().is_empty(), "{}\n{}", report.failures().join("\n"), report.summary());
    assert!(report.counts().0 >= 200, "{}", report.summary());
}

#[test]
fn the_core_keeps_every_law_that_it_can_be_asked() {
    all_laws(Core::default());
}

#[test]
fn no_law_depends_on_whether_peers_return_our_tokens() {
    all_laws(Core { returned: true, ..Core::default() });
}

#[test]
fn no_law_depends_on_tokens_of_our_own() {
    all_laws(Core { tokens: false, returned: true });
}

fn outcome(body: &str) -> String {
    let text = format!("law: x\nsection: 1.1\ntags: virtual\n{body}\n");
    let script = parse(Path::new("t.pkt"), &text).unwrap_or_else(|e| panic!("{e}"));
    match run(&Core::default(), &script) {
        Outcome::Failed(text) => text,
        other => panic!("{other:?} of\n{body}"),
    }
}

const START: &str =
    "face a b c\nroute /x -> b\nlet D = data /x/1 content=one\na> interest /x/1 nonce=00000001";

#[test]
fn a_wrong_expectation_fails_with_the_line_and_the_reason() {
    let cases = [
        ("b< interest /x/2", "t.pkt:8: b< interest /x/2\n    got interest /x/1 nonce=00000001"),
        ("b< interest /x/2", "the name differs"),
        ("b< interest /x/1 nonce=00000002", "nonce is 00000001"),
        ("b< interest /x/1 prefix", "prefix is absent"),
        ("b< interest /x/1 hop=5", "hop is absent"),
        ("b< interest /x/1 nonce=!00000001", "nonce is 00000001"),
        ("b< data /x/1", "it is not a Data packet"),
        ("b< nack no-route /x/1", "it is not a Nack"),
        ("b< nothing", "got interest /x/1"),
        ("c< interest /x/1", "nothing came in 5000 ms; verdicts so far: interest.forwarded=1"),
        ("", "at the end face b got interest /x/1"),
        ("b< interest /x/1\nexpect forwarded=2", "forwarded is 1"),
        ("b< interest /x/1\nexpect data.satisfied=1", "satisfied is 0"),
        ("b< interest /x/1\nb> data /x/1 mark=1\na< data /x/1", "mark is 1 and was not expected"),
        ("b< interest /x/1\nb> data /x/1\na< packet D", "the octets are not those of D"),
        ("b< interest /x/1\nb> data /x/1\na< data /x/1 token=aa", "token is absent"),
        ("b< interest /x/1\nb> data /x/1 fresh=5\na< data /x/1 fresh=6", "fresh is 5"),
        ("b< interest /x/1\nb> data /x/1\na< closed", "got data /x/1"),
        ("b< interest /x/1\na< closed", "the face is open"),
        ("b< interest /x/1\nwait 10\nb< interest /x/1 within=50", "nothing came in 50 ms"),
        ("a> interest /x/{2..3}\nb< interest /x/{1..2}", "got interest /x/3"),
    ];
    for (body, want) in cases {
        let text = outcome(&format!("{START}\n{body}"));
        assert!(text.contains(want), "{body}\n  wanted {want}\n  got {text}");
    }
}

#[test]
fn a_repeated_expectation_takes_any_order() {
    let text = "law: x\nsection: 1.1\nface a b\nroute /x -> b\na> interest /x/2\na> interest /x/1\nb< interest /x/{1..2}\n";
    let script = parse(Path::new("t.pkt"), text).unwrap();
    assert_eq!(run(&Core::default(), &script), Outcome::Passed);
}

#[test]
fn two_runs_of_a_script_are_the_same() {
    let body = format!("{START}\nb< interest /x/9");
    assert_eq!(outcome(&body), outcome(&body));
}
