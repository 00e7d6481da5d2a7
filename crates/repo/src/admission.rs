//! Who may insert and delete, and whose the packets are.

use onym_crypto::cert::Certificate;
use onym_crypto::verify;
use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Keep packets.
    Insert,
    /// Forget packets.
    Delete,
}

/// The one place that decides who may do what. A trust schema is an implementation of it.
pub trait Admission: Send + Sync {
    /// Whose packets under `names` are when `carrier`, the Data with the command or the packet
    /// itself, asks for `act` at `now_ms` (milliseconds since the Unix epoch).
    ///
    /// # Errors
    /// Why it may not, as a sentence.
    fn admit(
        &self,
        act: Act,
        names: &[NameRef<'_>],
        carrier: &Data<'_>,
        now_ms: u64,
    ) -> Result<Name, String>;

    /// Whether a command acts once only, because what is admitted is its signature.
    fn acts_once(&self) -> bool {
        true
    }
}

/// Nobody may: the network has no door.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Admission for Nobody {
    fn admit(&self, _: Act, _: &[NameRef<'_>], _: &Data<'_>, _: u64) -> Result<Name, String> {
        Err("commands from the network are not admitted".into())
    }
}

/// Everybody may, as in ndn-python-repo; all packets belong to one owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Everybody;

impl Admission for Everybody {
    fn admit(&self, _: Act, _: &[NameRef<'_>], _: &Data<'_>, _: u64) -> Result<Name, String> {
        let mut owner = Name::new();
        owner.append_generic("everybody");
        Ok(owner)
    }

    /// Who may ask anything needs no old command for it.
    fn acts_once(&self) -> bool {
        false
    }
}

/// Who has one of these keys may while its certificate is valid; the identity of the key is the owner.
#[derive(Debug)]
pub struct Keys {
    certificates: Vec<Certificate>,
    names: Names,
}

/// Which names the owner of a key may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those under the identity of the key.
    Own,
    /// All.
    Any,
}

impl Keys {
    /// Believes `certificates` for `names`.
    #[must_use]
    pub fn new(certificates: Vec<Certificate>, names: Names) -> Self {
        Self { certificates, names }
    }
}

impl Admission for Keys {
    fn admit(
        &self,
        _: Act,
        names: &[NameRef<'_>],
        carrier: &Data<'_>,
        now_ms: u64,
    ) -> Result<Name, String> {
        let info = carrier.signature_info();
        let locator = info.key_locator.and_then(|l| l.name()).ok_or("it is not signed by a key")?;
        let known = self.certificates.iter().find(|c| c.key_name().is_prefix_of(locator));
        let certificate = known.ok_or_else(|| format!("{locator} is not admitted"))?;
        certificate.check_valid_at(now_ms).map_err(|e| e.to_string())?;
        verify::data(carrier, certificate.public_key()).map_err(|e| e.to_string())?;
        let identity = certificate.identity();
        let foreign = names.iter().find(|name| !identity.is_prefix_of(**name));
        match foreign {
            Some(name) if !(self.names == Names::Any) => {
                Err(format!("{name} is not under {identity}"))
            }
            _ => Ok(identity.to_name()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::cert::validity_of_days;
    use onym_crypto::{KeyType, PrivateKey, Signer};
    use onym_wire::data::DataBuilder;

    const NOW_MS: u64 = 1_800_000_000_000;
    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn a_key_admits_while_its_certificate_is_valid() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let key_name: Name = "/alice/KEY/1".parse().unwrap();
        let validity = validity_of_days(NOW_MS, 2);
        let certificate =
            Certificate::self_signed_for(key_name.as_ref(), &key, NOW_MS, validity).unwrap();
        let signer = Signer::key(key, key_name);
        let name: Name = "/alice/file".parse().unwrap();
        let mut packet = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), b"octets"), &mut packet).unwrap();
        let data = Data::parse(&packet).unwrap();
        let keys = Keys::new(vec![certificate], Names::Own);
        let admit = |now_ms| keys.admit(Act::Delete, &[data.name], &data, now_ms);
        assert_eq!(admit(NOW_MS + DAY_MS).unwrap().to_string(), "/alice");
        for moment in [NOW_MS - DAY_MS, NOW_MS + 3 * DAY_MS] {
            let refused = admit(moment).unwrap_err();
            assert!(refused.contains("/alice/KEY/1"), "{refused}");
        }
    }
}
