//! `retire`: the names that are gone for good.

use std::collections::BTreeSet;

use crate::config::raw::{Named, Reported, Value, listed};
use crate::config::{Source, Target, Task};
use crate::domain::NameKind;

/// Reads the list; what is still configured cannot be gone.
pub(super) fn read(
    list: &Value<'_>,
    sources: &Named<Source>,
    targets: &Named<Target>,
    tasks: &Named<Task>,
) -> Result<BTreeSet<(NameKind, String)>, Reported> {
    let names = list.each(|value| {
        let name = value.text()?.split_once(' ').and_then(|(word, name)| Some((NameKind::from_word(word)?, name)));
        let Some((kind, name)) = name else {
            let words = listed(NameKind::ALL.map(NameKind::as_str));
            return Err(value.refuse(format_args!("must be one of {words} and a name, such as \"task deal\"")));
        };
        let is_there = match kind {
            NameKind::Source => sources.has(name),
            NameKind::Target => targets.has(name),
            NameKind::Task => tasks.has(name),
        };
        if is_there { Err(value.refuse("names what is still there")) } else { Ok((kind, name.to_owned())) }
    })?;
    Ok(names.into_iter().collect())
}
