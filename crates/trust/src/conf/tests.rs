//! Patterns and configurations, by the rules that reading ndn-cxx showed.

#![allow(clippy::disallowed_methods)] // A test measures time.

use super::{Expansion, PRESET_HIERARCHY, PRESET_LOCALHOP, Pattern, Rules, no_include};
use crate::policy::{Cause, Policy, Subject};
use onym_wire::Name;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn rules(text: &str) -> Rules {
    Rules::parse(text, "", &mut no_include).unwrap()
}

fn refused(text: &str) -> String {
    Rules::parse(text, "", &mut no_include).unwrap_err().to_string()
}

fn is_match(pattern: &str, uri: &str) -> bool {
    Pattern::new(pattern).unwrap().is_match(name(uri).as_ref())
}

fn groups(pattern: &str, expand: &str, uri: &str) -> Option<String> {
    let pattern = Pattern::new(pattern).unwrap();
    let expansion = Expansion::new(expand, &pattern).unwrap();
    let found = pattern.find(name(uri).as_ref())?;
    expansion.expand(&found).map(|name| name.to_string())
}

#[test]
fn a_pattern_matches_whole_components_and_leaves_open_ends_free() {
    for (pattern, yes, no) in [
        ("^<a><b>$", "/a/b", "/a/b/c"),
        ("^<a>", "/a/x/y", "/x/a"),
        ("<a>$", "/x/y/a", "/a/x"),
        ("<a>", "/x/a/y", "/x/y"),
        ("^<><>$", "/x/y", "/x"),
        ("^<a.c>$", "/abc", "/abcd"),
        ("^[<a><b>]<c>$", "/b/c", "/d/c"),
        ("^[^<a><b>]<c>$", "/d/c", "/a/c"),
        ("^<a>*<b>+<c>?$", "/a/a/b/c", "/a/c"),
        ("^<a>{2}<b>{1,}<c>{,2}$", "/a/a/b/b/c", "/a/b/c"),
        ("^(<a><b>){2,3}$", "/a/b/a/b", "/a/b"),
        ("^<v=1><seg=.*>$", "/v=1/seg=22", "/v=1/22"),
        ("^<%C1\\.Router>$", "/%C1.Router", "/%C1xRouter"),
        ("^<[a-c]{2}[0-9]+>$", "/ab12", "/ad12"),
        ("^<>*$", "/", "//"),
    ] {
        assert!(is_match(pattern, yes), "{pattern} {yes}");
        if no != "//" {
            assert!(!is_match(pattern, no), "{pattern} {no}");
        }
    }
}

#[test]
fn groups_are_numbered_by_their_opening_and_keep_their_last_match() {
    assert_eq!(groups("^(<>*)<KEY><>{1,3}$", "\\1", "/a/b/KEY/k/i/v=1").unwrap(), "/a/b");
    // Greedy: the last KEY that leaves one to three components.
    assert_eq!(groups("^(<>*)<KEY><>{1,3}$", "\\1", "/a/KEY/KEY/k").unwrap(), "/a/KEY");
    assert_eq!(groups("^((<a>)(<b>))<c>$", "\\3<x>\\2\\1", "/a/b/c").unwrap(), "/b/x/a/a/b");
    assert_eq!(groups("^(<a.>)*$", "\\1", "/a1/a2").unwrap(), "/a2");
    assert_eq!(groups("<b>", "\\0", "/a/b/c").unwrap(), "/a/b/c");
    // Without ^, first without anything in front.
    assert_eq!(groups("(<a>)(<>*)$", "\\2", "/a/x/a/y").unwrap(), "/x/a/y");
    assert_eq!(groups("^<R(.)-(.)>(<x>)$", "\\2\\1\\3", "/Ra-b/x").unwrap(), "/b/a/x");
    // A group that took no part expands to nothing that could be a prefix of everything.
    assert_eq!(groups("^(<a>)?<b>$", "\\1", "/b"), None);
}

#[test]
fn a_bad_pattern_is_refused_with_its_reason() {
    for (pattern, why) in [
        ("<a", "not closed"),
        ("(<a>", "not closed"),
        ("<a>)", "not expected"),
        ("[<a>", "a set is"),
        ("[]", "a set is"),
        ("<a>{2,1}", "ends before it begins"),
        ("<a>{x}", "not a repetition"),
        ("<a>{999}", "more than 256"),
        ("*", "not expected"),
        ("<(a>", "<(a>"),
        ("<(?=a)b>", "look-around"),
        (r"<(a)\1>", "backreference"),
        ("(((<>{200}){200}){200})", "steps written out"),
        ("<(a{1000}){1000}>", "size"),
    ] {
        let error = Pattern::new(pattern).unwrap_err().to_string();
        assert!(error.contains(why), "{pattern}: {error}");
    }
    let pattern = Pattern::new("^(<a>)$").unwrap();
    assert!(Expansion::new("\\2", &pattern).is_err());
}

