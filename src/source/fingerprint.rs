//! What content must agree when a delivery id comes again.

use sha2::{Digest as _, Sha256};

/// The hash, cut to the 16 bytes that are kept.
pub(super) fn fingerprint(hash: Sha256) -> [u8; 16] {
    let digest: [u8; 32] = hash.finalize().into();
    *digest.first_chunk().expect("32 bytes begin with 16")
}
