//! Trust: models, invitations, schema texts, validator configuration, regular expressions over names,
//! lists of revocations.

use onym_trust::chain::Revoked;
use onym_trust::conf::{Expansion, Pattern, Rules, no_include};
use onym_trust::invite::{Invitation, certificate_list};
use onym_trust::lvs::{Functions, Mode, Model, Schema, compile, lint};
use onym_trust::{Policy, Subject};
use onym_wire::{Data, Name};

/// Names that everything which loads is asked about.
const NAMES: [&str; 4] = ["/a/x/1", "/a/x/KEY/k/i/v=1", "/a/KEY/k/self/v=1", "/"];

fn ask(policy: &dyn Policy) {
    let names = NAMES.map(|uri| uri.parse::<Name>().expect("the names above are names"));
    for packet in &names {
        for subject in [Subject::data(packet.as_ref()), Subject::interest(packet.as_ref())] {
            for key in &names {
                let verdict = policy.check(&subject, key.as_ref());
                assert_eq!(verdict.is_allowed(), verdict.denial().is_none());
            }
            assert!(!policy.explain(&subject).is_empty());
        }
        let _ = policy.anchor(packet.as_ref());
    }
}

/// Reads `input` as a model of a schema, and as an invitation or list of certificates.
///
/// # Panics
/// When a model that loads is written differently, or a question to it fails.
pub fn trust_model(input: &[u8]) {
    if let Ok(data) = Data::parse(input) {
        let key = data.name.drop_last(2);
        let _ = certificate_list(&data, key);
        if let Ok(invitation) = Invitation::parse(&data) {
            let names = NAMES.map(|uri| uri.parse::<Name>().expect("the names above are names"));
            let _ = invitation.allows(names[0].as_ref(), names[1].as_ref());
        }
    }
    let Ok(model) = Model::decode(input) else { return };
    let octets = model.encode();
    let again = Model::decode(&octets).expect("law: what is written can be read");
    assert_eq!(again, model);
    if let Ok(schema) = Schema::new(model, Functions::default()) {
        ask(&schema);
        ask(&schema.strict());
    }
}

/// Reads `input` as the text of a schema, of a validator configuration, and as an expression: the
/// first octet says which.
///
/// # Panics
/// When a text that compiles does not load, or a question fails.
pub fn trust_text(input: &[u8]) {
    let Some((kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 3 {
        0 => {
            let _ = lint(text);
            let _ = Revoked::parse(text);
            let Ok(model) = compile(text, Mode::Strict) else { return };
            let again = Model::decode(&model.encode()).expect("law: what compiles loads");
            assert_eq!(again, model);
            if let Ok(schema) = Schema::new(model, Functions::default()) {
                ask(&schema);
            }
        }
        1 => {
            if let Ok(rules) = Rules::parse(text, "", &mut no_include) {
                ask(&rules);
            }
        }
        _ => {
            let Ok(pattern) = Pattern::new(text) else { return };
            let expansion = Expansion::new("\\0", &pattern).expect("law: group 0 is there");
            for uri in NAMES {
                let name: Name = uri.parse().expect("the names above are names");
                if let Some(found) = pattern.find(name.as_ref()) {
                    assert_eq!(expansion.expand(&found).as_ref(), Some(&name));
                }
            }
        }
    }
}
