//! Keys as they are written.

use super::Key;
use crate::control::KeySpec;
use crate::names;
use crate::refusal::Refusal;
use crate::table::decode;
use crate::verify::Secret;
use onym_crypto::cert::identity_of_key;
use onym_crypto::{Certificate, PublicKey};
use onym_wire::name::NameRef;
use std::sync::Arc;

/// Fewest octets of a shared secret.
const SECRET_LEN_MIN: usize = 16;

impl Key {
    /// Reads a key, which gets this number in its set.
    pub(super) fn read(number: u64, field: &str, spec: &KeySpec) -> Result<Self, Refusal> {
        let bad = |what: &str, why: String| Refusal::field(format!("{field}/{what}"), why);
        let mut name = spec.name.clone();
        let (mut of, mut validity) = (None, None);
        let given = [&spec.spki, &spec.pem, &spec.certificate, &spec.hmac];
        if given.iter().filter(|g| g.is_some()).count() != 1 {
            return Err(bad("", "exactly one of spki, pem, certificate and hmac is given".into()));
        }
        let public = |what: &str, der: &[u8]| {
            PublicKey::from_spki(der).map(Secret::Public).map_err(|e| bad(what, e.to_string()))
        };
        let secret = if let Some(text) = &spec.spki {
            public("spki", &decode(field, text)?)?
        } else if let Some(text) = &spec.pem {
            let body = text.lines().filter(|l| !l.starts_with("-----")).collect::<String>();
            public("pem", &decode(field, &body)?)?
        } else if let Some(text) = &spec.certificate {
            let wire = decode(field, text)?;
            let parsed = Certificate::parse(&wire);
            let certificate = parsed.map_err(|e| bad("certificate", e.to_string()))?;
            if name.is_empty() {
                name = certificate.key_name().to_string();
            }
            of = Some(certificate.name().to_name());
            validity = Some(certificate.validity());
            Secret::Public(certificate.public_key().clone())
        } else {
            let secret = decode(field, spec.hmac.as_deref().unwrap_or_default())?;
            if secret.len() < SECRET_LEN_MIN {
                let text = format!("a secret has at least {SECRET_LEN_MIN} octets");
                return Err(bad("hmac", text));
            }
            Secret::Hmac(secret)
        };
        let name = names::name(&format!("{field}/name"), &name)?;
        let mut prefixes = Vec::new();
        for text in &spec.prefixes {
            prefixes.push(names::name(&format!("{field}/prefixes"), text)?);
        }
        if prefixes.is_empty() {
            let identity = identity_of_key(name.as_ref()).map(NameRef::to_name);
            prefixes.push(identity.unwrap_or_else(|_| name.clone()));
        }
        let spec = spec.clone();
        let (secret, verified, failed) = (Arc::new(secret), 0, 0);
        let certificate = of;
        Ok(Self { name, certificate, validity, secret, prefixes, verified, failed, number, spec })
    }
}
