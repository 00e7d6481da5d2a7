//! The file that brings a machine in.

use crate::exit::{Exit, Failure};
use onym_crypto::Certificate;
use onym_ndncert::Secret;
use onym_wire::Name;
use serde::{Deserialize, Serialize};

/// Longest file that is read, in octets.
const LEN_MAX: usize = 256 << 10;
/// Neighbours that are tried, at most.
const NEIGHBOURS_MAX: usize = 32;
/// The only form there is.
const FORM: u32 = 1;

/// What a machine has to know.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) router: Name,
    pub(super) token: Secret,
    pub(super) until_s: u64,
    pub(super) anchor: Certificate,
    pub(super) schema: String,
    pub(super) neighbours: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    onym_invitation: u32,
    router: String,
    token: String,
    until: u64,
    anchor: String,
    schema: String,
    neighbours: Vec<String>,
}

impl Drop for Text {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.token);
    }
}

impl Invitation {
    pub(super) fn write(&self) -> String {
        let text = Text {
            onym_invitation: FORM,
            router: self.router.to_string(),
            token: self.token.reveal().to_owned(),
            until: self.until_s,
            anchor: self.anchor.to_text(),
            schema: self.schema.clone(),
            neighbours: self.neighbours.clone(),
        };
        let json = serde_json::to_string_pretty(&text);
        json.expect("invariant: strings and numbers are JSON") + "\n"
    }

    pub(super) fn read(text: &str) -> anyhow::Result<Self> {
        let bad = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::Usage, "it is not an invitation")
                .why(why)
                .next("`onym network invite` writes one, on the machine of the authority")
        };
        if text.len() > LEN_MAX {
            return Err(bad(&format!("it is longer than {LEN_MAX} octets")).into());
        }
        // What JSON says of an error quotes what it read: the token is in there.
        let text: Text = serde_json::from_str(text)
            .map_err(|e| bad(&format!("line {}, column {}", e.line(), e.column())))?;
        if text.onym_invitation != FORM {
            return Err(bad(&"it is of a later version").into());
        }
        if text.neighbours.is_empty() || text.neighbours.len() > NEIGHBOURS_MAX {
            return Err(bad(&"it names no neighbours, or too many").into());
        }
        Ok(Self {
            router: text.router.parse().map_err(|e| bad(&e))?,
            token: Secret::new(text.token.clone()),
            until_s: text.until,
            anchor: Certificate::from_text(&text.anchor).map_err(|e| bad(&e))?,
            schema: text.schema.clone(),
            neighbours: text.neighbours.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::{KeyType, PrivateKey};

    #[test]
    fn an_invitation_comes_back_and_shows_its_token_to_nobody() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: Name = "/net/KEY/1".parse().unwrap();
        let invitation = Invitation {
            router: "/net/b".parse().unwrap(),
            token: Secret::new("5ec2e7".into()),
            until_s: 7,
            anchor: Certificate::self_signed(name.as_ref(), &key, 0).unwrap(),
            schema: "#a: \"a\"".into(),
            neighbours: vec!["udp4://192.0.2.1".into()],
        };
        let text = invitation.write();
        let read = Invitation::read(&text).unwrap();
        assert_eq!((read.token.reveal(), read.until_s), ("5ec2e7", 7));
        assert_eq!(
            (read.router, read.anchor),
            (invitation.router.clone(), invitation.anchor.clone())
        );
        assert!(!format!("{invitation:?}").contains("5ec2e7"));
        for broken in
            [text.replace("\"until\": 7", "\"until\": \"5ec2e7\""), text.replace("udp4", "\u{1}")]
        {
            let error = format!("{:?}", Invitation::read(&broken).err().unwrap());
            assert!(!error.contains("5ec2e7"), "{error}");
        }
        assert!(Invitation::read(&" ".repeat(LEN_MAX + 1)).is_err());
        assert!(
            Invitation::read(&text.replace("\"onym_invitation\": 1", "\"onym_invitation\": 2"))
                .is_err()
        );
    }
}
