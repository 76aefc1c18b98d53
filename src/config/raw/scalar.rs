//! The kinds of text that the file holds: names, choices, durations, paths, templates.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use crate::config::Network;
use crate::config::raw::{Reported, Value, base_url, did_you_mean, listed, quantity};
use crate::domain::Timestamp;
use crate::text::Template;

/// Names stand in addresses, keys and CRM fields, so they are short.
const NAME_CHARS_MAX: usize = 40;

/// Whether a text can name a source, a target or a task.
pub(super) fn is_name(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_name_byte)
}

impl Value<'_> {
    /// A text that follows the rule of names.
    pub(in crate::config) fn name(&self) -> Result<String, Reported> {
        match self.text()? {
            text if is_name(text) => Ok(text.to_owned()),
            _ => Err(self.refuse("must be 1 to 40 of a-z, 0-9, `-` and `_`")),
        }
    }

    /// One of a few words.
    pub(in crate::config) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Reported> {
        let text = self.text()?;
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|&(_, choice)| choice);
        chosen.ok_or_else(|| {
            let words = || choices.iter().map(|&(word, _)| word);
            self.refuse_with(format_args!("must be one of {}", listed(words())), did_you_mean(text, words()))
        })
    }

    /// A duration within a range.
    pub(in crate::config) fn duration(&self, range: &RangeInclusive<Duration>) -> Result<Duration, Reported> {
        let wanted = || {
            let (least, most) = (quantity::show_duration(*range.start()), quantity::show_duration(*range.end()));
            format!("must be a duration from {least} to {most}, such as \"1.5s\", \"20s\" or \"1h\"")
        };
        let duration = quantity::duration(self.text()?).filter(|duration| range.contains(duration));
        duration.ok_or_else(|| self.refuse(wanted()))
    }

    /// A size within a range: a number of bytes, or a text with a unit.
    pub(in crate::config) fn size(&self, range: &RangeInclusive<usize>) -> Result<usize, Reported> {
        let wanted = || {
            let (least, most) = (quantity::show_bytes(*range.start()), quantity::show_bytes(*range.end()));
            format!("must be a size from {least} to {most}, such as \"64KiB\" or \"1MiB\"")
        };
        let bytes = match self.content() {
            DeValue::Integer(_) => self.whole_number().and_then(|number| usize::try_from(number).ok()),
            _ => quantity::bytes(self.text()?),
        };
        bytes.filter(|bytes| range.contains(bytes)).ok_or_else(|| self.refuse(wanted()))
    }

    /// A text, number or flag, as text.
    pub(in crate::config) fn plain(&self) -> Result<String, Reported> {
        let number = |number: &DeInteger<'_>| i128::from_str_radix(number.as_str(), number.radix());
        match self.content() {
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Integer(integer) => match number(integer) {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(self.refuse("is too long a number")),
            },
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.refuse_type("a text, a whole number, true or false")),
        }
    }

    /// A moment, as a text or as TOML's own type; always with its offset.
    pub(in crate::config) fn moment(&self) -> Result<Timestamp, Reported> {
        let text = match self.content() {
            DeValue::Datetime(moment) => moment.to_string(),
            _ => self.text()?.to_owned(),
        };
        let moment = text.parse().map(|at: jiff::Timestamp| Timestamp::from_millis(at.as_millisecond()));
        moment.map_err(|_| self.refuse("must be a moment with an offset, such as \"2026-11-30T00:00:00Z\""))
    }

    /// A path; a relative one begins at the configuration file's folder.
    pub(in crate::config) fn path(&self) -> Result<PathBuf, Reported> {
        match self.text()? {
            "" => Err(self.refuse("is empty")),
            text => Ok(self.file.resolve(text)),
        }
    }

    /// The path of a file that is there.
    pub(in crate::config) fn existing_file(&self) -> Result<PathBuf, Reported> {
        let path = self.path()?;
        if path.is_file() { Ok(path) } else { Err(self.refuse("names a file that does not exist")) }
    }

    /// An address and port.
    pub(in crate::config) fn address(&self) -> Result<SocketAddr, Reported> {
        let address = self.text()?.parse();
        address.map_err(|_| self.refuse("must be an IP address and a port, such as \"0.0.0.0:443\""))
    }

    /// An address or a network.
    pub(in crate::config) fn network(&self) -> Result<Network, Reported> {
        Network::parse(self.text()?).map_err(|why| self.refuse(why))
    }

    /// Scheme and host of an API.
    pub(in crate::config) fn base_url(&self) -> Result<String, Reported> {
        base_url::parse(self.text()?).map_err(|why| self.refuse(why))
    }

    /// A template that compiles; an empty one is refused.
    pub(in crate::config) fn template(&self) -> Result<Template, Reported> {
        if self.text()?.is_empty() { Err(self.refuse("is empty")) } else { self.template_or_empty() }
    }

    /// A template that compiles.
    pub(in crate::config) fn template_or_empty(&self) -> Result<Template, Reported> {
        Template::parse(self.text()?).map_err(|e| self.refuse(format_args!("is not a valid template: {e}")))
    }
}
