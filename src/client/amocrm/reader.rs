//! What is asked of amoCRM.

use std::collections::HashSet;

use form_urlencoded::Serializer;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::amocrm::wire::{
    WireAccount, WireContact, WireField, WireLead, WireNamed, WireNote, WirePage, WirePipeline, WireTask, id_of,
};
use crate::client::amocrm::{Account, Amocrm, Contact, CrmTask, Field, Lead, Note, Pipeline, User};
use crate::client::classify::{Asked, read_json, unreadable};
use crate::client::{Answer, Method};
use crate::domain::{ReasonCode, Refusal, Timestamp};

/// The most that amoCRM gives at once (50 of custom fields).
const PAGE_ITEMS_MAX: &str = "250";

/// More pages than that are no answer: what lies behind them could be what is looked for.
const PAGES_MAX: u32 = 20;

const NO_CONTENT: u16 = 204;

/// A collection that is read to its end.
struct Listing<'a> {
    asked: Asked,
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    /// The name of the items under `_embedded`.
    name: &'a str,
    /// Of items that come newest first, how far back to go.
    since: Option<Timestamp>,
}

impl Amocrm {
    /// Reads the account that the token belongs to.
    ///
    /// # Errors
    /// Any class but `Unknown`.
    pub async fn account(&self) -> Result<Account, Refusal> {
        let answer = self.get(Asked::List, "/account").await?;
        read_json(Asked::List, &answer).map(WireAccount::into_account)
    }

    /// Reads all pipelines with their stages.
    ///
    /// # Errors
    /// As [`Self::account`].
    pub async fn pipelines(&self) -> Result<Vec<Pipeline>, Refusal> {
        let listing =
            Listing { asked: Asked::List, path: "/leads/pipelines", query: &[], name: "pipelines", since: None };
        Ok(self.list(&listing).await?.into_iter().map(WirePipeline::into_pipeline).collect())
    }

    /// Reads all users; the token's user must be an administrator.
    ///
    /// # Errors
    /// As [`Self::account`].
    pub async fn users(&self) -> Result<Vec<User>, Refusal> {
        let listing = Listing { asked: Asked::List, path: "/users", query: &[], name: "users", since: None };
        Ok(self.list(&listing).await?.into_iter().map(WireNamed::into_user).collect())
    }

    /// Reads all custom fields of deals.
    ///
    /// # Errors
    /// As [`Self::account`].
    pub async fn lead_fields(&self) -> Result<Vec<Field>, Refusal> {
        let listing = Listing {
            asked: Asked::List,
            path: "/leads/custom_fields",
            query: &[],
            name: "custom_fields",
            since: None,
        };
        Ok(self.list(&listing).await?.into_iter().map(WireField::into_field).collect())
    }

    /// Reads a deal; `None` when it does not exist or is in the bin.
    ///
    /// # Errors
    /// Any class but `Unknown`.
    pub async fn lead(&self, id: u64) -> Result<Option<Lead>, Refusal> {
        let lead = self.entity::<WireLead>(&format!("/leads/{id}?with=contacts")).await?;
        Ok(lead.and_then(WireLead::into_lead))
    }

    /// Reads a contact; `None` when it does not exist or is in the bin.
    ///
    /// # Errors
    /// Any class but `Unknown`.
    pub async fn contact(&self, id: u64) -> Result<Option<Contact>, Refusal> {
        let contact = self.entity::<WireContact>(&format!("/contacts/{id}?with=leads")).await?;
        Ok(contact.and_then(WireContact::into_contact))
    }

    /// Finds deals that hold `query` somewhere; a new deal may be invisible for a while.
    ///
    /// # Errors
    /// Any class but `Unknown`; `Dead` (`ambiguous`) when there are too many hits to see them all.
    pub async fn search_leads(&self, query: &str) -> Result<Vec<Lead>, Refusal> {
        // By id, so that rows that change between two pages do not move over the border.
        let query = [("query", query), ("with", "contacts"), ("order[id]", "asc")];
        let listing = Listing { asked: Asked::List, path: "/leads", query: &query, name: "leads", since: None };
        Ok(self.list(&listing).await?.into_iter().filter_map(WireLead::into_lead).collect())
    }

