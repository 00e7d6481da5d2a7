//! Files of keys: those of the key store, of groups and readers, and of other implementations.

use onym_access::envelope::Envelope;
use onym_access::nac::Encrypted;
use onym_access::{Card, Group};
use onym_crypto::foreign::{self, pib};
use onym_crypto::{SafeBag, store, text};

/// The first octet chooses the kind of file; the rest is the file.
pub fn keys(input: &[u8]) {
    let Some((kind, octets)) = input.split_first() else { return };
    let as_text = String::from_utf8_lossy(octets);
    match kind % 8 {
        0 => drop(foreign::ndnd(octets)),
        1 => drop(foreign::tpm(&as_text)),
        2 => drop(foreign::private_key(octets)),
        3 => drop(pib::parse_pib(octets)),
        4 => {
            let bag = SafeBag::parse(octets).or_else(|_| SafeBag::parse(&text::decode(&as_text)?));
            if let Ok(bag) = bag {
                let again = SafeBag::parse(bag.wire()).expect("what was read is read again");
                assert_eq!(again.wire(), bag.wire());
            }
        }
        5 => drop(store::check_key_file(&as_text)),
        6 => {
            if let Ok(group) = Group::read(&as_text) {
                let written = group.write().expect("what was read is written");
                let again = Group::read(&written).expect("what is written is read");
                assert_eq!(again.kek(), group.kek());
            }
        }
        _ => {
            drop(Card::parse(octets));
            if let Ok(envelope) = Envelope::read(octets) {
                assert_eq!(Envelope::read(&envelope.write()).ok(), Some(envelope));
            }
            if let Ok(encrypted) = Encrypted::read(octets) {
                assert_eq!(Encrypted::read(&encrypted.write()).ok(), Some(encrypted));
            }
        }
    }
}
