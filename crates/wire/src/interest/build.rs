//! Writing Interests.

use super::LIFETIME_DEFAULT_MS;
use crate::name::NameRef;
use crate::signature::SignatureInfo;
use crate::tlv;
use crate::types;

/// Writes Interests. Fill in the fields; the default is an Interest for one exact Data.
#[derive(Debug, Clone, Copy, Default)]
pub struct InterestBuilder<'a> {
    /// The name. With parameters, digest components in it are left out and the right one is added.
    pub name: NameRef<'a>,
    /// Whether Data under the name answer.
    pub can_be_prefix: bool,
    /// Whether caches may only answer with fresh Data.
    pub must_be_fresh: bool,
    /// Delegations, preferred first.
    pub forwarding_hint: &'a [NameRef<'a>],
    /// Nonce. Every Interest that is sent to a forwarder should have one.
    pub nonce: Option<[u8; 4]>,
    /// Lifetime in milliseconds; the default of 4000 is not written.
    pub lifetime_ms: Option<u64>,
    /// HopLimit.
    pub hop_limit: Option<u8>,
}

impl<'a> InterestBuilder<'a> {
    /// An Interest for exactly `name`, with nothing else.
    #[must_use]
    pub fn new(name: NameRef<'a>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Appends an Interest without parameters.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, types::INTEREST, |out| {
            self.name.write_tlv(out);
            self.write_middle(out);
        });
    }

    /// Appends an Interest with ApplicationParameters.
    ///
    /// `digest` is SHA-256; the name gets a parameters digest as its last component.
    pub fn write_with_parameters(
        &self,
        out: &mut Vec<u8>,
        parameters: &[u8],
        digest: impl FnOnce(&[u8]) -> [u8; 32],
    ) {
        self.write_parameterized(out, parameters.len(), digest, |out, _| {
            tlv::put_tlv(out, types::APPLICATION_PARAMETERS, parameters);
            Ok::<(), std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
    }

    /// Appends a signed Interest (format v0.3).
    ///
    /// `sign` gets the parts whose concatenation is signed and returns the signature; `digest` is
    /// SHA-256.
    ///
    /// # Errors
    /// What `sign` returns; `out` is then as before.
    pub fn write_signed<S: AsRef<[u8]>, E>(
        &self,
        out: &mut Vec<u8>,
        parameters: &[u8],
        info: &SignatureInfo<'_>,
        sign: impl FnOnce(&[&[u8]]) -> Result<S, E>,
        digest: impl FnOnce(&[u8]) -> [u8; 32],
    ) -> Result<(), E> {
        self.write_parameterized(out, parameters.len() + 256, digest, |out, components| {
            let start = out.len();
            tlv::put_tlv(out, types::APPLICATION_PARAMETERS, parameters);
            info.write(out, types::INTEREST_SIGNATURE_INFO);
            let components = out.get(components).unwrap_or_default();
            let signature = sign(&[components, out.get(start..).unwrap_or_default()])?;
            tlv::put_tlv(out, types::INTEREST_SIGNATURE_VALUE, signature.as_ref());
            Ok(())
        })
    }

    /// Writes all but the parameters, lets `body` append those (it gets the range of the name
    /// components without digest), and fills in the digest.
    fn write_parameterized<E>(
        &self,
        out: &mut Vec<u8>,
        expected: usize,
        digest: impl FnOnce(&[u8]) -> [u8; 32],
        body: impl FnOnce(&mut Vec<u8>, std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = out.len();
        let expected = expected + self.name.wire_len() + 60;
        let done = tlv::put_nested_sized(out, types::INTEREST, expected, |out| {
            let mut components = 0..0;
            tlv::put_nested_sized(out, types::NAME, self.name.value().len() + 34, |out| {
                let begin = out.len();
                for component in self.name.components().filter(|c| !c.is_parameters_digest()) {
                    component.write(out);
                }
                components = begin..out.len();
                tlv::put_tlv(out, types::PARAMETERS_SHA256_DIGEST, &[0; 32]);
            });
            // The LENGTH of the name may have been wider than guessed: count from its end.
            let digest_at = out.len() - 32;
            let len = components.len();
            components = digest_at - 2 - len..digest_at - 2;
            self.write_middle(out);
            let parameters = out.len();
            body(out, components)?;
            let digest = digest(out.get(parameters..).unwrap_or_default());
            super::forward::patch(out, digest_at, &digest);
            Ok(())
        });
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn write_middle(&self, out: &mut Vec<u8>) {
        if self.can_be_prefix {
            tlv::put_tlv(out, types::CAN_BE_PREFIX, &[]);
        }
        if self.must_be_fresh {
            tlv::put_tlv(out, types::MUST_BE_FRESH, &[]);
        }
        if !self.forwarding_hint.is_empty() {
            tlv::put_nested(out, types::FORWARDING_HINT, |out| {
                self.forwarding_hint.iter().for_each(|name| name.write_tlv(out));
            });
        }
        if let Some(nonce) = self.nonce {
            tlv::put_tlv(out, types::NONCE, &nonce);
        }
        if let Some(lifetime) = self.lifetime_ms.filter(|ms| *ms != LIFETIME_DEFAULT_MS) {
            tlv::put_nni_tlv(out, types::INTEREST_LIFETIME, lifetime);
        }
        if let Some(hop_limit) = self.hop_limit {
            tlv::put_tlv(out, types::HOP_LIMIT, &[hop_limit]);
        }
    }
}