    /// Finds contacts that hold `query` somewhere; a new contact may be invisible for a while.
    ///
    /// # Errors
    /// As [`Self::search_leads`].
    pub async fn search_contacts(&self, query: &str) -> Result<Vec<Contact>, Refusal> {
        let query = [("query", query), ("with", "leads"), ("order[id]", "asc")];
        let listing = Listing { asked: Asked::List, path: "/contacts", query: &query, name: "contacts", since: None };
        Ok(self.list(&listing).await?.into_iter().filter_map(WireContact::into_contact).collect())
    }

    /// Reads a deal's text notes, newest first.
    ///
    /// # Errors
    /// As [`Self::search_leads`]; `Dead` (`entity_gone`) when there is no such deal.
    pub async fn notes(&self, lead_id: u64) -> Result<Vec<Note>, Refusal> {
        let path = format!("/leads/{lead_id}/notes");
        let query = [("filter[note_type][]", "common"), ("order[id]", "desc")];
        let listing = Listing { asked: Asked::Entity, path: &path, query: &query, name: "notes", since: None };
        Ok(self.list(&listing).await?.into_iter().filter_map(WireNote::into_note).collect())
    }

    /// Reads the CRM tasks of a deal, or of the whole account, that were made since then, newest first.
    ///
    /// # Errors
    /// As [`Self::search_leads`].
    pub async fn crm_tasks(&self, lead_id: Option<u64>, since: Timestamp) -> Result<Vec<CrmTask>, Refusal> {
        let id = lead_id.map(|id| id.to_string());
        let mut query = Vec::new();
        if let Some(id) = &id {
            query.extend([("filter[entity_type]", "leads"), ("filter[entity_id][]", id)]);
        }
        query.push(("order[id]", "desc"));
        let listing = Listing { asked: Asked::List, path: "/tasks", query: &query, name: "tasks", since: Some(since) };
        Ok(self.list(&listing).await?.into_iter().map(WireTask::into_crm_task).collect())
    }

    async fn get(&self, asked: Asked, path: &str) -> Result<Answer, Refusal> {
        self.peer.send(asked, Method::Get, path, None).await
    }

    async fn entity<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Refusal> {
        match self.get(Asked::Entity, path).await {
            Ok(answer) if answer.status == NO_CONTENT => Ok(None),
            Ok(answer) => read_json(Asked::Entity, &answer).map(Some),
            Err(Refusal::Dead { reason, .. }) if reason == ReasonCode::ENTITY_GONE => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Reads all pages; an item that two pages show counts once.
    ///
    /// The page's own link to the next one only says that there is one: it is
    /// not followed, so that the token goes to the configured host alone.
    async fn list<T: DeserializeOwned>(&self, listing: &Listing<'_>) -> Result<Vec<T>, Refusal> {
        let mut seen = HashSet::new();
        let mut items = Vec::new();
        for page in 1..=PAGES_MAX {
            let answer = self.get(listing.asked, &listing.page_path(page)).await?;
            if answer.status == NO_CONTENT {
                return Ok(items);
            }
            let mut page: WirePage = read_json(listing.asked, &answer)?;
            let cannot_read = || unreadable(listing.asked, answer.status);
            let mut is_past = false;
            for item in page.take_items(listing.name).ok_or_else(cannot_read)? {
                is_past |= listing.is_before(&item);
                if seen.insert(id_of(&item).ok_or_else(cannot_read)?) {
                    items.push(read_item(item).ok_or_else(cannot_read)?);
                }
            }
            if is_past || !page.has_next() {
                return Ok(items);
            }
        }
        let text =
            format!("more than {PAGES_MAX} pages of {}: ours cannot be told; remove what is not needed", listing.name);
        Err(Refusal::Dead { reason: ReasonCode::AMBIGUOUS, text })
    }
}

impl Listing<'_> {
    /// Whether an item is older than what is looked for.
    fn is_before(&self, item: &Value) -> bool {
        let made = item.get("created_at").and_then(Value::as_i64).map(Timestamp::from_secs);
        self.since.zip(made).is_some_and(|(since, made)| made < since)
    }

    fn page_path(&self, page: u32) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.query).append_pair("limit", PAGE_ITEMS_MAX).append_pair("page", &page.to_string());
        format!("{}?{}", self.path, query.finish())
    }
}

