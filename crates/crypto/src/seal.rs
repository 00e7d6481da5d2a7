//! Private keys under a passphrase: PKCS#8 EncryptedPrivateKeyInfo with PBES2, PBKDF2 with
//! HMAC-SHA-256 and AES-256-CBC, as OpenSSL and ndn-cxx write it.

use crate::{Entropy, Error};
use pkcs8::pkcs5::{EncryptionScheme, pbes2};
use pkcs8::{EncryptedPrivateKeyInfo, PrivateKeyInfo};
use zeroize::Zeroizing;

/// Iterations of PBKDF2 when writing.
const ITERATIONS: u32 = 100_000;

/// Most iterations accepted when reading, so that a hostile file cannot stop the program for
/// long (some seconds).
const ITERATIONS_MAX: u32 = 10_000_000;

/// Encrypts an unencrypted PKCS#8 key (DER) under `passphrase`.
///
/// # Errors
/// [`Error::SafeBag`] when `pkcs8` is not a PKCS#8 key.
pub fn encrypt(
    pkcs8: &[u8],
    passphrase: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, Error> {
    let bad = |e: &dyn std::fmt::Display| Error::SafeBag(format!("cannot encrypt the key: {e}"));
    let (mut salt, mut iv) = ([0; 16], [0; 16]);
    entropy.fill(&mut salt);
    entropy.fill(&mut iv);
    let scheme =
        pbes2::Parameters::pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, &iv).map_err(|e| bad(&e))?;
    let info = PrivateKeyInfo::try_from(pkcs8).map_err(|e| bad(&e))?;
    let sealed = info.encrypt_with_params(scheme, passphrase).map_err(|e| bad(&e))?;
    Ok(sealed.as_bytes().to_vec())
}

/// Decrypts an EncryptedPrivateKeyInfo (DER) to the unencrypted PKCS#8 key. Beside what is written here
/// it takes what OpenSSL 1 wrote: HMAC-SHA-1, DES-EDE3-CBC, any salt.
///
/// # Errors
/// [`Error::SafeBag`] when the passphrase is wrong or the scheme is not PBES2 with PBKDF2.
pub fn decrypt(sealed: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    let info = EncryptedPrivateKeyInfo::try_from(sealed)
        .map_err(|e| Error::SafeBag(format!("not an encrypted PKCS#8 key: {e}")))?;
    let EncryptionScheme::Pbes2(scheme) = &info.encryption_algorithm else {
        return Err(Error::SafeBag("only PBES2 encryption is supported".into()));
    };
    let iterations = scheme.kdf.pbkdf2().map(|kdf| kdf.iteration_count);
    if iterations.is_none_or(|n| n > ITERATIONS_MAX) {
        return Err(Error::SafeBag(format!(
            "only PBKDF2 with at most {ITERATIONS_MAX} iterations is supported"
        )));
    }
    let key = info
        .decrypt(passphrase)
        .map_err(|_| Error::SafeBag("wrong passphrase or damaged key".into()))?;
    Ok(Zeroizing::new(key.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyType, PrivateKey, SystemEntropy};

    #[test]
    fn a_sealed_key_opens_with_its_passphrase_only() {
        for kind in [KeyType::Ecdsa, KeyType::Ed25519] {
            let key = PrivateKey::generate(kind).unwrap();
            let der = key.to_pkcs8().unwrap();
            let sealed = encrypt(&der, b"secret", &mut SystemEntropy).unwrap();
            assert_eq!(decrypt(&sealed, b"secret").unwrap(), der);
            assert!(matches!(decrypt(&sealed, b"Secret"), Err(Error::SafeBag(_))));
        }
    }
}
