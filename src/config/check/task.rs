//! `[tasks.<name>]`: what is done, and what repeats do.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::raw::{Named, NamedSection, Reported, Section, Value};
use crate::config::{DealTask, FieldTemplate, HandMade, Move, NoteTask, NoticeTask, Target, Task, TaskKind, defaults};
use crate::domain::{Mode, OnReturn};

/// The version stands in keys and lists.
const VERSION_CHARS_MAX: usize = 40;
const FIELD_CODE_CHARS_MAX: usize = 40;
const DUE_IN: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(365 * 24);
/// A deal may come back to the stage after years.
const RETURN_AFTER: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(10 * 365 * 24);

#[derive(Clone, Copy)]
enum Kind {
    Deal,
    Note,
    Notice,
}

const KINDS: [(&str, Kind); 3] = [("deal", Kind::Deal), ("note", Kind::Note), ("notice", Kind::Notice)];
const HAND_MADE: [(&str, HandMade); 2] = [("flag", HandMade::Flag), ("link", HandMade::Link)];
/// The conditions of an order that may move its deal.
const ORDER_CONDITIONS: [&str; 4] = ["paid", "cancelled", "fulfilled", "refunded"];

/// Reads one task; `noticed` collects the targets that have a notice task.
pub(super) fn read(
    NamedSection { name, written, mut section }: NamedSection<'_>,
    targets: &Named<Target>,
    noticed: &mut BTreeSet<String>,
) -> Result<Task, Reported> {
    // The kind decides which other keys there are, so without it none can be judged.
    let kind = section.required("kind", |value| value.one_of(&KINDS))?;
    let target = section.required("target", |value| targets.find(value).map(|target| target.name.clone()));
    let placed = target.and_then(|target| {
        let is_notice = matches!(kind, Kind::Notice);
        match kept_for(&name, targets).or_else(|| kept_for(&written, targets)) {
            Some(kept_for) if !is_notice || kept_for != target => {
                Err(section.refuse(format_args!("has a name that is kept for the notices of `{kept_for}`"), None))
            }
            _ if is_notice && !noticed.insert(target.clone()) => {
                Err(section.refuse("is a second notice task of one target", None))
            }
            _ => Ok(target),
        }
    });
    let (mode, kind) = match kind {
        Kind::Deal => (Ok(Mode::Latest), deal(&mut section).map(|deal| TaskKind::Deal(Box::new(deal)))),
        Kind::Note => {
            (section.required("on_return", on_return).map(Mode::Once), note(&mut section).map(TaskKind::Note))
        }
        Kind::Notice => (Ok(Mode::Once(OnReturn::Keep)), notice(&mut section).map(TaskKind::Notice)),
    };
    section.finish()?;
    Ok(Task { name, target: placed?, mode: mode?, kind: kind? })
}

/// The target whose notice task alone may be named so.
fn kept_for<'a>(name: &'a str, targets: &Named<Target>) -> Option<&'a str> {
    name.strip_prefix(defaults::NOTICE_PREFIX).filter(|kept_for| targets.get(kept_for).is_some())
}

/// Gives a notice task to each target that the file gives none.
///
/// Its name holds the target's, so that it stays when another target comes.
pub(super) fn add_notices(tasks: &mut Named<Task>, targets: &Named<Target>, noticed: &BTreeSet<String>) {
    for target in targets.values().filter(|target| !noticed.contains(&target.name)) {
        let name = format!("{}{}", defaults::NOTICE_PREFIX, target.name);
        let kind = TaskKind::Notice(NoticeTask { due_in: defaults::NOTICE_DUE_IN });
        let mode = Mode::Once(OnReturn::Keep);
        tasks.add(name.clone(), Task { name, target: target.name.clone(), mode, kind });
    }
}