fn read_item<T: DeserializeOwned>(item: Value) -> Option<T> {
    serde_json::from_value(item).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::client::Failure;
    use crate::client::amocrm::{CustomValue, Status};
    use crate::client::scripted::{Scripted, amocrm, answer, sample};

    const API: &str = "https://tambourtest.amocrm.ru/api/v4";

    fn recorded(file: &str) -> Result<Answer, Failure> {
        Ok(answer(200, sample(&format!("amocrm-api/{file}.json"))))
    }

    fn page(name: &str, items: &Value, next: bool) -> Result<Answer, Failure> {
        let links = if next { json!({"next": {"href": "https://elsewhere.example.com"}}) } else { json!({}) };
        Ok(answer(200, json!({"_links": links, "_embedded": {name: items}}).to_string()))
    }

    fn script<const N: usize>(answers: [Result<Answer, Failure>; N]) -> (Arc<Scripted>, Amocrm) {
        let transport = Scripted::answering(answers);
        let crm = amocrm(&transport);
        (transport, crm)
    }

    #[tokio::test]
    async fn a_deal_is_read_with_its_contacts_the_main_one_first() {
        let (transport, crm) = script([recorded("lead-with-contacts")]);
        let lead = crm.lead(50_000_001).await.unwrap().unwrap();
        assert_eq!(transport.lines(), [format!("GET {API}/leads/50000001?with=contacts")]);
        let call = transport.calls().remove(0);
        assert_eq!(call.headers, [("authorization".to_owned(), "Bearer t0ken".to_owned())]);
        assert!(call.body.is_empty());
        let value = |field_id, text: &str| CustomValue { field_id, code: None, text: text.to_owned() };
        let expected = Lead {
            id: 50_000_001,
            name: "Заявка с сайта: окна «Комфорт» (2 шт.) + монтаж".to_owned(),
            price: 128_500,
            status_id: 61_000_003,
            pipeline_id: 7_100_001,
            responsible_user_id: 9_000_001,
            created_at: Timestamp::from_secs(1_796_036_400),
            updated_at: Timestamp::from_secs(1_796_036_710),
            custom: vec![value(701_001, "Сайт / форма №3"), value(701_002, "1796083200"), value(701_003, "true")],
            contact_ids: vec![60_000_001, 60_000_004],
        };
        assert_eq!(lead, expected);
    }

    /// B33: what does not exist answers 204 or 404, or is served from the bin.
    #[tokio::test]
    async fn an_absent_entity_is_none() {
        let mut deleted: Value = serde_json::from_slice(&sample("amocrm-api/lead-with-contacts.json")).unwrap();
        deleted["is_deleted"] = json!(true);
        let absent = || [Ok(answer(204, "")), Ok(answer(404, sample("amocrm-api/error-404.json")))];
        let (_, crm) = script(absent());
        assert_eq!((crm.lead(1).await, crm.lead(1).await), (Ok(None), Ok(None)));
        let (_, crm) = script(absent());
        assert_eq!((crm.contact(1).await, crm.contact(1).await), (Ok(None), Ok(None)));
        let (_, crm) = script([Ok(answer(200, deleted.to_string()))]);
        assert_eq!(crm.lead(50_000_001).await, Ok(None));
    }

    #[tokio::test]
    async fn a_contact_is_read_with_its_deals() {
        let (transport, crm) = script([recorded("contact"), recorded("contact-empty-fields")]);
        let contact = crm.contact(60_000_001).await.unwrap().unwrap();
        assert_eq!(contact.phones, ["+7 900 000-00-01", "8 (900) 000-00-02"]);
        assert_eq!(contact.emails, ["anna.test@example.com"]);
        assert_eq!((contact.responsible_user_id, contact.lead_ids), (9_000_001, vec![50_000_001]));
        let bare = crm.contact(60_000_004).await.unwrap().unwrap();
        assert_eq!((bare.name.as_str(), bare.phones, bare.lead_ids), ("Без имени", vec![], vec![]));
        let lines = [1, 4].map(|n| format!("GET {API}/contacts/6000000{n}?with=leads"));
        assert_eq!(transport.lines(), lines);
    }

    #[tokio::test]
    async fn a_search_is_percent_encoded() {
        let (transport, crm) = script([recorded("contacts-query"), Ok(answer(204, "")), Ok(answer(204, ""))]);
        let found = crm.search_contacts("+79000000001").await.unwrap();
        assert_eq!(found.iter().map(|contact| contact.id).collect::<Vec<_>>(), [60_000_001]);
        // B33, B75: nothing found, or not yet visible, is an empty list.
        assert_eq!(crm.search_contacts("Анна & К").await, Ok(vec![]));
        assert_eq!(crm.search_leads("shop-1").await, Ok(vec![]));
        let rest = |with: &str| format!("with={with}&order%5Bid%5D=asc&limit=250&page=1");
        let expected = [
            format!("GET {API}/contacts?query=%2B79000000001&{}", rest("leads")),
            format!("GET {API}/contacts?query=%D0%90%D0%BD%D0%BD%D0%B0+%26+%D0%9A&{}", rest("leads")),
            format!("GET {API}/leads?query=shop-1&{}", rest("contacts")),
        ];
        assert_eq!(transport.lines(), expected);
    }

    /// The token must not follow a link to another host, and a row that moved between pages counts once.
    #[tokio::test]
    async fn all_pages_are_read_from_our_host() {
        let (transport, crm) = script([recorded("leads-page-1"), recorded("leads-page-1"), recorded("leads-page-2")]);
        let ids: Vec<u64> = crm.search_leads("x").await.unwrap().into_iter().map(|lead| lead.id).collect();
        assert_eq!(ids, [50_000_001, 50_000_002, 50_000_012]);
        let pages =
            [1, 2, 3].map(|n| format!("GET {API}/leads?query=x&with=contacts&order%5Bid%5D=asc&limit=250&page={n}"));
        assert_eq!(transport.lines(), pages);
    }

    #[tokio::test]
    async fn an_endless_list_is_for_a_person() {
        let answers: [_; 20] =
            std::array::from_fn(|n| page("notes", &json!([{"id": n, "params": {"text": ""}}]), true));
        let (transport, crm) = script(answers);
        let refusal = crm.notes(5).await.unwrap_err();
        assert!(matches!(&refusal, Refusal::Dead { reason, .. } if *reason == ReasonCode::AMBIGUOUS), "{refusal}");
        assert_eq!(transport.lines().len(), 20);
    }

    #[tokio::test]
    async fn notes_and_tasks_of_a_deal() {
        let tasks = json!([{"id": 2, "text": "call [tambour:x]"}, {"id": 1, "text": null}]);
        let call_note = json!([{"id": 3, "params": {"duration": 5}}, {"id": 2, "params": {"text": "a"}}]);
        let (transport, crm) =
            script([recorded("notes-list"), page("notes", &call_note, false), page("tasks", &tasks, false)]);
        let expected =
            Note { id: 40_000_002, text: "Договор № 17/2026 создан [ref:ev-000123]".to_owned() };
        assert_eq!(crm.notes(50_000_001).await, Ok(vec![expected]));
        assert_eq!(crm.notes(50_000_001).await, Ok(vec![Note { id: 2, text: "a".to_owned() }]));
        let expected = [(2, "call [tambour:x]"), (1, "")].map(|(id, text)| CrmTask { id, text: text.to_owned() });
        assert_eq!(crm.crm_tasks(Some(50_000_001), Timestamp::from_secs(0)).await, Ok(expected.to_vec()));
        let lines = transport.lines();
        let query = "filter%5Bnote_type%5D%5B%5D=common&order%5Bid%5D=desc&limit=250&page=1";
        assert_eq!(lines[0], format!("GET {API}/leads/50000001/notes?{query}"));
        let query =
            "filter%5Bentity_type%5D=leads&filter%5Bentity_id%5D%5B%5D=50000001&order%5Bid%5D=desc&limit=250&page=1";
        assert_eq!(lines[2], format!("GET {API}/tasks?{query}"));
    }

    /// An account holds tens of thousands of tasks; those before ours are of no interest.
    #[tokio::test]
    async fn tasks_are_read_as_far_back_as_asked() {
        let tasks = |ids: [i64; 2]| ids.map(|id| json!({"id": id, "text": "", "created_at": id}));
        let pages = [[9, 8], [7, 6], [5, 4]].map(|ids| page("tasks", &json!(tasks(ids)), true));
        let (transport, crm) = script(pages);
        let read = crm.crm_tasks(None, Timestamp::from_secs(7)).await.unwrap();
        assert_eq!(read.into_iter().map(|task| task.id).collect::<Vec<_>>(), [9, 8, 7, 6]);
        assert_eq!(transport.lines().len(), 2);
    }

    #[tokio::test]
    async fn the_account_and_its_lists() {
        let fields = json!([{"id": 1, "name": "№", "code": "EXT", "type": "text"}, {"id": 2, "name": "b", "code": null, "type": "numeric"}]);
        let users = json!([{"id": 9, "name": "Анна"}]);
        let (transport, crm) = script([
            recorded("account"),
            recorded("pipelines"),
            page("users", &users, false),
            page("custom_fields", &fields, false),
        ]);
        let account = crm.account().await.unwrap();
        assert_eq!((account.id, &*account.currency, &*account.subdomain), (31_000_001, "RUB", "tambourtest"));
        let pipelines = crm.pipelines().await.unwrap();
        assert_eq!((pipelines[0].id, pipelines[0].is_main, pipelines[0].statuses.len()), (7_100_001, true, 5));
        let won = Status { id: 142, name: "Успешно реализовано".to_owned() };
        assert_eq!(pipelines[0].statuses[3], won);
        assert_eq!(crm.users().await, Ok(vec![User { id: 9, name: "Анна".to_owned() }]));
        let fields = crm.lead_fields().await.unwrap();
        assert_eq!(fields[0].code.as_deref(), Some("EXT"));
        assert_eq!((fields[1].code.as_deref(), &*fields[1].kind), (None, "numeric"));
        let paths = [
            "account",
            "leads/pipelines?limit=250&page=1",
            "users?limit=250&page=1",
            "leads/custom_fields?limit=250&page=1",
        ];
        assert_eq!(transport.lines(), paths.map(|path| format!("GET {API}/{path}")));
    }

    /// B41: reads heal by themselves, except where the address or the entity is wrong.
    #[tokio::test]
    async fn answers_that_are_no_answer() {
        let unreadable =
            ["", "<html>", "[]", "{}", r#"{"_embedded":{"contacts":[]}}"#, r#"{"_embedded":{"leads":[{"id":"1"}]}}"#];
        for body in unreadable {
            let (_, crm) = script([Ok(answer(200, body))]);
            let refusal = crm.search_leads("x").await.unwrap_err();
            assert!(matches!(refusal, Refusal::Retry { after: None, .. }), "{body}: {refusal}");
        }
        let (_, crm) = script([Ok(answer(404, "")), Ok(answer(404, ""))]);
        assert!(matches!(crm.search_leads("x").await, Err(Refusal::Hold { .. })));
        assert!(matches!(crm.notes(1).await, Err(Refusal::Dead { reason, .. }) if reason == ReasonCode::ENTITY_GONE));
        let (_, crm) = script([Err(Failure::Lost("cut".to_owned())), Ok(answer(504, ""))]);
        assert!(matches!(crm.lead(1).await, Err(Refusal::Retry { .. })));
        assert!(matches!(crm.lead(1).await, Err(Refusal::Retry { .. })));
    }
}