#[test]
fn negative_44_an_expression_that_backtracks_catastrophically_elsewhere_takes_linear_time() {
    let pattern = Pattern::new("^((<a>*)*)*<b>$").unwrap();
    let nested = Pattern::new("^<(a*)*b><(a|a?)+$>").unwrap();
    let mut long = Name::new();
    for _ in 0..500 {
        long.append_generic("a");
    }
    let start = std::time::Instant::now();
    assert!(!pattern.is_match(long.as_ref()));
    let component = name(&format!("/{}/{}", "a".repeat(4000), "a".repeat(4000)));
    assert!(!nested.is_match(component.as_ref()));
    assert!(start.elapsed().as_secs() < 10, "the time grows with the product of the lengths");
    // Longer names than any in use match nothing.
    for _ in 0..100 {
        long.append_generic("a");
    }
    assert!(!Pattern::new("^<>*$").unwrap().is_match(long.as_ref()));
}

const HIERARCHY: &str = "
    rule {
      id \"h\" ; a comment
      for data
      checker {
        type hierarchical
        sig-type ecdsa-sha256
      }
    }
    trust-anchor {
      type dir
      dir anchors
      refresh 10m
    }";

#[test]
fn hierarchy_wants_the_identity_of_the_key_in_front_of_the_name() {
    let rules = rules(HIERARCHY);
    let check = |packet: &str, key: &str| {
        rules.check(&Subject::data(name(packet).as_ref()).signed(3), name(key).as_ref())
    };
    assert!(check("/a/b/c", "/a/b/KEY/k").is_allowed());
    assert!(check("/a/b/c", "/a/KEY/k/i").is_allowed());
    assert!(check("/a/b/c", "/a/KEY/k/i/v=1").is_allowed());
    assert!(!check("/a/b/c", "/a/KEY/k/i/v=1/x").is_allowed());
    assert!(!check("/a/b/c", "/b/KEY/k").is_allowed());
    // Negative 27 and 28: a keyword, and nothing behind KEY.
    assert!(!check("/a/b/c", "/a/32=KEY/k").is_allowed());
    assert!(!check("/a/b/c", "/a/KEY").is_allowed());
    let denied =
        rules.check(&Subject::data(name("/a/b").as_ref()).signed(5), name("/a/KEY/k").as_ref());
    assert_eq!(denied.denial().unwrap().cause, Cause::SignatureType);
    let denied = rules.check(&Subject::interest(name("/a/b").as_ref()), name("/a/KEY/k").as_ref());
    assert_eq!(denied.denial().unwrap().cause, Cause::NoRule);
}

#[test]
fn a_relation_is_about_the_identity_of_the_key() {
    let text = |relation: &str| {
        format!(
            "rule\n{{\n id x\n for data\n checker\n {{\n type customized\n sig-type ECDSA-SHA256\n \
             key-locator\n {{\n type name\n name /a/b\n relation {relation}\n }}\n }}\n}}"
        )
    };
    let allowed = |relation: &str, key: &str| {
        let rules = rules(&text(relation));
        rules.check(&Subject::data(name("/x").as_ref()), name(key).as_ref()).is_allowed()
    };
    assert!(allowed("equal", "/a/b/KEY/k/i/v=1"));
    assert!(!allowed("equal", "/a/b/c/KEY/k"));
    assert!(allowed("is-prefix-of", "/a/b/c/KEY/k"));
    assert!(!allowed("is-strict-prefix-of", "/a/b/KEY/k"));
    assert!(!allowed("is-prefix-of", "/a/b/k"));
    assert!(!allowed("is-prefix-of", "/a/b/KEY/1/2/3/4"));
}

