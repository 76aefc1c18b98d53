//! amoCRM and Kommo: a form with bracket keys, many changes in one request.
//!
//! ```text
//! account[id]=31000001&leads[status][0][id]=50000001&leads[status][0][status_id]=142...
//!                      entity action  n  field
//! ```
//!
//! Every value is text. Nothing is signed and there is no delivery id: a repeat
//! is known by a digest of all pairs, and only when each item has a time of its
//! own, because the same words may tell of a second change. A hook is a hint
//! that an entity changed; what it says is never the truth.
//!
//! Without an `account[id]` that is ours the delivery is foreign: items are
//! still read, so that people see what came.
//!
//! Items come in alphabetical order of entity and action, then by index.
//!
//! Sources: amoCRM documentation "webhooks format", Kommo developer
//! documentation "webhooks general" and "webhooks dp", read 2026-11; public
//! captures of deliveries, 2018-2026.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::domain::{KeyBuilder, TEXT_PART_ABSENT, Timestamp};
use crate::source::brackets::{self, Form, index, is_plain, shown};
use crate::source::headers::kept;
use crate::source::{Fact, Identity, Item, Reading, VerifiedDelivery};

/// The last repeat comes an hour and 35 minutes after the event (amoCRM
/// documentation, "webhooks format", read 2026-11).
const HORIZON: Duration = Duration::from_hours(2);

/// More items than any bulk change makes; the rest is told as one that cannot be read.
const ITEMS_MAX: usize = 10_000;

const KEPT: [&str; 3] = ["content-type", "user-agent", "x-amocrm-requestid"];

/// Reads the body; `account_id` is ours.
pub(super) fn read(account_id: u64, delivery: &VerifiedDelivery) -> Reading {
    let form = brackets::parse(delivery.body());
    let account = form.tree.get("account").and_then(|account| text(account, "id")).filter(|id| index(id).is_some());
    let account = account.unwrap_or(TEXT_PART_ABSENT).to_owned();
    let items = items(&form);
    let facts = || items.iter().filter_map(|item| if let Item::Fact(fact) = item { Some(fact) } else { None });
    Reading {
        foreign: account != account_id.to_string(),
        topic: joined(facts().map(|fact| fact.kind.as_str())),
        identity: facts().all(|fact| fact.source_time.is_some()).then(|| identity(delivery, &account, form.digest)),
        source_time: facts().filter_map(|fact| fact.source_time).max(),
        correlation: None,
        headers: kept(delivery.headers(), |name| KEPT.contains(&name)),
        items,
        account,
    }
}

fn identity(delivery: &VerifiedDelivery, account: &str, digest: [u8; 16]) -> Identity {
    let hex = format!("{:032x}", u128::from_be_bytes(digest));
    let key = KeyBuilder::new().part(delivery.source()).part(account).part("digest").part(&hex).finish();
    Identity { key, fingerprint: digest, horizon: HORIZON }
}

/// The kinds, each once, in order.
fn joined<'a>(kinds: impl Iterator<Item = &'a str>) -> String {
    let mut topic: Vec<&str> = Vec::new();
    for kind in kinds {
        if !topic.contains(&kind) {
            topic.push(kind);
        }
    }
    topic.join(",")
}

fn items(form: &Form) -> Vec<Item> {
    let mut items: Vec<Item> = places(&form.tree).into_iter().map(Place::read).collect();
    items.extend(form.problems.iter().map(|problem| unreadable(&problem.at, problem.why)));
    if items.is_empty() {
        items.push(unreadable("body", "no entity is named in it"));
    }
    if items.len() > ITEMS_MAX {
        items.truncate(ITEMS_MAX);
        items.push(unreadable("body", "more items than one delivery may hold; the rest is not read"));
    }
    items
}

fn unreadable(at: &str, why: &str) -> Item {
    Item::Unreadable { at: at.to_owned(), why: why.to_owned() }
}

/// A name of the first level.
#[derive(Clone, Copy)]
struct Entity<'a> {
    /// In kinds: `leads` of `leads.status`.
    name: &'a str,
    kind: &'a str,
    id_field: &'a str,
}

impl<'a> Entity<'a> {
    fn of(key: &'a str) -> Self {
        let (name, kind, id_field) = match key {
            "leads" => (key, "lead", "id"),
            "contacts" => (key, "contact", "id"),
            "companies" => (key, "company", "id"),
            "customers" => (key, "customer", "id"),
            "task" | "tasks" => ("task", "task", "id"),
            "unsorted" => (key, "unsorted", "uid"),
            "talk" => (key, "talk", "talk_id"),
            "message" | "outgoing_message" => (key, "message", "id"),
            "catalogs" => (key, "catalog", "id"),
            "chat_template_reviews" => (key, "chat_template_review", "id"),
            _ => (key, "other", "id"),
        };
        Self { name, kind, id_field }
    }
}

