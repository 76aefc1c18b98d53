//! Secrets: held so that no log, error or `Debug` can show them.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// A secret text; one that nobody needs stays unread.
#[derive(Clone)]
pub struct Secret(Option<SecretString>);

impl Secret {
    /// Wraps a secret that was read from where the configuration points.
    pub fn new(text: String) -> Self {
        Self(Some(SecretString::from(text)))
    }

    /// In place of a secret that was not read.
    pub(super) const fn unread() -> Self {
        Self(None)
    }

    /// The text, unless it was not read.
    pub(super) fn known(&self) -> Option<&str> {
        self.0.as_ref().map(SecretString::expose_secret)
    }

    /// The text itself; call it only where it is used.
    ///
    /// # Panics
    /// On a secret of [`load_without_secrets`](super::load_without_secrets): an empty
    /// text in its place would sign, and take, what anybody can forge.
    pub fn expose(&self) -> &str {
        self.known().expect("whoever uses secrets loads the configuration with them")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A secret with the name that metrics and stored events show instead of it.
#[derive(Clone, Debug)]
pub struct LabelledSecret {
    /// What people call it: `2026-11`, `old`.
    pub label: String,
    /// The secret.
    pub secret: Secret,
}
