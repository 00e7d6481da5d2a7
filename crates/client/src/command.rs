//! Management commands as Interests, signed in the v0.3 format.

use crate::request::millis;
use onym_crypto::Error;
use onym_crypto::signer::{Freshness, Signer};
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::types;
use std::time::Duration;

/// `/localhost/nfd`, or `/localhop/nfd` for a node that is not on this machine.
pub(crate) fn management_prefix(local: bool) -> Name {
    let mut name = Name::new();
    name.append_generic(if local { "localhost" } else { "localhop" }).append_generic("nfd");
    name
}

/// Encodes the command `verb` (such as `["rib", "register"]`) under `prefix`, signed. `parameters`
/// is the VALUE of ControlParameters; `fresh` must have a later time than every command before.
pub(crate) fn encode(
    prefix: Name,
    verb: [&str; 2],
    parameters: &[u8],
    signer: &Signer,
    fresh: Freshness,
    lifetime: Duration,
) -> Result<Vec<u8>, Error> {
    let mut component = Vec::with_capacity(parameters.len() + 4);
    tlv::put_tlv(&mut component, types::CONTROL_PARAMETERS, parameters);
    let mut name = prefix;
    name.append_generic(verb[0]).append_generic(verb[1]).append_generic(&component);
    let builder = InterestBuilder {
        nonce: Some([0; 4]),
        lifetime_ms: Some(millis(lifetime)),
        ..InterestBuilder::new(name.as_ref())
    };
    let mut wire = Vec::with_capacity(256);
    signer.sign_interest(&builder, &[], fresh, &mut wire)?;
    Ok(wire)
}

/// A ControlResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// As in HTTP; below 400 is success.
    pub code: u64,
    /// In words.
    pub text: String,
    /// What follows: for most commands the ControlParameters element in force.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads a ControlResponse element.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn parse(wire: &[u8]) -> Result<Self, Malformed> {
        let outer = Element::parse_as(wire, types::CONTROL_RESPONSE)?;
        let mut reader = Reader::new(outer.value);
        let code = reader.expect(types::STATUS_CODE)?.nni()?;
        let text = reader.expect(types::STATUS_TEXT)?.value;
        Ok(Self {
            code,
            text: String::from_utf8_lossy(text).into_owned(),
            body: reader.rest().to_vec(),
        })
    }

    /// Whether the command was done.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code < 400
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::sha256;
    use onym_wire::interest::Interest;

    #[test]
    fn a_registration_is_a_signed_interest_of_the_field() {
        let mut parameters = Vec::new();
        "/demo".parse::<Name>().unwrap().as_ref().write_tlv(&mut parameters);
        let fresh = Freshness {
            time_ms: Some(0x018B_CFE5_6800),
            nonce: Some(0x1112_1314_1516_1718_u64.to_be_bytes()),
            seq: None,
        };
        let (prefix, signer) = (management_prefix(true), Signer::digest());
        let second = Duration::from_secs(1);
        let wire =
            encode(prefix, ["rib", "register"], &parameters, &signer, fresh, second).unwrap();
        let interest = Interest::parse(&wire).unwrap();
        // The vector C1 of the digest of the protocol, but for its Interest Nonce.
        assert_eq!(
            interest.name.to_string(),
            "/localhost/nfd/rib/register/h%08%07%06%08%04demo/params-sha256=\
             88a701e1939a2384859450304ebfd2294a195a2cd28f42629de3d4abc8294892"
        );
        let signed = interest.signed_ranges().unwrap();
        assert_eq!(interest.signature_value.unwrap(), sha256(&signed));
    }

    #[test]
    fn responses_are_read_and_wrong_ones_refused() {
        let wire = b"\x65\x09\x66\x01\xc8\x67\x02OK\x69\x00";
        let response = Response::parse(wire).unwrap();
        assert_eq!((response.code, response.text.as_str(), response.body.len()), (200, "OK", 2));
        assert!(Response::parse(&wire[..6]).is_err());
    }
}
