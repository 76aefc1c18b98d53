//! Intents and objects outside: what is open is in doubt, and holds exactly its keys.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::domain::IntentId;
use crate::store::body;
use crate::store::error::Broken;
use crate::store::intent::NO_TASK;
use crate::store::record::{IntentRecord, IntentStateRecord, ObjectRecord, Record as _};
use crate::store::schema;
use crate::store::verify::{Ids, Scan, each_id, exists, hashed, named};

pub(super) fn intents(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let indexes = Indexes::open(scan.txn)?;
    for row in indexes.intents.iter()? {
        let (id, value) = row?;
        let (id, name) = (id.value(), IntentId::new(id.value()));
        scan.given(schema::META_LAST_INTENT, id);
        let Some(intent) = scan.decode::<IntentRecord>(name, value.value()) else { continue };
        scan.given(schema::META_LAST_TOKEN, intent.token);
        scan.given(schema::META_PROCESS, intent.process);
        scan.sum("intents/open".to_owned(), u64::from(intent.is_open()));
        for (holds, otherwise) in indexes.agree(id, &intent)? {
            scan.must(holds, "intents", name, otherwise);
        }
    }
    task_intents(scan, &indexes.intents)?;
    doubts(scan, &indexes.intents)?;
    evidence(scan, &indexes.intents)
}

struct Indexes {
    intents: Ids,
    tasks: Ids,
    task_intents: ReadOnlyTable<(u64, u64), ()>,
    doubts: ReadOnlyTable<u64, ()>,
    objects: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl Indexes {
    fn open(txn: &ReadTransaction) -> Result<Self, Broken> {
        Ok(Self {
            intents: txn.open_table(schema::INTENTS)?,
            tasks: txn.open_table(schema::TASKS)?,
            task_intents: txn.open_table(schema::TASK_INTENTS)?,
            doubts: txn.open_table(schema::DOUBTS)?,
            objects: txn.open_table(schema::OBJECTS)?,
        })
    }

    fn agree(&self, id: u64, intent: &IntentRecord) -> Result<[(bool, &'static str); 5], Broken> {
        let mut holds_its_objects = true;
        for key in &intent.objects {
            let object = self.objects.get(key.as_slice())?;
            let object = object.and_then(|object| ObjectRecord::decode(object.value()).ok());
            holds_its_objects &= object.is_some_and(|object| (object.open == Some(id)) == intent.is_open());
        }
        let is_applied = intent.state == IntentStateRecord::Applied;
        Ok([
            (intent.task == NO_TASK || exists(&self.tasks, intent.task)?, "its task is absent"),
            (exists(&self.task_intents, (intent.task, id))?, "it is not among the intents of its task"),
            (!intent.is_open() || exists(&self.doubts, id)?, "it is open and not among the doubts"),
            (holds_its_objects, "its objects do not say whether it holds them"),
            (is_applied == intent.external_id.is_some(), "its external id does not fit its state"),
        ])
    }
}

fn task_intents(scan: &mut Scan<'_>, intents: &Ids) -> Result<(), Broken> {
    for row in scan.txn.open_table(schema::TASK_INTENTS)?.iter()? {
        scan.row("task_intents");
        let (task, id) = row?.0.value();
        let holds = named::<IntentRecord>(intents, id)?.is_some_and(|intent| intent.task == task);
        scan.must(holds, "task_intents", IntentId::new(id), "it is absent or of another task");
    }
    Ok(())
}

fn doubts(scan: &mut Scan<'_>, intents: &Ids) -> Result<(), Broken> {
    each_id(scan, "doubts", schema::DOUBTS, |scan, id| {
        let is_open = named::<IntentRecord>(intents, id)?.is_some_and(|intent| intent.is_open());
        scan.must(is_open, "doubts", IntentId::new(id), "it is absent or not open");
        Ok(())
    })
}

fn evidence(scan: &mut Scan<'_>, intents: &Ids) -> Result<(), Broken> {
    for row in scan.txn.open_table(schema::EVIDENCE)?.iter()? {
        scan.row("evidence");
        let (id, packed) = row?;
        let name = IntentId::new(id.value());
        scan.must(exists(intents, id.value())?, "evidence", name, "its intent is absent");
        scan.must(body::unpack(packed.value()).is_ok(), "evidence", name, "it cannot be unpacked");
    }
    Ok(())
}

/// Objects and the way to them by their ids outside.
pub(super) fn objects(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let (objects, intents) = (scan.txn.open_table(schema::OBJECTS)?, scan.txn.open_table(schema::INTENTS)?);
    for row in objects.iter()? {
        let (key, value) = row?;
        let name = hashed(key.value());
        let Some(object) = scan.decode::<ObjectRecord>(&name, value.value()) else { continue };
        scan.must(!object.gone || object.external_id.is_none(), "objects", &name, "it is gone and has an id outside");
        let Some(open) = object.open else { continue };
        let intent = named::<IntentRecord>(&intents, open)?;
        let is_named =
            intent.is_some_and(|intent| intent.is_open() && intent.objects.iter().any(|other| other == key.value()));
        scan.must(is_named, "objects", &name, "the intent that holds it is absent, not open, or about others");
    }
    for row in scan.txn.open_table(schema::EXTERNAL)?.iter()? {
        scan.row("external");
        let (key, object) = row?;
        let (place, id) = key.value();
        scan.must(exists(&objects, object.value())?, "external", format!("{place}/{id}"), "its object is absent");
    }
    Ok(())
}
