//! Texts and their small grammars: templates, phones, e-mails, money.
//!
//! Phones and e-mails come from strangers: what cannot be read is absent, never
//! an error and never a panic. Money is exact or refused.

mod email;
mod money;
mod phone;
mod template;

pub use email::{Email, normalize_email};
pub use money::{Money, MoneyError};
pub use phone::{Phone, normalize_phone, normalize_phones};
pub use template::{Template, TemplateError};
