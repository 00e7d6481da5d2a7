//! TLV types of NDNCERT 0.3, and the words of its challenges.

/// Prefix of the authority, in its profile.
pub const CA_PREFIX: u32 = 129;
/// What the authority says about itself.
pub const CA_INFO: u32 = 131;
/// Key of a parameter.
pub const PARAMETER_KEY: u32 = 133;
/// Value of the parameter before it.
pub const PARAMETER_VALUE: u32 = 135;
/// Certificate of the authority.
pub const CA_CERTIFICATE: u32 = 137;
/// Longest validity, in seconds.
pub const MAX_VALIDITY: u32 = 139;
/// A name that can be asked for.
pub const PROBE_RESPONSE: u32 = 141;
/// Components that may follow that name.
pub const MAX_SUFFIX: u32 = 143;
/// Public point of the key exchange.
pub const ECDH_PUB: u32 = 145;
/// The certificate request.
pub const CERT_REQUEST: u32 = 147;
/// Salt of the key derivation.
pub const SALT: u32 = 149;
/// Identifier of a request.
pub const REQUEST_ID: u32 = 151;
/// A challenge that is offered.
pub const CHALLENGE: u32 = 153;
/// Status of a request.
pub const STATUS: u32 = 155;
/// Initialization vector.
pub const IV: u32 = 157;
/// Ciphertext.
pub const PAYLOAD: u32 = 159;
/// The challenge that the client chose.
pub const SELECTED_CHALLENGE: u32 = 161;
/// Status of the challenge.
pub const CHALLENGE_STATUS: u32 = 163;
/// Tries left.
pub const REMAINING_TRIES: u32 = 165;
/// Time left, in seconds.
pub const REMAINING_TIME: u32 = 167;
/// Name of the certificate that was issued.
pub const ISSUED_NAME: u32 = 169;
/// Code of an error.
pub const ERROR_CODE: u32 = 171;
/// Text of an error.
pub const ERROR_INFO: u32 = 173;
/// Authentication tag.
pub const TAG: u32 = 175;
/// Another authority, by the full name of its certificate.
pub const PROBE_REDIRECT: u32 = 179;

/// Challenge: a code that the authority's operator hands over.
pub const PIN: &str = "pin";
/// Challenge: a code sent by mail.
pub const EMAIL: &str = "email";
/// Challenge: a signature by a certificate that is still valid.
pub const POSSESSION: &str = "possession";
/// Challenge: a TXT record.
pub const DNS: &str = "dns";

/// Status: a challenge was not chosen yet.
pub const STATUS_BEFORE: u64 = 0;
/// Status: a challenge runs.
pub const STATUS_CHALLENGE: u64 = 1;
/// Status: passed, the certificate is not there yet.
pub const STATUS_PENDING: u64 = 2;
/// Status: the certificate is issued.
pub const STATUS_SUCCESS: u64 = 3;
/// Status: failed for good.
pub const STATUS_FAILURE: u64 = 4;

/// Octets of an uncompressed point.
pub const POINT_LEN: usize = 65;
/// Octets of a salt.
pub const SALT_LEN: usize = 32;
/// Octets of an initialization vector.
pub const IV_LEN: usize = 12;
/// Octets of an authentication tag.
pub const TAG_LEN: usize = 16;
