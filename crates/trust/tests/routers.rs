//! The rules that NLSR and NFD of the NDN testbed validate with, in their expressions: hello and LSA
//! by the router itself, routers by operators of their site, commands by operators, registrations by
//! neighbours, everything else by the hierarchy.

#![allow(clippy::unwrap_used)]

use onym_trust::conf::{Rules, no_include};
use onym_trust::{Policy, Subject};
use onym_wire::Name;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A rule with one checker for ECDSA.
fn rule(id: &str, kind: &str, filter: &str, locator: &str) -> String {
    let checker = match locator {
        "" => "type hierarchical\nsig-type ecdsa-sha256".to_owned(),
        locator => format!(
            "type customized\nsig-type ecdsa-sha256\nkey-locator\n{{\ntype name\n{locator}\n}}"
        ),
    };
    format!(
        "rule\n{{\nid \"{id}\"\nfor {kind}\nfilter\n{{\ntype name\nregex {filter}\n}}\nchecker\n{{\n{checker}\n}}\n}}\n"
    )
}

fn relation(key: &str, relation: &str, packet: (&str, &str)) -> String {
    let (regex, expand) = packet;
    format!(
        "hyper-relation\n{{\nk-regex {key}\nk-expand \\\\1\nh-relation {relation}\np-regex {regex}\np-expand {expand}\n}}"
    )
}

const ANCHORS: &str = "trust-anchor\n{\ntype dir\ndir anchors\n}\n";
const CERTIFICATE: &str = "^[^<KEY>]*<KEY><><><>$";
const OPERATOR: &str = "^([^<KEY><%C1.Operator>]*)<%C1.Operator>[^<KEY>]*<KEY><><>?<>?$";

/// The file of NLSR, with the sections that the rules are in among others.
fn nlsr() -> String {
    let router = "^([^<KEY><nlsr>]*)<nlsr><KEY><><>?<>?$";
    let hello = ("^([^<nlsr><INFO>]*)<nlsr><INFO><><>$", r"\\1");
    // The last four are type, number, version and segment.
    let lsa = ("^<localhop>([^<nlsr><LSA>]*)<nlsr><LSA>(<>*)<><><><>$", r"\\1\\2");
    let below = ("^([^<KEY><%C1.Router>]*)<%C1.Router>[^<KEY>]*<KEY><><><>$", r"\\1");
    let validator = [
        rule(
            "hello",
            "data",
            "^[^<nlsr><INFO>]*<nlsr><INFO><><>$",
            &relation(router, "equal", hello),
        ),
        rule("lsa", "data", "^[^<nlsr><LSA>]*<nlsr><LSA>", &relation(router, "equal", lsa)),
        rule(
            "router",
            "data",
            "^[^<KEY><%C1.Router>]*<%C1.Router>[^<KEY><nlsr>]*<KEY><><><>$",
            &relation(OPERATOR, "equal", below),
        ),
        rule("hierarchy", "data", CERTIFICATE, ""),
    ];
    let commands = [
        rule(
            "command",
            "interest",
            "^<localhost><nlsr><prefix-update>[<advertise><withdraw>]<><><>$",
            &format!("regex {OPERATOR}"),
        ),
        rule("hierarchy", "data", CERTIFICATE, ""),
    ];
    format!(
        "general\n{{\nnetwork /ndn/ ; of all\nrouter /%C1.Router/r\n}}\nsecurity\n{{\nvalidator\n{{\n{}{ANCHORS}}}\n\
         prefix-update-validator\n{{\n{}{ANCHORS}}}\ncert-to-publish \"router.cert\"\n}}\n",
        validator.concat(),
        commands.concat()
    )
}

fn nfd() -> String {
    let above = relation("^(<>*)<KEY><>{1,3}$", "is-prefix-of", ("^(<>*)$", r"\\1"));
    let filter = "^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$";
    let rules = [
        rule("register", "interest", filter, "regex ^<>*<KEY><>{1,3}$"),
        rule("hierarchy", "data", "^<>*<KEY><>{3}$", &above),
    ];
    format!(
        "rib\n{{\nlocalhop_security\n{{\n{}{ANCHORS}}}\nreadvertise_nlsr yes\n}}\n",
        rules.concat()
    )
}

