//! What is changed in amoCRM; each call needs an intent on disk.
//!
//! Every method makes one call and fails alike: `Retry` when nothing was sent
//! or the account is busy, `Dead` when the content was refused, `Hold` when
//! the account is unusable, `Unknown` when the change may have happened. An
//! answer that names no object is `Unknown` too: it may be a proxy's.

use serde_json::Value;

use crate::client::Answer;
use crate::client::Method;
use crate::client::amocrm::wire::{WirePage, id_of};
use crate::client::amocrm::{Amocrm, ContactLink, LeadPatch, NewContact, NewCrmTask, NewField, NewLead, NewNote};
use crate::client::classify::{Asked, invalid, read_json, unreadable, validation_errors};
use crate::domain::Refusal;
use crate::store::IntentDurable;

impl Amocrm {
    /// Makes a deal and brings its id.
    ///
    /// # Errors
    /// Any class.
    pub async fn create_lead(&self, _intent: &IntentDurable, lead: &NewLead) -> Result<u64, Refusal> {
        self.create("/leads", "leads", &lead.to_json()).await
    }

    /// Sets fields of a deal.
    ///
    /// # Errors
    /// Any class; `Dead` (`entity_gone`) when the deal does not exist.
    pub async fn update_lead(&self, _intent: &IntentDurable, id: u64, patch: &LeadPatch) -> Result<(), Refusal> {
        let answer = self.change(Method::Patch, &format!("/leads/{id}"), &patch.to_json()).await?;
        let echo: Value = read_json(Asked::Change, &answer)?;
        if id_of(&echo) == Some(id) { Ok(()) } else { Err(unreadable(Asked::Change, answer.status)) }
    }

    /// Makes a contact and brings its id.
    ///
    /// # Errors
    /// Any class.
    pub async fn create_contact(&self, _intent: &IntentDurable, contact: &NewContact) -> Result<u64, Refusal> {
        self.create("/contacts", "contacts", &contact.to_json()).await
    }

    /// Puts a note on a deal and brings its id; a note cannot be deleted by API.
    ///
    /// # Errors
    /// Any class; `Dead` (`entity_gone`) when the deal does not exist.
    pub async fn create_note(&self, _intent: &IntentDurable, note: &NewNote) -> Result<u64, Refusal> {
        self.create(&format!("/leads/{}/notes", note.lead_id), "notes", &note.to_json()).await
    }

    /// Gives a person a CRM task and brings its id.
    ///
    /// # Errors
    /// Any class.
    pub async fn create_task(&self, _intent: &IntentDurable, task: &NewCrmTask) -> Result<u64, Refusal> {
        self.create("/tasks", "tasks", &task.to_json()).await
    }

    /// Makes a custom field of deals and brings its id; the token's user must be an administrator.
    ///
    /// # Errors
    /// Any class.
    pub async fn create_lead_field(&self, _intent: &IntentDurable, field: &NewField) -> Result<u64, Refusal> {
        self.create("/leads/custom_fields", "custom_fields", &field.to_json()).await
    }

    /// Ties a contact to a deal; a tie that is there already stays.
    ///
    /// # Errors
    /// Any class; `Dead` (`entity_gone`) when one of the two does not exist.
    pub async fn link_contact(&self, _intent: &IntentDurable, link: ContactLink) -> Result<(), Refusal> {
        let answer = self.change(Method::Post, &format!("/leads/{}/link", link.lead_id), &link.to_json()).await?;
        one_item(&answer, "links").map(drop)
    }

    async fn create(&self, path: &str, name: &str, body: &Value) -> Result<u64, Refusal> {
        let answer = self.change(Method::Post, path, body).await?;
        id_of(&one_item(&answer, name)?).ok_or_else(|| unreadable(Asked::Change, answer.status))
    }

    /// Makes the call; an error of the one item inside a 2xx is a refusal of its content.
    async fn change(&self, method: Method, path: &str, body: &Value) -> Result<Answer, Refusal> {
        let answer = self.peer.send(Asked::Change, method, path, Some(body)).await?;
        if validation_errors(&answer.body).is_empty() { Ok(answer) } else { Err(invalid(&answer)) }
    }
}

