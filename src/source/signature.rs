//! HMAC signatures over raw bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::config::{LabelledSecret, Secret};

/// The label of the secret that made `signature`: HMAC-SHA256 over `body`, in
/// base64 of the standard alphabet with padding.
///
/// Another alphabet, missing padding, blanks or a prefix is no signature. The
/// decoded digests are compared in constant time.
pub(super) fn verified_by<'a>(secrets: &'a [LabelledSecret], signature: &str, body: &[u8]) -> Option<&'a str> {
    let claimed = STANDARD.decode(signature).ok()?;
    secrets
        .iter()
        .find(|known| hmac_sha256(&known.secret, body).is_some_and(|digest| digest.ct_eq(&claimed).into()))
        .map(|known| known.label.as_str())
}

/// `None` never comes: HMAC takes keys of any length.
fn hmac_sha256(secret: &Secret, body: &[u8]) -> Option<Vec<u8>> {
    let mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).ok()?;
    Some(mac.chain_update(body).finalize().into_bytes().to_vec())
}

/// Signs `body` as a sender does.
#[cfg(test)]
pub(super) fn sign(secret: &str, body: &[u8]) -> String {
    STANDARD.encode(hmac_sha256(&Secret::new(secret.to_owned()), body).expect("any key fits"))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE};

    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Vec<LabelledSecret> {
        pairs
            .iter()
            .map(|(label, secret)| LabelledSecret {
                label: (*label).to_owned(),
                secret: Secret::new((*secret).to_owned()),
            })
            .collect()
    }

    /// B03: the right digest in any form but the declared one is refused, whatever its length.
    #[test]
    fn only_the_declared_form_of_a_right_digest_passes() {
        let known = secrets(&[("now", "s3cr3t-A")]);
        // The digest of this body has a `+`, a `/` and padding, so every form differs.
        let body = (0_u32..)
            .map(|n| format!(r#"{{"n":{n}}}"#))
            .find(|body| {
                let signature = sign("s3cr3t-A", body.as_bytes());
                signature.contains('+') && signature.contains('/')
            })
            .expect("half of all digests have both");
        let right = sign("s3cr3t-A", body.as_bytes());
        let digest = STANDARD.decode(&right).expect("just encoded");
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let check = |signature: &str, expected: Option<&str>| {
            assert_eq!(verified_by(&known, signature, body.as_bytes()), expected, "{signature}");
        };
        check(&right, Some("now"));
        check(&STANDARD_NO_PAD.encode(&digest), None);
        check(&URL_SAFE.encode(&digest), None);
        check(&hex, None);
        check(&hex.to_uppercase(), None);
        check(&format!(" {right}"), None);
        check(&format!("{right} "), None);
        check(&right.replace('+', " "), None);
        check(&format!("sha256={right}"), None);
        check(&format!("{right}{right}"), None);
        check(&STANDARD.encode(&digest[..31]), None);
        check(&STANDARD.encode([digest.as_slice(), &[0]].concat()), None);
        check("", None);
    }

    /// B04: after a rotation deliveries still come signed with the old secret.
    #[test]
    fn each_of_two_secrets_verifies_under_its_label() {
        let both = secrets(&[("new", "s3cr3t-B"), ("old", "s3cr3t-A")]);
        let check = |known: &[LabelledSecret], secret: &str, expected: Option<&str>| {
            assert_eq!(verified_by(known, &sign(secret, b"body"), b"body"), expected, "{secret}");
        };
        check(&both, "s3cr3t-A", Some("old"));
        check(&both, "s3cr3t-B", Some("new"));
        check(&both[..1], "s3cr3t-A", None);
        check(&[], "s3cr3t-A", None);
    }
}
