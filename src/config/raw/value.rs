//! One value of the file, and the TOML types that it can have.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use crate::config::raw::section::Title;
use crate::config::raw::{File, Reported, Section};

/// A value that knows its key, its table and its line.
pub(in crate::config) struct Value<'f> {
    pub(super) file: &'f File<'f>,
    title: Title,
    key: String,
    line: usize,
    content: DeValue<'f>,
}

impl<'f> Value<'f> {
    pub(super) fn new(file: &'f File<'f>, title: Title, key: String, line: usize, content: DeValue<'f>) -> Self {
        Self { file, title, key, line, content }
    }

    /// Reports what is wrong with it; the text goes on after the key's name.
    pub(in crate::config) fn refuse(&self, text: impl Display) -> Reported {
        self.refuse_with(text, None)
    }

    /// Reports what is wrong with it, and what to write instead.
    pub(in crate::config) fn refuse_with(&self, text: impl Display, hint: Option<String>) -> Reported {
        self.file.report(Some(self.line), format!("{} {text}", self.title.name(&self.key)), hint)
    }

    /// Reports its type; its content is not repeated, for it may be a secret in the wrong place.
    pub(super) fn refuse_type(&self, wanted: &str) -> Reported {
        self.refuse(format_args!("must be {wanted}, not a TOML {}", self.content.type_str()))
    }

    pub(super) const fn content(&self) -> &DeValue<'f> {
        &self.content
    }

    /// Whether it is a table.
    pub(in crate::config) const fn is_table(&self) -> bool {
        matches!(self.content, DeValue::Table(_))
    }

    /// Whether it is a list.
    pub(in crate::config) const fn is_list(&self) -> bool {
        matches!(self.content, DeValue::Array(_))
    }

    /// A text.
    pub(in crate::config) fn text(&self) -> Result<&str, Reported> {
        self.content.as_str().ok_or_else(|| self.refuse_type("a text in quotes"))
    }

    /// `true` or `false`.
    pub(in crate::config) fn flag(&self) -> Result<bool, Reported> {
        self.content.as_bool().ok_or_else(|| self.refuse_type("true or false"))
    }

    /// A whole number within a range.
    pub(in crate::config) fn number<T>(&self, range: &RangeInclusive<T>) -> Result<T, Reported>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        if !self.content.is_integer() {
            return Err(self.refuse_type(&wanted));
        }
        self.whole_number()
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.refuse(format_args!("must be {wanted}")))
    }

    /// The id of something in another system: a whole number above zero.
    pub(in crate::config) fn id(&self) -> Result<u64, Reported> {
        if !self.content.is_integer() {
            return Err(self.refuse_type("an id, a whole number above 0"));
        }
        let id = self.whole_number().filter(|&number| number > 0);
        id.ok_or_else(|| self.refuse("must be an id, a whole number above 0"))
    }

    /// Reads every item of a list, each with its own line; all are read before a failure counts.
    pub(in crate::config) fn each<T>(
        &self,
        mut read: impl FnMut(&Self) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        let items = self.content.as_array().ok_or_else(|| self.refuse_type("a list"))?;
        let one = |item: &Spanned<DeValue<'f>>| {
            let (line, content) = (self.file.line(&item.span()), item.get_ref().clone());
            read(&Self::new(self.file, self.title.clone(), self.key.clone(), line, content))
        };
        let outcomes: Vec<_> = items.iter().map(one).collect();
        outcomes.into_iter().collect()
    }

    /// Reads every item of a list that must have some.
    pub(in crate::config) fn each_of_some<T>(
        &self,
        read: impl FnMut(&Self) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        let items = self.each(read)?;
        if items.is_empty() { Err(self.refuse("is an empty list")) } else { Ok(items) }
    }

    /// Opens a table under a key.
    pub(in crate::config) fn section(&self) -> Result<Section<'f>, Reported> {
        self.table(false)
    }

    /// Opens a table that is an item of a list.
    pub(in crate::config) fn item(&self) -> Result<Section<'f>, Reported> {
        self.table(true)
    }

    fn table(&self, is_list: bool) -> Result<Section<'f>, Reported> {
        let table = self.content.as_table().ok_or_else(|| self.refuse_type("a table"))?;
        Ok(Section::new(self.file, self.title.of(&self.key, is_list), Some(self.line), table.clone()))
    }

    pub(super) fn whole_number(&self) -> Option<u64> {
        let integer = self.content.as_integer()?;
        u64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }
}