#[test]
fn filters_are_alternatives_and_the_first_rule_decides() {
    let rules = rules(
        "rule {\n id first\n for interest\n filter {\n type name\n name /a\n relation equal\n }\n \
         filter {\n type name\n regex ^<b><c>?$\n }\n checker {\n type customized\n sig-type sha256\n \
         }\n}\nrule {\n id second\n for interest\n checker {\n type hierarchical\n }\n}",
    );
    let rule = |uri: &str, key: &str| {
        let name = name(uri);
        match rules.check(&Subject::interest(name.as_ref()), key.parse::<Name>().unwrap().as_ref())
        {
            crate::Verdict::Allowed { rule } => rule,
            crate::Verdict::Denied(denial) => format!("no, {}", denial.rule.unwrap_or_default()),
        }
    };
    assert_eq!(rule("/a", "/any"), "first");
    assert_eq!(rule("/b/c", "/any"), "first");
    assert_eq!(rule("/a/b", "/a/KEY/k"), "second");
    assert_eq!(rule("/a/b", "/b/KEY/k"), "no, second");
    assert!(rules.allows_digest(&Subject::interest(name("/a").as_ref())));
    assert!(!rules.allows_digest(&Subject::interest(name("/a/b").as_ref())));
}

#[test]
fn negative_43_a_configuration_in_another_order_or_with_unknown_words_is_refused() {
    let cases = [
        ("rule {\n for data\n id x\n}", "\"id\" comes here, not \"for\""),
        ("rule {\n id x\n for data\n}", "\"checker\" is missing"),
        ("rule {\n id x\n for datum\n}", "data or interest"),
        (
            "rule {\n id x\n for data\n checker {\n type hierarchical\n }\n filter {\n }\n}",
            "\"filter\" is unknown, or not in its place",
        ),
        (
            "rule {\n id x\n for data\n checker {\n type hierarchical\n sig-type ecdsa-p384\n }\n}",
            "ecdsa-p384",
        ),
        ("rule {\n id x\n for data\n checker {\n type customized\n }\n}", "without key-locator"),
        (
            "rule {\n id x\n for data\n checker {\n type customized\n key-locator {\n type name\n \
             regex <a>\n relation equal\n }\n }\n}",
            "\"relation\" is unknown, or not in its place",
        ),
        ("something {\n}", "no section"),
        ("rule {\n id x\n", "not closed"),
        ("}", "without {"),
        ("rule x y", "follows a key and its value"),
        ("trust-anchor {\n type net\n}", "file, base64, dir or any"),
        ("trust-anchor {\n type dir\n dir x\n refresh 1d\n}", "h, m or s"),
        (
            "trust-anchor {\n type dir\n dir x\n refresh 1h\n}\ntrust-anchor {\n type file\n \
             file-name x\n}",
            "both with and without refresh",
        ),
        ("#include \"x\"", "cannot be included"),
        ("", "nothing would ever pass"),
    ];
    for (text, why) in cases {
        let error = refused(text);
        assert!(error.contains(why), "{text}: {error}");
    }
    let any = rules("trust-anchor {\n type any\n}");
    assert!(any.allows_anything());
    assert!(any.explain(&Subject::data(name("/a").as_ref()))[0].contains("any"));
}

#[test]
fn the_section_of_a_larger_file_is_read_with_its_includes() {
    let text = "rib\n{\n localhop_security\n {\n #include \"rules\"\n }\n}";
    let mut include = |path: &str| match path {
        "rules" => Ok(HIERARCHY.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let rules = Rules::parse(text, "rib.localhop_security", &mut include).unwrap();
    assert_eq!((rules.rules.len(), rules.anchors.len()), (1, 1));
    assert!(Rules::parse(text, "rib.other", &mut include).is_err());
    let mut endless = |_: &str| Ok("#include \"x\"".to_owned());
    let error = Rules::parse("#include \"x\"", "", &mut endless).unwrap_err().to_string();
    assert!(error.contains("include each other"), "{error}");
}

#[test]
fn presets_are_configurations() {
    let hierarchy = rules(PRESET_HIERARCHY);
    let data = name("/a/b");
    for (signature, allowed) in [(3, true), (5, true), (1, false), (0, false)] {
        let subject = Subject::data(data.as_ref()).signed(signature);
        assert_eq!(hierarchy.check(&subject, name("/a/KEY/k").as_ref()).is_allowed(), allowed);
    }
    let localhop = rules(PRESET_LOCALHOP);
    let command = name("/localhop/nfd/rib/register/%07%00");
    let subject = Subject::interest(command.as_ref()).signed(3);
    assert!(localhop.check(&subject, name("/r/KEY/k/i/v=1").as_ref()).is_allowed());
    let other = name("/localhop/nfd/faces/create/x");
    let subject = Subject::interest(other.as_ref()).signed(3);
    assert!(!localhop.check(&subject, name("/r/KEY/k/i/v=1").as_ref()).is_allowed());
}