/// The one item of an answer to a change of one item.
fn one_item(answer: &Answer, name: &str) -> Result<Value, Refusal> {
    let mut page: WirePage = read_json(Asked::Change, answer)?;
    let items = page.take_items(name).unwrap_or_default();
    let [item]: [Value; 1] = items.try_into().map_err(|_| unreadable(Asked::Change, answer.status))?;
    Ok(item)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::Failure;
    use crate::client::scripted::{Scripted, amocrm, answer, sample};
    use crate::domain::{ReasonCode, Timestamp};

    const INTENT: IntentDurable = IntentDurable::for_test();

    fn new_note() -> NewNote {
        NewNote { lead_id: 50_000_001, text: "Заметка".to_owned() }
    }

    /// What the answer to creating a note comes to.
    async fn note_outcome(got: Result<Answer, Failure>) -> Result<u64, Refusal> {
        amocrm(&Scripted::answering([got])).create_note(&INTENT, &new_note()).await
    }

    #[tokio::test]
    async fn each_change_is_one_call_with_the_stored_body() {
        let created = |name: &str| Ok(answer(200, json!({"_embedded": {name: [{"id": 7}]}}).to_string()));
        let recorded = |file: &str| Ok(answer(200, sample(&format!("amocrm-api/{file}.json"))));
        let transport = Scripted::answering([
            recorded("leads-post-answer"),
            recorded("lead-patch-answer"),
            created("contacts"),
            recorded("notes-post-answer"),
            created("tasks"),
            created("custom_fields"),
            created("links"),
        ]);
        let crm = amocrm(&transport);
        let lead = NewLead {
            name: "Заказ".to_owned(),
            price: 1,
            pipeline_id: 1,
            status_id: 2,
            responsible_user_id: 3,
            custom: Vec::new(),
            contact_id: None,
        };
        let patch = LeadPatch { price: Some(2), ..LeadPatch::default() };
        let contact = NewContact { name: "Анна".to_owned(), phone: None, email: None, responsible_user_id: 3 };
        let task = NewCrmTask {
            lead_id: None,
            text: "call".to_owned(),
            complete_till: Timestamp::from_secs(1_796_036_400),
            responsible_user_id: 3,
        };
        let field = NewField { code: "EXT".to_owned(), name: "№".to_owned(), kind: "text".to_owned() };
        let link = ContactLink { lead_id: 5, contact_id: 6 };

        assert_eq!(crm.create_lead(&INTENT, &lead).await, Ok(50_000_020));
        assert_eq!(transport.last_body(), lead.to_json());
        assert_eq!(crm.update_lead(&INTENT, 50_000_001, &patch).await, Ok(()));
        assert_eq!(transport.last_body(), patch.to_json());
        assert_eq!(crm.create_contact(&INTENT, &contact).await, Ok(7));
        assert_eq!(transport.last_body(), contact.to_json());
        assert_eq!(crm.create_note(&INTENT, &new_note()).await, Ok(40_000_002));
        assert_eq!(transport.last_body(), new_note().to_json());
        assert_eq!(crm.create_task(&INTENT, &task).await, Ok(7));
        assert_eq!(transport.last_body(), task.to_json());
        assert_eq!(crm.create_lead_field(&INTENT, &field).await, Ok(7));
        assert_eq!(transport.last_body(), field.to_json());
        assert_eq!(crm.link_contact(&INTENT, link).await, Ok(()));
        assert_eq!(transport.last_body(), link.to_json());

        let expected = [
            "POST leads",
            "PATCH leads/50000001",
            "POST contacts",
            "POST leads/50000001/notes",
            "POST tasks",
            "POST leads/custom_fields",
            "POST leads/5/link",
        ];
        let expected = expected.map(|line| line.replace(' ', " https://tambourtest.amocrm.ru/api/v4/"));
        assert_eq!(transport.lines(), expected);
    }

    /// B33: 204 to a create, like anything else that names no object, may have made one.
    #[tokio::test]
    async fn a_success_without_the_object_is_a_doubt() {
        let page = |items: Value| json!({"_embedded": {"notes": items}}).to_string();
        let bodies = [
            String::new(),
            "<html>login</html>".to_owned(),
            "{}".to_owned(),
            "[]".to_owned(),
            page(json!([])),
            page(json!([{}])),
            page(json!([{"id": "7"}])),
            page(json!([{"id": 7}, {"id": 8}])),
            page(json!({"id": 7})),
            json!({"_embedded": {"leads": [{"id": 7}]}}).to_string(),
        ];
        for body in bodies {
            let outcome = note_outcome(Ok(answer(200, body.clone()))).await;
            assert!(matches!(outcome, Err(Refusal::Unknown { .. })), "{body}: {outcome:?}");
        }
        let outcome = note_outcome(Ok(answer(204, ""))).await;
        assert!(matches!(outcome, Err(Refusal::Unknown { .. })), "{outcome:?}");
        let other = json!({"id": 8, "updated_at": 1}).to_string();
        let crm = amocrm(&Scripted::answering([Ok(answer(200, other))]));
        let outcome = crm.update_lead(&INTENT, 7, &LeadPatch::default()).await;
        assert!(matches!(outcome, Err(Refusal::Unknown { .. })), "{outcome:?}");
    }

    /// B41, B42: what happened to a change is told from the answer, or left open.
    #[tokio::test]
    async fn refusals_and_losses_of_a_change() {
        let not_sent = note_outcome(Err(Failure::NotSent("refused".to_owned()))).await;
        assert!(matches!(not_sent, Err(Refusal::Retry { .. })), "{not_sent:?}");
        let lost = note_outcome(Err(Failure::Lost("cut".to_owned()))).await;
        assert!(matches!(lost, Err(Refusal::Unknown { .. })), "{lost:?}");
        let failed = note_outcome(Ok(answer(502, "<html>"))).await;
        assert!(matches!(failed, Err(Refusal::Unknown { .. })), "{failed:?}");
        let redirected = note_outcome(Ok(answer(307, ""))).await;
        assert!(matches!(redirected, Err(Refusal::Hold { .. })), "{redirected:?}");
        let gone = note_outcome(Ok(answer(404, sample("amocrm-api/error-404.json")))).await;
        assert!(matches!(gone, Err(Refusal::Dead { reason, .. }) if reason == ReasonCode::ENTITY_GONE));
        // The same list of errors may come with a success, as each item of a batch is judged apart.
        for status in [400, 200] {
            let invalid = note_outcome(Ok(answer(status, sample("amocrm-api/error-400-validation.json")))).await;
            let Err(Refusal::Dead { reason, text }) = invalid else { panic!("{invalid:?}") };
            assert_eq!(reason, ReasonCode::VALIDATION);
            assert!(text.contains("FieldMissing at name"), "{text}");
        }
    }
}
