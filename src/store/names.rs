//! Which names keys were built with: they must stay in the configuration.
//!
//! A name is noted by the commit that first builds a key with it, so a source
//! that never sent anything may go without a word.

use redb::ReadableTable as _;

use crate::domain::{NameKind, Timestamp, UsedName};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::record::Malformed;
use crate::store::schema;
use crate::store::view::View;

impl Batch<'_> {
    /// Notes that a key is built with a name; the first time stands.
    pub(super) fn use_name(&mut self, kind: NameKind, name: &str) -> Result<(), Broken> {
        let key = (kind.as_str(), name);
        if self.tables.names.get(key)?.is_none() {
            self.tables.names.insert(key, self.now.as_millis())?;
        }
        Ok(())
    }
}

impl View {
    /// The names that keys hold.
    ///
    /// # Errors
    /// [`Broken`] when the file cannot be read.
    pub fn names(&self) -> Result<Vec<UsedName>, Broken> {
        let table = self.txn.open_table(schema::NAMES)?;
        let rows = table.iter()?;
        rows.map(|row| {
            let (key, since) = row?;
            let (word, name) = key.value();
            let unknown = || Malformed { what: "names", why: "its kind".to_owned() };
            let kind = NameKind::from_word(word).ok_or_else(unknown)?;
            Ok(UsedName { kind, name: name.to_owned(), since: Timestamp::from_millis(since.value()) })
        })
        .collect()
    }
}
