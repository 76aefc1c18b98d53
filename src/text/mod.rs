//! Texts and their small grammars: templates, phones, e-mails, money, words.

mod template;

pub use template::{Template, TemplateError};
