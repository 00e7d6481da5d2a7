//! Authorization: who may insert and delete, and who owns the packets.

use onym_client::Schema;
use onym_crypto::cert::{Certificate, key_of_locator};
use onym_crypto::{Error, verify};
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

/// Why something is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// It may not: a sentence.
    #[error("{0}")]
    Refused(String),
    /// This certificate is needed first; ask again when it came.
    #[error("the certificate {0} is not known")]
    Unknown(Name),
}

impl From<String> for NotAdmitted {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<&str> for NotAdmitted {
    fn from(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

/// The one place that decides who may do what.
pub trait Admission: Send + Sync {
    /// Whose packets under `names` are when `carrier`, the Data with the command or the packet
    /// itself, asks for `act` at `now_ms` (milliseconds since the Unix epoch).
    ///
    /// # Errors
    /// [`NotAdmitted`].
    fn admit(
        &self,
        act: Act,
        names: &[NameRef<'_>],
        carrier: &Data<'_>,
        now_ms: u64,
    ) -> Result<Name, NotAdmitted>;

    /// The certificate that was needed came; without it nobody has it.
    fn certificate(&self, _wanted: &Name, _wire: Option<&[u8]>) {}

    /// Whether a command acts once only, because what is admitted is its signature.
    fn acts_once(&self) -> bool {
        true
    }
}

/// Nobody may: the network has no door.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Admission for Nobody {
    fn admit(&self, _: Act, _: &[NameRef<'_>], _: &Data<'_>, _: u64) -> Result<Name, NotAdmitted> {
        Err("commands from the network are not admitted".into())
    }
}

/// Everybody may, as in ndn-python-repo; all packets belong to one owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Everybody;

impl Admission for Everybody {
    fn admit(&self, _: Act, _: &[NameRef<'_>], _: &Data<'_>, _: u64) -> Result<Name, NotAdmitted> {
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
    ) -> Result<Name, NotAdmitted> {
        let info = carrier.signature_info();
        let locator = info.key_locator.and_then(|l| l.name()).ok_or("it is not signed by a key")?;
        let known = self.certificates.iter().find(|c| c.key_name().is_prefix_of(locator));
        let certificate = known.ok_or_else(|| format!("{locator} is not admitted"))?;
        certificate.check_valid_at(now_ms).map_err(|e| e.to_string())?;
        verify::data(carrier, certificate.public_key()).map_err(|e| e.to_string())?;
        let identity = certificate.identity();
        let foreign = names.iter().find(|name| !identity.is_prefix_of(**name));
        match foreign {
            Some(name) if self.names != Names::Any => {
                Err(format!("{name} is not under {identity}").into())
            }
            _ => Ok(identity.to_name()),
        }
    }
}

/// Who may sign Data of a name by the rules of trust may insert and delete it; the identity of the
/// key is the owner.
#[derive(Debug)]
pub struct Rules {
    schema: Schema,
}

impl Rules {
    /// Admits by `schema`.
    #[must_use]
    pub const fn new(schema: Schema) -> Self {
        Self { schema }
    }
}

impl Admission for Rules {
    fn admit(
        &self,
        _: Act,
        names: &[NameRef<'_>],
        carrier: &Data<'_>,
        _: u64,
    ) -> Result<Name, NotAdmitted> {
        let mut owner = None;
        for name in names {
            let trusted = self.schema.judge(carrier, *name).map_err(|error| match error {
                Error::NoCertificate(wanted) => NotAdmitted::Unknown(wanted),
                other => NotAdmitted::Refused(format!("{name}: {other}")),
            })?;
            owner = key_of_locator(trusted.key.as_ref()).map(|key| key.drop_last(2).to_name());
        }
        for notice in self.schema.notices() {
            match notice.is_bad {
                true => tracing::warn!("trust: {notice}"),
                false => tracing::info!("trust: {notice}"),
            }
        }
        owner.ok_or_else(|| "nobody signed it".into())
    }

    fn certificate(&self, wanted: &Name, wire: Option<&[u8]>) {
        // Why a chain ends is told when the command is judged again.
        let _ = self.schema.answer(wanted, wire);
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
            let refused = admit(moment).unwrap_err().to_string();
            assert!(refused.contains("/alice/KEY/1"), "{refused}");
        }
    }

    #[test]
    fn rules_admit_who_may_sign_the_name_when_the_certificate_came() {
        use onym_crypto::cert::Issue;
        use onym_crypto::edge::unix_now_ms;
        use onym_trust::lvs::{Functions, Mode, compile};
        let text = "#K: \"KEY\"/_/_/_\n#root: \"net\"/#K\n#user: \"net\"/u/#K <= #root\n\
                    #file: \"net\"/u/_file <= #user";
        let model = compile(text, Mode::Strict).unwrap();
        let policy = onym_trust::lvs::Schema::new(model, Functions::default()).unwrap();
        let now_ms = unix_now_ms();
        let make = |identity: &str| {
            let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
            let name: Name = format!("{identity}/KEY/1").parse().unwrap();
            let certificate = Certificate::self_signed(name.as_ref(), &key, now_ms).unwrap();
            (key, certificate)
        };
        let (root_key, root) = make("/net");
        let (key, request) = make("/net/a");
        let by = Signer::key(root_key, root.name().to_name());
        let validity = validity_of_days(now_ms, 1);
        let issuer_id = onym_wire::Component::generic(b"net");
        let issued = Certificate::issue(&request, &by, &Issue { issuer_id, now_ms, validity });
        let issued = issued.unwrap();
        let signer = Signer::key(key, issued.name().to_name());
        let rules = Rules::new(Schema::new(std::sync::Arc::new(policy), vec![root]).unwrap());
        let mut packet = Vec::new();
        let name: Name = "/net/a/command".parse().unwrap();
        signer.sign_data(&DataBuilder::new(name.as_ref(), b"octets"), &mut packet).unwrap();
        let data = Data::parse(&packet).unwrap();
        let admit = |names: &[&str]| {
            let names: Vec<Name> = names.iter().map(|uri| uri.parse().unwrap()).collect();
            let names: Vec<NameRef<'_>> = names.iter().map(Name::as_ref).collect();
            rules.admit(Act::Insert, &names, &data, now_ms)
        };
        let unknown = admit(&["/net/a/film"]).unwrap_err();
        assert_eq!(unknown, NotAdmitted::Unknown(issued.name().to_name()));
        rules.certificate(&issued.name().to_name(), Some(issued.wire()));
        assert_eq!(admit(&["/net/a/film"]).unwrap().to_string(), "/net/a");
        // All names of a command must be its signer's.
        for names in [&["/net/b/film"][..], &["/net/a/film", "/net/b/film"], &["/net/a/x/y"], &[]] {
            assert!(matches!(admit(names), Err(NotAdmitted::Refused(_))), "{names:?}");
        }
    }
}
