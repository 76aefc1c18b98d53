//! Secrets: held so that no log, error or `Debug` can show them.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// A secret text.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a secret that was read from where the configuration points.
    pub fn new(text: String) -> Self {
        Self(SecretString::from(text))
    }

    /// The text itself; call it only where it is used.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
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
