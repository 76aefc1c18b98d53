//! The marker in texts: how our notes and CRM tasks are found again.

use sha2::{Digest as _, Sha256};

use crate::domain::Key;

/// `[tambour:<16 hex digits>]`, derived from the object's key.
///
/// Its length is fixed and it ends in a closing sign, so a search for one
/// marker never hits another one.
pub fn text_marker(object: &Key) -> String {
    let hash = Sha256::digest(object.as_bytes());
    let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("[tambour:{short}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::KeyBuilder;

    /// The marker stands in CRMs for good.
    #[test]
    fn golden_marker() {
        let key = KeyBuilder::new().part("amocrm").part("31000001").part("note").part("50000001").finish();
        assert_eq!(text_marker(&key), "[tambour:b95b54cf8381c9e9]");
    }
}
