//! What a pasted text may be, and where its story begins.

use crate::admin::trace::{EVENTS_MAX, Ends};
use crate::config::Config;
use crate::domain::{EventId, IntentId, Key, TaskId, TraceId};
use crate::store::{Broken, ItemView, View, entity_key};
use crate::text::normalize_phone;

/// What a text is by its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `e17`.
    Event(EventId),
    /// `t42`.
    Task(TaskId),
    /// `i3`.
    Intent(IntentId),
    /// 32 hex digits.
    Trace(TraceId),
    /// Anything else: an order's id or name, a deal's id, the text of our CRM
    /// field, an id of what we made in the CRM, a phone or its last digits.
    Words(String),
}

/// Guesses what a text is; a bare number is never an id of ours.
pub(super) fn asked(text: &str) -> Asked {
    let text = text.trim();
    let is_id = |letter: char| {
        text.strip_prefix(letter).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let by_form = match text.chars().next() {
        Some('e') if is_id('e') => text.parse().ok().map(Asked::Event),
        Some('t') if is_id('t') => text.parse().ok().map(Asked::Task),
        Some('i') if is_id('i') => text.parse().ok().map(Asked::Intent),
        _ => text.parse().ok().map(Asked::Trace),
    };
    by_form.unwrap_or_else(|| Asked::Words(text.trim_start_matches('#').to_owned()))
}

/// The last four digits of a phone in any usual form. Of bare digits only what has the
/// length of a national number is one: longer ones are ids.
fn last_digits(text: &str) -> Option<String> {
    let is_id = text.bytes().all(|byte| byte.is_ascii_digit()) && !(10..=11).contains(&text.len());
    normalize_phone(text).filter(|_| !is_id).map(|phone| phone.last4())
}

/// Where the story of a thing begins; empty when nothing is stored under it.
pub(super) fn find(file: &View, config: &Config, asked: &Asked) -> Result<Ends, Broken> {
    let mut ends = Ends::default();
    match asked {
        Asked::Event(id) => ends.event(file, *id)?,
        Asked::Task(id) => ends.tasks.extend(file.task(*id)?.map(|task| task.id)),
        Asked::Intent(id) => {
            let task = file.intent(*id)?.map(|intent| file.task(intent.task)).transpose()?.flatten();
            ends.tasks.extend(task.map(|task| task.id));
        }
        Asked::Trace(trace) => {
            if let Some(id) = file.event_of_trace(*trace)? {
                ends.event(file, id)?;
            }
        }
        Asked::Words(words) => ends.words(file, config, words)?,
    }
    Ok(ends)
}

impl Ends {
    fn event(&mut self, file: &View, id: EventId) -> Result<(), Broken> {
        if file.event(id)?.is_some() {
            self.events.insert(id);
            self.tasks.extend(file.tasks_of_event(id)?);
        }
        Ok(())
    }

    /// An id in a source's words; of an event with many items only the tasks about it.
    fn entity(&mut self, file: &View, id: &str, is_meant: &dyn Fn(&Key) -> bool) -> Result<(), Broken> {
        for key in file.entities(id)?.into_iter().filter(is_meant) {
            for event in file.events_of_entity(&key)?.into_iter().rev().take(EVENTS_MAX) {
                self.events.insert(event);
                for task in file.tasks_of_event(event)? {
                    let is_about = file.task(task)?.is_some_and(|task| task.entity == id);
                    self.tasks.extend(is_about.then_some(task));
                }
            }
        }
        Ok(())
    }

    /// What others call it; only where that leads nowhere a phone, then a number of ours.
    fn words(&mut self, file: &View, config: &Config, words: &str) -> Result<(), Broken> {
        self.entity(file, words, &|_| true)?;
        self.made(file, config, words)?;
        self.marker(file, config, words)?;
        self.alias(file, words)?;
        if let Some(last) = last_digits(words).filter(|_| self.is_empty()) {
            self.alias(file, &last)?;
        }
        if let Some(id) = words.parse().ok().filter(|_| self.is_empty()) {
            self.tasks.extend(file.task(id)?.map(|task| task.id));
        }
        Ok(())
    }

    /// The id of a deal, contact, note or task that we made in the CRM; its key says what for.
    fn made(&mut self, file: &View, config: &Config, id: &str) -> Result<(), Broken> {
        for target in config.targets.keys() {
            for kind in ["lead", "contact", "note", "task"] {
                let Some(key) = file.object_of_external(&format!("{target}/{kind}"), id)? else { continue };
                let parts = key.parts();
                // After the system and its account: see `worker/object.rs`.
                match parts.iter().skip(2).map(String::as_str).collect::<Vec<_>>().as_slice() {
                    ["lead", marker] | ["note", "lines", marker] => self.marker(file, config, marker)?,
                    ["note", _, lead, _] => self.entity(file, lead, &|_| true)?,
                    ["contact", "phone", phone] => {
                        if let Some(last) = last_digits(phone) {
                            self.alias(file, &last)?;
                        }
                    }
                    ["task", parent, _] => {
                        let parent = parent.parse().ok().map(|id| file.task(id)).transpose()?.flatten();
                        self.tasks.extend(parent.map(|task| task.id));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// `<source>-<order id>`, as it stands in our CRM field.
    fn marker(&mut self, file: &View, config: &Config, text: &str) -> Result<(), Broken> {
        match text.rsplit_once('-') {
            Some((source, order)) if config.sources.contains_key(source) => {
                self.entity(file, order, &|key| key.parts().first().is_some_and(|part| part == source))
            }
            _ => Ok(()),
        }
    }

    /// An order's name or the last digits of a phone: every order that has it.
    fn alias(&mut self, file: &View, alias: &str) -> Result<(), Broken> {
        for id in file.events_of_alias(alias, EVENTS_MAX)? {
            let Some(event) = file.event(id)? else { continue };
            self.events.insert(id);
            for item in &event.items {
                if let ItemView::Fact { entity_kind, entity_id, .. } = item {
                    let its_own = entity_key(&event.source, &event.account, entity_kind, entity_id);
                    self.entity(file, entity_id, &|key| *key == its_own)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_its_form_says() {
        let check = |text: &str, expected: Asked| assert_eq!(asked(text), expected, "{text}");
        let words = |text: &str| Asked::Words(text.to_owned());
        check("e17", Asked::Event(EventId::new(17)));
        check(" t42\n", Asked::Task(TaskId::new(42)));
        check("i3", Asked::Intent(IntentId::new(3)));
        check("000000000000000000000000000000ab", Asked::Trace(TraceId::new(0xab)));
        check("e0000000000000000000000000000001", Asked::Event(EventId::new(1)));
        check(
            "ea000000000000000000000000000001",
            Asked::Trace(TraceId::new(0xea00_0000_0000_0000_0000_0000_0000_0001)),
        );
        check("17", words("17"));
        check("#1042", words("1042"));
        check("e", words("e"));
        check("eleven", words("eleven"));
        check("shop-912345678901234567", words("shop-912345678901234567"));
        check("+7 (900) 000-12-34", words("+7 (900) 000-12-34"));
        check("1234", words("1234"));
        check("", words(""));
    }

    #[test]
    fn phones_are_known_by_their_form() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(last_digits(text).as_deref(), expected, "{text}");
        check("+7 (900) 000-12-34", Some("1234"));
        check("8 900 000-12-34", Some("1234"));
        check("89000001234", Some("1234"));
        check("1042", None);
        check("50000001", None);
        check("5678901234567", None);
        check("912345678901234567", None);
        check("shop-912345678901234567", None);
    }
}