/// A packet, a key, and the rule that lets the key sign it; an Interest where the packet begins
/// with `localhost` or with `localhop/nfd`.
type Case = (&'static str, &'static str, Option<&'static str>);

fn holds(text: &str, section: &str, cases: &[Case]) {
    let rules = Rules::parse(text, section, &mut no_include).unwrap();
    assert_eq!(rules.anchors.len(), 1);
    for (packet, key, expected) in cases {
        let (uri, key) = (name(packet), name(key));
        let is_interest = packet.starts_with("/localhost") || packet.starts_with("/localhop/nfd");
        let of = if is_interest { Subject::interest } else { Subject::data };
        let check = |signature| rules.check(&of(uri.as_ref()).signed(signature), key.as_ref());
        match (check(3), expected) {
            (onym_trust::Verdict::Allowed { rule }, Some(expected)) => assert_eq!(rule, *expected),
            (verdict, expected) => {
                assert!(!verdict.is_allowed() && expected.is_none(), "{packet} {key}: {verdict:?}");
            }
        }
        assert!(!check(1).is_allowed(), "RSA: {packet}");
    }
}

#[test]
fn nlsrs_validator_lets_a_router_speak_for_itself_and_an_operator_for_routers_of_its_site() {
    holds(
        &nlsr(),
        "security.validator",
        &[
            (
                "/ndn/s/%C1.Router/r/nlsr/INFO/n/v=1",
                "/ndn/s/%C1.Router/r/nlsr/KEY/k/i/v=1",
                Some("hello"),
            ),
            // As key name, and without the version.
            (
                "/ndn/s/%C1.Router/r/nlsr/INFO/n/v=1",
                "/ndn/s/%C1.Router/r/nlsr/KEY/k",
                Some("hello"),
            ),
            (
                "/ndn/s/%C1.Router/r/nlsr/INFO/n/v=1",
                "/ndn/s/%C1.Router/r/nlsr/KEY/k/i",
                Some("hello"),
            ),
            ("/ndn/s/%C1.Router/r/nlsr/INFO/n/v=1", "/ndn/s/%C1.Router/q/nlsr/KEY/k/i/v=1", None),
            ("/ndn/s/%C1.Router/r/nlsr/INFO/n/v=1", "/ndn/s/%C1.Router/r/KEY/k/i/v=1", None),
            (
                "/localhop/ndn/nlsr/LSA/s/%C1.Router/r/NAME/%01/v=1/seg=0",
                "/ndn/s/%C1.Router/r/nlsr/KEY/k/i/v=1",
                Some("lsa"),
            ),
            (
                "/localhop/ndn/nlsr/LSA/s/%C1.Router/q/NAME/%01/v=1/seg=0",
                "/ndn/s/%C1.Router/r/nlsr/KEY/k/i/v=1",
                None,
            ),
            (
                "/ndn/s/%C1.Router/r/KEY/k/o/v=1",
                "/ndn/s/%C1.Operator/o/KEY/k/i/v=1",
                Some("router"),
            ),
            ("/ndn/s/%C1.Router/r/KEY/k/o/v=1", "/ndn/t/%C1.Operator/o/KEY/k/i/v=1", None),
            ("/ndn/s/%C1.Router/r/KEY/k/o/v=1", "/ndn/s/KEY/k/i/v=1", None),
            (
                "/ndn/s/%C1.Router/r/nlsr/KEY/k/r/v=1",
                "/ndn/s/%C1.Router/r/KEY/k/o/v=1",
                Some("hierarchy"),
            ),
            ("/ndn/s/%C1.Operator/o/KEY/k/s/v=1", "/ndn/s/KEY/k/i/v=1", Some("hierarchy")),
            ("/ndn/s/KEY/k/i/v=1", "/ndn/KEY/k/i/v=1", Some("hierarchy")),
            ("/ndn/s/KEY/k/i/v=1", "/ndn/t/KEY/k/i/v=1", None),
            ("/ndn/s/file", "/ndn/s/KEY/k/i/v=1", None),
        ],
    );
}

#[test]
fn nlsrs_commands_are_operators_and_nfds_registrations_anybodys_of_the_hierarchy() {
    holds(
        &nlsr(),
        "security.prefix-update-validator",
        &[
            (
                "/localhost/nlsr/prefix-update/advertise/p/1/2",
                "/ndn/s/%C1.Operator/o/KEY/k/i/v=1",
                Some("command"),
            ),
            ("/localhost/nlsr/prefix-update/advertise/p/1/2", "/ndn/s/%C1.Router/r/KEY/k", None),
            ("/localhost/nlsr/prefix-update/drop/p/1/2", "/ndn/s/%C1.Operator/o/KEY/k", None),
        ],
    );
    holds(
        &nfd(),
        "rib.localhop_security",
        &[
            ("/localhop/nfd/rib/register/p", "/ndn/s/KEY/k/i/v=1", Some("register")),
            ("/localhop/nfd/rib/unregister/p/1/2", "/ndn/s/KEY/k", Some("register")),
            ("/localhop/nfd/rib/announce/p", "/ndn/s/KEY/k/i/v=1", None),
            ("/localhop/nfd/rib/register/p/1/2/3", "/ndn/s/KEY/k/i/v=1", None),
            ("/localhop/nfd/rib/register/p", "/ndn/s/k", None),
            ("/ndn/s/u/KEY/k/i/v=1", "/ndn/s/KEY/k/i/v=1", Some("hierarchy")),
            ("/ndn/s/u/KEY/k/i/v=1", "/ndn/t/KEY/k/i/v=1", None),
            ("/ndn/s/u", "/ndn/s/KEY/k/i/v=1", None),
        ],
    );
}
