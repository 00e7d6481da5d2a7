//! The rule without a schema: a key speaks for what is under its identity.

use crate::policy::{Cause, Denial, KeyForm, Policy, Subject, Verdict};
use onym_crypto::cert::key_of_locator;
use onym_wire::{NameRef, types};

/// The rule's name in verdicts.
const RULE: &str = "hierarchy";

/// A key may sign what its identity is a prefix of, with any kind of private key; every certificate
/// may be an anchor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hierarchy;

/// The identity in the name of a key or certificate.
fn identity(key: NameRef<'_>) -> Option<NameRef<'_>> {
    key_of_locator(key).map(|key| key.drop_last(2))
}

impl Policy for Hierarchy {
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Verdict {
        let denied =
            |cause, text| Verdict::Denied(Denial { cause, rule: Some(RULE.to_owned()), text });
        let Some(identity) = identity(key) else {
            return denied(Cause::Key, format!("{key} is no name of a key"));
        };
        if !identity.is_prefix_of(subject.name) {
            let name = subject.name;
            let text = format!(
                "a key of {identity} may not sign {name}: it may sign names under {identity} only"
            );
            return denied(Cause::Key, text);
        }
        match subject.signature_type {
            None
            | Some(
                types::SIGNATURE_RSA_SHA256
                | types::SIGNATURE_ECDSA_SHA256
                | types::SIGNATURE_ED25519,
            ) => Verdict::Allowed { rule: RULE.to_owned() },
            Some(other) => {
                denied(Cause::SignatureType, format!("signature type {other} shows no key"))
            }
        }
    }

    fn key_form(&self) -> KeyForm {
        KeyForm::Locator
    }

    fn anchor(&self, _: NameRef<'_>) -> Result<(), Denial> {
        Ok(())
    }

    fn allows_digest(&self, _: &Subject<'_>) -> bool {
        false
    }

    fn explain(&self, subject: &Subject<'_>) -> Vec<String> {
        vec![format!("signed by a key whose identity is a prefix of {}", subject.name)]
    }
}