/// Where an item stands.
struct Place<'a> {
    entity: Entity<'a>,
    action: &'a str,
    at: String,
    value: &'a Value,
}

/// All places in the tree; lists are flattened, since one example in the
/// vendor's documentation has a list of tasks inside a list.
fn places(tree: &Map<String, Value>) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    for (key, actions) in tree.iter().filter(|(key, _)| *key != "account") {
        // A review of a chat template may come as a bare `add[0]...`.
        if key == "add" {
            let place = |at, value| Place { entity: Entity::of("chat_template_reviews"), action: key, at, value };
            flatten(key.clone(), actions, &mut |at, value| places.push(place(at, value)));
            continue;
        }
        let entity = Entity::of(key);
        let Value::Object(actions) = actions else {
            places.push(Place { entity, action: "", at: shown(key).to_owned(), value: actions });
            continue;
        };
        for (action, value) in actions {
            let at = format!("{}[{}]", shown(key), shown(action));
            flatten(at, value, &mut |at, value| places.push(Place { entity, action, at, value }));
        }
    }
    places
}

/// Hands each element of a list on, in order of index, whatever holes it has.
///
/// Recurses no deeper than a form can be.
fn flatten<'a>(at: String, value: &'a Value, take: &mut impl FnMut(String, &'a Value)) {
    match elements(value) {
        None => take(at, value),
        Some(elements) => {
            for (n, element) in elements {
                flatten(format!("{at}[{n}]"), element, take);
            }
        }
    }
}

/// The elements of a list; `None` for anything else.
fn elements(value: &Value) -> Option<Vec<(u64, &Value)>> {
    match value {
        Value::Array(elements) => Some((0..).zip(elements).collect()),
        Value::Object(members) => {
            let mut elements: Vec<_> =
                members.iter().map(|(key, value)| Some((index(key)?, value))).collect::<Option<_>>()?;
            elements.sort_by_key(|(n, _)| *n);
            Some(elements)
        }
        _ => None,
    }
}

impl Place<'_> {
    fn read(self) -> Item {
        if !is_plain(self.entity.name) || !is_plain(self.action) {
            return unreadable(&self.at, "it names no entity and action");
        }
        let data = match self.value {
            // Short deletions name the id alone.
            Value::String(id) if self.action == "delete" => json!({ self.entity.id_field: id }),
            // A note has a wrapper of its own.
            Value::Object(item) if self.action == "note" => item.get("note").unwrap_or(self.value).clone(),
            Value::Object(_) => self.value.clone(),
            _ => return unreadable(&self.at, "it is no item"),
        };
        let (entity_kind, id_field) = self.about(&data);
        let Some(entity_id) = text(&data, id_field).filter(|id| is_plain(id)) else {
            return unreadable(&self.at, "it has no id");
        };
        Item::Fact(Fact {
            kind: format!("{}.{}", self.entity.name, self.action),
            entity_kind: entity_kind.to_owned(),
            entity_id: entity_id.to_owned(),
            source_time: changed_at(self.action, &data),
            is_whole: false,
            data,
        })
    }

    /// The kind of the entity, and the field with its id: a note is about the
    /// element that it hangs on, and companies come under `contacts` too.
    fn about(&self, data: &Value) -> (&str, &str) {
        let is = |field: &str, word: &str| text(data, field) == Some(word);
        match self.action {
            "note" if is("element_type", "1") => ("contact", "element_id"),
            "note" if is("element_type", "2") => ("lead", "element_id"),
            "note" if is("element_type", "3") => ("company", "element_id"),
            "note" => (self.entity.kind, "element_id"),
            _ if self.entity.kind == "contact" && is("type", "company") => ("company", self.entity.id_field),
            _ => (self.entity.kind, self.entity.id_field),
        }
    }
}

/// When this item changed: `updated_at`, which the API shows too, else its
/// older name; what is added is as old as its change.
///
/// Unix seconds; tasks have `last_modified` as a text date without a zone,
/// which says no instant.
fn changed_at(action: &str, data: &Value) -> Option<Timestamp> {
    let instant =
        |field: &str| text(data, field)?.parse().ok().filter(|secs: &i64| *secs > 0).map(Timestamp::from_secs);
    let created = || (action == "add").then(|| instant("created_at")).flatten();
    instant("updated_at").or_else(|| instant("last_modified")).or_else(created)
}

