//! Schemas that python-ndn compiled and python-ndn, ndnd and NDNts judged: `lvs-cases.json`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use onym_trust::lvs::{CompileError, Functions, Mode, Model, Schema, compile};
use onym_trust::{Policy, Subject};
use onym_wire::Name;
use serde_json::Value;

const CASES: &str = include_str!("../../../spec/vectors/trust/lvs-cases.json");

fn cases() -> Vec<Value> {
    serde_json::from_str(CASES).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// The functions that the recorded schemas call beyond those that everybody has.
fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.insert("$len4", |value, _| value.value.len() == 4);
    functions.insert("$len6", |value, _| value.value.len() == 6);
    functions
}

/// `"..."` as a name component in python-ndn's reading: three periods.
fn recorded_name(uri: &str) -> Name {
    match uri {
        "/a/..." => name("/a/......"),
        _ => name(uri),
    }
}

#[test]
fn exact_mode_writes_the_octets_of_python_ndn() {
    let cases = cases();
    assert_eq!(cases.len(), 15);
    for case in &cases {
        let model = compile(text(case, "text"), Mode::Exact).unwrap();
        let wanted = unhex(text(case, "hex"));
        assert!(model.encode() == wanted, "{}: other octets", text(case, "name"));
    }
}

#[test]
fn strict_mode_writes_the_same_octets_unless_a_constraint_would_be_lost() {
    for case in &cases() {
        let model = compile(text(case, "text"), Mode::Strict).unwrap();
        let is_same = model.encode() == unhex(text(case, "hex"));
        assert_eq!(is_same, text(case, "name") != "twice", "{}", text(case, "name"));
    }
}

#[test]
fn a_recorded_model_is_read_and_written_again() {
    for case in &cases() {
        let octets = unhex(text(case, "hex"));
        let model = Model::decode(&octets).unwrap();
        assert_eq!(model.encode(), octets, "{}", text(case, "name"));
        assert_eq!(model, compile(text(case, "text"), Mode::Exact).unwrap());
    }
}

