//! Management commands as Interests, signed in the v0.3 format.

use crate::request::millis;
use onym_crypto::Error;
use onym_crypto::signer::{Freshness, Signer};
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::{self, ControlParameters, Scope};
use onym_wire::name::{Name, NameRef};
use std::time::Duration;

/// `/localhost/nfd`, or `/localhop/nfd` for a node that is not on this machine.
pub(crate) fn management_prefix(scope: Scope) -> Name {
    let mut name = Name::new();
    name.append_generic(if scope == Scope::Local { "localhost" } else { "localhop" })
        .append_generic("nfd");
    name
}

/// `/localhost/onym`, where what NFD does not have is asked for.
pub(crate) fn own_prefix() -> Name {
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("onym");
    name
}

/// Encodes the command `[module, verb]` (such as `["rib", "register"]`) under `prefix`, signed.
/// `fresh` must have a later time than every command before.
pub(crate) fn encode(
    prefix: NameRef<'_>,
    [module, verb]: [&str; 2],
    parameters: &ControlParameters,
    signer: &Signer,
    fresh: Freshness,
    lifetime: Duration,
) -> Result<Vec<u8>, Error> {
    let name = mgmt::command_name(prefix, module, verb, parameters);
    let builder = InterestBuilder {
        nonce: Some([0; 4]),
        lifetime_ms: Some(millis(lifetime)),
        ..InterestBuilder::new(name.as_ref())
    };
    let mut wire = Vec::with_capacity(256);
    signer.sign_interest(&builder, &[], fresh, &mut wire)?;
    Ok(wire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::sha256;
    use onym_wire::interest::Interest;

    #[test]
    fn a_registration_is_a_signed_interest_of_the_field() {
        let name = "/demo".parse().ok();
        let parameters = ControlParameters { name, ..ControlParameters::default() };
        let fresh = Freshness {
            time_ms: Some(0x018B_CFE5_6800),
            nonce: Some(0x1112_1314_1516_1718_u64.to_be_bytes()),
            seq: None,
        };
        let (prefix, signer) = (management_prefix(Scope::Local), Signer::digest());
        let second = Duration::from_secs(1);
        let wire =
            encode(prefix.as_ref(), ["rib", "register"], &parameters, &signer, fresh, second)
                .unwrap();
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
}