fn text<'a>(item: &'a Value, field: &str) -> Option<&'a str> {
    item.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::RawDelivery;
    use crate::source::samples::{amocrm_source, delivery, file, recorded, told};
    use crate::source::{read, verify};

    fn reading(raw: RawDelivery) -> Reading {
        let source = amocrm_source();
        read(&source, &verify(&source, raw).expect("nothing is signed"))
    }

    fn sample(name: &str) -> Reading {
        reading(recorded("amocrm/request.headers", &format!("amocrm/{name}.txt")))
    }

    /// The reading of a body from our account.
    fn ours(body: &str) -> Reading {
        reading(delivery(format!("account[id]=31000001&{body}").as_bytes()))
    }

    fn data(reading: &Reading) -> &Value {
        match reading.items.first() {
            Some(Item::Fact(fact)) => &fact.data,
            other => panic!("a fact is expected: {other:?}"),
        }
    }

    #[test]
    fn samples_are_read() {
        let unsorted = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab";
        let check = |name: &str, entity: &str, time: &str| {
            let (kind, _) = entity.split_once(' ').expect("kind, entity kind and id");
            let no_repeat = if time == "never" { ", a repeat cannot be told" } else { "" };
            let expected = [format!("31000001: {kind} {time}{no_repeat}"), format!("{entity} {time}")];
            assert_eq!(told(&sample(name)), expected, "{name}");
        };
        check("contacts-add", "contacts.add contact 60000001", "2026-11-30T11:00:00.000Z");
        check("contacts-delete", "contacts.delete contact 60000003", "never");
        check("contacts-update-company", "contacts.update company 60000002", "2026-11-30T11:11:40.000Z");
        check("digital-pipeline-status", "leads.status lead 50000001", "never");
        check("leads-add", "leads.add lead 50000002", "2026-11-30T11:01:40.000Z");
        check("leads-add-account-last", "leads.add lead 50000003", "2026-11-30T11:01:40.000Z");
        check("leads-delete", "leads.delete lead 50000004", "never");
        check("leads-note", "leads.note lead 50000001", "2026-11-30T11:20:11.000Z");
        check("leads-responsible", "leads.responsible lead 50000001", "2026-11-30T11:10:00.000Z");
        check("leads-status", "leads.status lead 50000001", "2026-11-30T11:05:10.000Z");
        check("leads-status-literal-brackets", "leads.status lead 50000001", "2026-11-30T11:05:10.000Z");
        check("leads-status-pipeline-change", "leads.status lead 50000001", "2026-11-30T11:43:20.000Z");
        check("leads-status-won", "leads.status lead 50000001", "2026-11-30T12:00:00.000Z");
        check("leads-update", "leads.update lead 50000001", "2026-11-30T11:08:20.000Z");
        let message = "660b5b93-0000-4ead-8c38-379";
        check("message-add", &format!("message.add message {message}7c0621460"), "2026-11-30T11:21:40.000Z");
        let outgoing = format!("outgoing_message.add message {message}7c0621461");
        check("outgoing-message-add", &outgoing, "2026-11-30T11:22:40.000Z");
        check("talk-add", "talk.add talk 191", "2026-11-30T11:21:41.000Z");
        check("task-update", "task.update task 1500001", "2026-11-30T12:00:00.000Z");
        check("unsorted-accept", &format!("unsorted.delete unsorted {unsorted}"), "never");
        check("unsorted-add", &format!("unsorted.add unsorted {unsorted}"), "2026-11-30T11:00:00.000Z");
    }

    /// One request holds three kinds, and lists of more than ten items keep their order.
    #[test]
    fn a_batch_is_read_whole() {
        let at = "2026-11-30T11:26:40.000Z";
        let mut expected = vec![
            format!("31000001: contacts.update,leads.status,leads.update {at}"),
            format!("contacts.update contact 60000001 {at}"),
            format!("leads.status lead 50000011 {at}"),
            format!("leads.status lead 50000012 {at}"),
        ];
        expected.extend((50_000_010..=50_000_021).map(|id| format!("leads.update lead {id} {at}")));
        assert_eq!(told(&sample("leads-batch")), expected);
    }

    #[test]
    fn a_hostile_body_loses_only_what_cannot_be_read() {
        let expected = [
            "31000001: leads.status never, a repeat cannot be told",
            "unreadable __proto__[x]: it is no item",
            "leads.status lead 50000099 never",
            "leads.status lead 1 never",
            "unreadable ?: a pair has no name",
            "unreadable ?: a pair has no name",
            "unreadable a: a key is too deep",
            "unreadable leads[status]: a text stands where members are; it is left out",
            "unreadable leads[status][0][name]: bytes that are not UTF-8 were replaced",
        ];
        assert_eq!(told(&sample("hostile-keys")), expected);
    }

    #[test]
    fn the_data_is_the_item() {
        let status = sample("leads-status");
        let lead = data(&status);
        assert_eq!(lead["name"], "Заявка с сайта: окна «Комфорт» (2 шт.) + монтаж");
        assert_eq!(lead["status_id"], "61000003");
        assert_eq!(lead["tags"], json!([{"id": "88001", "name": "сайт"}, {"id": "88002", "name": "VIP, опт"}]));
        assert_eq!(lead["custom_fields"][1]["values"], json!(["1796083200"]), "a date is a bare text");
        let contact = sample("contacts-add");
        assert_eq!(data(&contact)["custom_fields"][0]["values"][1]["value"], "8 (900) 000-00-02");
        assert_eq!(data(&contact)["custom_fields"][3]["values"], json!({"value": "Юр. лицо", "enum": "502021"}));
        assert_eq!(data(&contact)["linked_leads_id"]["50000002"], json!({"ID": "50000002"}));
        assert_eq!(data(&sample("leads-note"))["id"], "40000001", "the wrapper is taken off");
        assert_eq!(data(&sample("message-add"))["text"], "Здравствуйте! Сколько стоит? 😀 100% = ?");
    }

    /// B28: any number of items, any depth seen, any index; nothing is allocated for holes.
    #[test]
    fn lists_are_read_in_order_of_index() {
        let many: String = (0..=40).rev().map(|n| format!("leads[status][{n}][id]={}&", 1000 + n)).collect();
        let lines = told(&ours(&many));
        let expected: Vec<_> = (1000..=1040).map(|id| format!("leads.status lead {id} never")).collect();
        assert_eq!(lines[1..], expected);
        let sparse = "leads[status][999999999][id]=3&leads[status][0][id]=1&leads[status][7][id]=2";
        let ids = ["1", "2", "3"].map(|id| format!("leads.status lead {id} never"));
        assert_eq!(told(&ours(sparse))[1..], ids);
        let deep = "contacts[add][0][id]=1&contacts[add][0][custom_fields][25][values][0][enums][0]=5";
        assert_eq!(data(&ours(deep))["custom_fields"]["25"]["values"][0]["enums"], json!(["5"]));
    }

    /// B29: an id is text, with every digit and sign of it.
    #[test]
    fn ids_are_exact() {
        for id in ["9196877626998784", "9196877626998785", "1524831183200260097", "1e3", "1000", "007", "7"] {
            let reading = ours(&format!("leads[add][0][id]={id}"));
            assert_eq!(told(&reading)[1..], [format!("leads.add lead {id} never")]);
        }
        for id in ["", "a%2Fb", "%D0%B0", "-1", "..", "%FF"] {
            let reading = ours(&format!("leads[add][0][id]={id}"));
            assert_eq!(told(&reading)[1], "unreadable leads[add][0]: it has no id", "{id}");
        }
    }

    #[test]
    fn each_entity_has_its_kind() {
        let check = |body: &str, expected: &str| assert_eq!(told(&ours(body))[1..], [expected], "{body}");
        check("companies[restore][0][id]=1", "companies.restore company 1 never");
        check("customers[update][0][id]=1&customers[update][0][updated_at]=0", "customers.update customer 1 never");
        check("tasks[add][0][id]=1", "task.add task 1 never");
        check("task[update][0][0][id]=1", "task.update task 1 never");
        check("catalogs[add][0][id]=1&catalogs[add][0][type]=catalog", "catalogs.add catalog 1 never");
        let review = "chat_template_reviews.add chat_template_review 1 never";
        check("chat_template_reviews[add][0][id]=1", review);
        check("add[0][id]=1", review);
        check("leads[mail_in][0][id]=1", "leads.mail_in lead 1 never");
        check("invoices[add][0][id]=1", "invoices.add other 1 never");
        let note = |of: &str, kind: &str| {
            let key = "contacts[note][0][note]";
            format!("{key}[id]=9&{key}[element_id]=1&{key}[element_type]={kind}&contacts[note][0][type]={of}")
        };
        check(&note("contact", "1"), "contacts.note contact 1 never");
        check(&note("company", "3"), "contacts.note company 1 never");
        check("customers[note][0][note][element_id]=1", "customers.note customer 1 never");
        check("leads[delete][0]=1", "leads.delete lead 1 never");
        check("leads[delete]=1", "leads.delete lead 1 never");
        check("leads[delete][id]=1", "leads.delete lead 1 never");
        check("leads[add][0]=1", "unreadable leads[add][0]: it is no item");
        check("leads[add]=1", "unreadable leads[add]: it is no item");
        check("leads[a+b][0][id]=1", "unreadable leads[?][0]: it names no entity and action");
        check("leads=1", "unreadable leads: it names no entity and action");
        check("", "unreadable body: no entity is named in it");
    }

    #[test]
    fn an_account_that_is_not_ours_is_foreign() {
        let check = |account: &str, expected: (&str, bool)| {
            let reading = reading(delivery(format!("{account}&leads[add][0][id]=1").as_bytes()));
            assert_eq!((reading.account.as_str(), reading.foreign), expected, "{account}");
            assert_eq!(reading.items.len(), 1);
        };
        check("account[id]=31000001", ("31000001", false));
        check("account[id]=31000002", ("31000002", true));
        check("account[id]=031000001", ("-", true));
        check("account[id][]=31000001", ("-", true));
        check("account=31000001", ("-", true));
        check("account[subdomain]=tambourtest", ("-", true));
        let json = told(&reading(delivery(br#"{"name":"Anna"}"#)));
        assert_eq!(json, ["- (foreign):  never", "unreadable ?: it names no entity and action"]);
    }

    /// A repeat has the same pairs; words without a time may tell of a second change.
    #[test]
    fn a_repeat_is_known_by_its_pairs() {
        let first = sample("leads-status").identity.expect("its item has a time");
        let hex = format!("{:032x}", u128::from_be_bytes(first.fingerprint));
        assert_eq!(first.key.parts(), ["crm", "31000001", "digest", &hex]);
        assert_eq!(first.horizon, Duration::from_secs(7200));
        assert_eq!(sample("leads-status-literal-brackets").identity, Some(first.clone()));
        assert_ne!(sample("leads-status-won").identity, Some(first));
        let timed = "leads[update][0][id]=1&leads[update][0][updated_at]=5";
        assert_eq!(ours(&format!("{timed}&")).identity, ours(timed).identity);
        assert!(ours(timed).identity.is_some());
        assert_eq!(ours(&format!("{timed}&leads[update][1][id]=2")).identity, None);
        let broken = format!("{timed}&leads[update][1][name]=a");
        assert!(ours(&broken).identity.is_some(), "what cannot be read makes no task");
    }

    #[test]
    fn the_time_of_an_item_is_its_change() {
        let check = |action: &str, fields: &[(&str, &str)], expected: Option<i64>| {
            let item: String =
                fields.iter().map(|(field, value)| format!("&leads[{action}][0][{field}]={value}")).collect();
            let reading = ours(&format!("leads[{action}][0][id]=1{item}"));
            assert_eq!(reading.source_time.map(Timestamp::as_secs), expected, "{fields:?}");
        };
        check("update", &[("updated_at", "7"), ("last_modified", "9"), ("created_at", "5")], Some(7));
        check("update", &[("last_modified", "9"), ("created_at", "5")], Some(9));
        check("update", &[("created_at", "5")], None);
        check("add", &[("created_at", "5")], Some(5));
        check("update", &[("updated_at", "0")], None);
        check("update", &[("updated_at", "-7"), ("last_modified", "2026-11-30+14:00:00")], None);
        check("update", &[("updated_at", "99999999999999999999")], None);
    }

    /// Only these headers are kept, and the body alone is enough to read again.
    #[test]
    fn kept_headers_are_on_the_list() {
        let first = sample("leads-status");
        let names: Vec<_> = first.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "user-agent", "x-amocrm-requestid"]);
        let again = reading(delivery(&file("amocrm/leads-status.txt")));
        assert_eq!(Reading { headers: first.headers.clone(), ..again }, first);
    }

    #[test]
    fn items_are_bounded() {
        let reading = ours(&"leads[delete][]=1&".repeat(ITEMS_MAX + 2));
        assert_eq!(reading.items.len(), ITEMS_MAX + 1);
        assert!(matches!(reading.items.last(), Some(Item::Unreadable { at, .. }) if at == "body"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(!reading(delivery(&body)).items.is_empty());
        }

        #[test]
        fn no_form_panics(
            body in r"((account|leads|contacts|task|add)(\[(add|note|delete|id|type|[0-9]{0,20})\]){0,6}=[a-z0-9%]{0,4}&){0,20}",
        ) {
            prop_assert!(!reading(delivery(body.as_bytes())).items.is_empty());
        }
    }
}