#[test]
fn a_recorded_model_judges_each_pair_as_python_ndn_does() {
    let mut pairs = 0;
    for case in &cases() {
        let model = Model::decode(&unhex(text(case, "hex"))).unwrap();
        let schema = Schema::new(model, functions()).unwrap();
        for test in case["tests"].as_array().unwrap() {
            let packet = recorded_name(text(test, "packet"));
            let key = recorded_name(text(test, "key"));
            let verdict = schema.check(&Subject::data(packet.as_ref()), key.as_ref());
            let wanted = text(test, "python") == "true";
            let at = format!("{}: {packet} <- {key}: {verdict:?}", text(case, "name"));
            assert_eq!(verdict.is_allowed(), wanted, "{at}");
            let ndnd = text(test, "ndnd");
            assert!(ndnd == "panic" || (ndnd == "true") == wanted, "{at}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 59, "every recorded pair is judged");
}

/// The pairs where a strict schema denies what python-ndn accepts: a constraint of a variable that
/// is bound already (`bound`, `plant`).
#[test]
fn a_strict_schema_only_ever_denies_more() {
    let mut stricter = Vec::new();
    for case in &cases() {
        let model = Model::decode(&unhex(text(case, "hex"))).unwrap();
        let schema = Schema::new(model, functions()).unwrap().strict();
        for test in case["tests"].as_array().unwrap() {
            let (packet, key) = (text(test, "packet"), text(test, "key"));
            let subject = recorded_name(packet);
            let verdict =
                schema.check(&Subject::data(subject.as_ref()), recorded_name(key).as_ref());
            match (verdict.is_allowed(), text(test, "python") == "true") {
                (false, true) => stricter.push(format!("{packet} <- {key}")),
                (true, false) => panic!("{packet} <- {key} is accepted by nobody else"),
                _ => {}
            }
        }
    }
    assert_eq!(
        stricter,
        [
            "/d/guest/1 <- /k/guest/KEY",
            "/acme/plant/1/reading/0412/x <- /acme/plant/worker/1/KEY/1/b/1"
        ]
    );
}

/// The recorded refusals and octets of `basic.txt`, section "rejects/accepts".
#[test]
fn what_python_ndn_refuses_to_compile_is_refused() {
    let refused = [
        ("#a: #b\n#b: #a", "rules refer to each other in a circle: #a, #b"),
        ("#a: #z", "#a inlines #z, which is not defined"),
        ("#a: \"a\" <= #z", "#a is signed by #z, which is not defined"),
        ("#a: \"a\" <= #_k\n#_k: \"k\"", "#_k is temporary and cannot sign"),
        ("#a: \"a\"/#_t\n#_t: \"t\"", "#_t is temporary and cannot be inlined"),
        ("#a: _x/y & {y: _x}", "temporary variable _x cannot stand behind a colon"),
        ("#a: _x/y & {y: $f(_x)}", "temporary variable _x cannot stand behind a colon"),
        ("#a: x & {y: \"1\"}", "variable y occurs in no name so far"),
        ("#a: x & {x: y}", "variable y occurs in no name so far"),
        ("#d: \"d\"/c <= #k\n#k: \"k\"/b & {b: c}", "variable c occurs in no name so far"),
        ("#a: \"a\"\n/* no */", "does not belong here"),
        ("#a: \"a\" <= \"b\"", "a signer (#rule) is expected here"),
        ("#a: \"a\\\"b\"", "cannot stand in a literal"),
        ("#a: \"%ZZ\"", "% must be followed by two hexadecimal digits"),
        ("#a: \"a/b\"", "'/' cannot stand in a literal"),
        ("#a-b: \"a\"", "'-' does not belong here"),
        ("#a: \"a\"/", "a component: a literal, a variable or a #rule is expected here"),
        ("#a: \"a\"/ <= #b", "a component"),
        ("a: \"a\"", "a rule (#name) is expected here, not a"),
        ("#a: \"a", "no closing quote"),
        ("#a: x & {x: $f(}", "an argument"),
        ("#a: x & {}", "a variable is expected here"),
    ];
    for (source, wanted) in refused {
        for mode in [Mode::Strict, Mode::Exact] {
            match compile(source, mode) {
                Err(error) => {
                    let shown = error.to_string();
                    assert!(shown.contains(wanted), "{source}: {shown}");
                }
                Ok(model) => panic!("{source} compiled to {:02x?}", model.encode()),
            }
        }
    }
}

#[test]
fn small_texts_compile_to_the_recorded_octets() {
    let exact = [
        ("", "6104000110002501006901006303250100"),
        (
            "#a: x & {x: $f()}",
            "6104000110002501006901016315250100531025010123010143084106310427022466630a250101570100290223616706230101290178",
        ),
        (
            "#a: x/y & {y: $f(\"0\", x)}",
            "610400011000250100690102630b25010053062501012301016324250101570100531c25010223010243144112311027022466330521030801303303230101630a2501025701012902236167062301012901786706230102290179",
        ),
        (
            "#a: \"\"",
            "610400011000250100690100630c250100510725010121020800630a25010157010029022361",
        ),
        (
            "#z: \"d\"/c <= #k\n#k: \"k\"/b & {b: c}",
            "6104000110002501006901026317250100510825010121030801645108250103210308016b630e2501015701005306250102230101630d2501025701012902237a5501046315250103570100530d25010423010243054103230101630a2501045701032902236b67062301012901636706230102290162",
        ),
    ];
    for (source, wanted) in exact {
        let model = compile(source, Mode::Exact).unwrap();
        assert_eq!(model.encode(), unhex(wanted), "{source}");
    }
}

/// A model that only peers load: rules that sign themselves or each other.
#[test]
fn signing_circles_compile_exactly_and_are_never_loaded() {
    let (source, octets) = (
        "#a: x <= #b\n#b: \"b\" <= #a",
        "61040001100025010069010063172501005108250101210308016151082501022103080162630d25010157010029022361550102630d25010257010029022362550101",
    );
    assert!(compile(source, Mode::Exact).is_ok());
    let error = compile(source, Mode::Strict).unwrap_err();
    assert!(matches!(error, CompileError::Model(_)), "{error}");
    assert!(error.to_string().contains("sign each other in a circle"), "{error}");
    let error = Model::decode(&unhex(octets)).unwrap_err();
    assert!(error.to_string().contains("#a <= #b <= #a"), "{error}");
    let own = "610400011000250100690100630d25010051082501012103080161630e2501015701005306250102230101630d25010257010129022361550102";
    assert!(Model::decode(&unhex(own)).unwrap_err().to_string().contains("#a <= #a"));
}

#[test]
fn a_constraint_that_would_be_lost_is_kept_or_refused() {
    let twice = "#V: _v & {_v: \"1\"|\"2\"}\n#d: \"d\"/#V/#V <= #k\n#k: \"k\"";
    let model = Model::decode(&compile(twice, Mode::Strict).unwrap().encode()).unwrap();
    let schema = Schema::new(model, Functions::default()).unwrap();
    let allowed = |packet: &str| {
        schema.check(&Subject::data(name(packet).as_ref()), name("/k").as_ref()).is_allowed()
    };
    assert!(allowed("/d/1/2") && allowed("/d/2/1") && !allowed("/d/1/3") && !allowed("/d/3/1"));
    let idle = "#a: \"a\"/zz <= #k\n#b: \"b\"/x & {zz: \"1\"} <= #k\n#k: \"k\"";
    let error = compile(&idle.replace("#b", "#A"), Mode::Strict).unwrap_err();
    assert!(error.to_string().contains("the constraint has no effect"), "{error}");
    assert!(compile(&idle.replace("#b", "#A"), Mode::Exact).is_ok());
}

/// A constraint in a rule that is inlined may speak of a variable of the rule around it.
#[test]
fn an_inlined_constraint_on_an_outer_variable_works() {
    let source = "#w: \"w\" & {y: \"1\"}\n#z: y/#w <= #k\n#k: \"k\"";
    // y must be numbered before #w is visited, which is first: it is inlined.
    assert!(compile(source, Mode::Strict).is_err());
}