fn deal(section: &mut Section<'_>) -> Result<DealTask, Reported> {
    let pipeline_id = section.required("pipeline_id", Value::id);
    let status_id = section.required("status_id", Value::id);
    let responsible_user_id = section.optional("responsible_user_id", Value::id);
    let name = section.required("name", Value::template);
    let fields = section.or("fields", Vec::new(), fields);
    let moves = section.or("moves", Vec::new(), |value| value.each(stage_move));
    let hand_made = section.or("hand_made", defaults::HAND_MADE, |value| value.one_of(&HAND_MADE));
    let test_orders = section.or("test_orders", defaults::TEST_ORDERS, Value::flag);
    let mut seen = BTreeSet::new();
    let mut code = |key, default: &str| {
        let code = section.or(key, default.to_owned(), field_code)?;
        if seen.insert(code.clone()) { Ok(code) } else { Err(section.refuse("uses one field code twice", None)) }
    };
    let field_id_code = code("field_id_code", defaults::FIELD_ID_CODE);
    let field_version_code = code("field_version_code", defaults::FIELD_VERSION_CODE);
    let field_total_code = code("field_total_code", defaults::FIELD_TOTAL_CODE);
    Ok(DealTask {
        pipeline_id: pipeline_id?,
        status_id: status_id?,
        responsible_user_id: responsible_user_id?,
        name: name?,
        fields: fields?,
        moves: moves?,
        hand_made: hand_made?,
        test_orders: test_orders?,
        field_id_code: field_id_code?,
        field_version_code: field_version_code?,
        field_total_code: field_total_code?,
    })
}

fn fields(list: &Value<'_>) -> Result<Vec<FieldTemplate>, Reported> {
    let mut seen = BTreeSet::new();
    list.each(|value| {
        let mut section = value.item()?;
        let field_id = section.required("field_id", Value::id);
        let template = section.required("value", Value::template_or_empty);
        section.finish()?;
        let field = FieldTemplate { field_id: field_id?, value: template? };
        if seen.insert(field.field_id) { Ok(field) } else { Err(value.refuse("fills one field twice")) }
    })
}

fn stage_move(value: &Value<'_>) -> Result<Move, Reported> {
    let mut section = value.item()?;
    let when = section.required("when", |value| value.one_of(&ORDER_CONDITIONS.map(|word| (word, word))));
    let from = section.or("from", Vec::new(), |value| value.each(Value::id));
    let to = section.required("to", Value::id);
    section.finish()?;
    Ok(Move { when: when?.to_owned(), from: from?, to: to? })
}

/// A code of a CRM field, as the API takes it.
fn field_code(value: &Value<'_>) -> Result<String, Reported> {
    let text = value.text()?;
    let is_code_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if (1..=FIELD_CODE_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_code_byte) {
        Ok(text.to_owned())
    } else {
        Err(value.refuse(format_args!("must be 1 to {FIELD_CODE_CHARS_MAX} letters, digits and `_`")))
    }
}

fn note(section: &mut Section<'_>) -> Result<NoteTask, Reported> {
    let text = section.required("text", Value::template);
    let valid_in = section.or("valid_in", Vec::new(), |value| value.each(Value::id));
    let version = section.or("version", defaults::NOTE_VERSION.to_owned(), version);
    Ok(NoteTask { text: text?, valid_in: valid_in?, version: version? })
}

fn version(value: &Value<'_>) -> Result<String, Reported> {
    match value.text()? {
        text if (1..=VERSION_CHARS_MAX).contains(&text.chars().count()) => Ok(text.to_owned()),
        _ => Err(value.refuse(format_args!("must have 1 to {VERSION_CHARS_MAX} characters"))),
    }
}

/// `"keep"`; the two other answers are known, but not built yet.
fn on_return(value: &Value<'_>) -> Result<OnReturn, Reported> {
    const NOT_YET: &str = "asks for what is not supported yet";
    let hint = || Some("write on_return = \"keep\"".to_owned());
    if value.is_table() {
        let mut section = value.section()?;
        let after = section.required("after", |value| value.duration(&RETURN_AFTER));
        section.finish()?;
        after?;
        return Err(value.refuse_with(NOT_YET, hint()));
    }
    match value.one_of(&[("keep", Some(OnReturn::Keep)), ("by-terms", None)])? {
        Some(keep) => Ok(keep),
        None => Err(value.refuse_with(NOT_YET, hint())),
    }
}

fn notice(section: &mut Section<'_>) -> Result<NoticeTask, Reported> {
    let due_in = section.or("due_in", defaults::NOTICE_DUE_IN, |value| value.duration(&DUE_IN));
    Ok(NoticeTask { due_in: due_in? })
}
