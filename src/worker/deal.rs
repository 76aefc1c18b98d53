//! `deal`: a shop order becomes one deal with its customer, and follows the shop.
//!
//! ```text
//! order, read fresh ─▶ deal known? ─ no ─▶ searched for ─ none ─▶ contact ─▶ deal made, once
//!                        │ yes                │ one                            │
//!                        ▼                    ▼                                ▼
//!                     read fresh ─▶ what the shop owns and is newer ─▶ set ─▶ lines as one note
//! ```

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::client::{Amocrm, FieldRef, Lead, LeadPatch, NewLead, Stage};
use crate::config::{DealTask, HandMade};
use crate::domain::{Ending, EventId, FollowUp, Key, ReasonCode, Refusal, Timestamp};
use crate::effect::{Creatable, Created, Doubts, Look, Searchable, Settable, Stop};
use crate::rules::{
    Changes, CustomField, DealFields, DealPatch, DealRefusal, DealSeen, Order, changes, customer_of, lines_note,
    marker, new_deal,
};
use crate::store::{IntentDurable, ItemView, Meeting, ObjectRef, Version};
use crate::worker::attempt::Attempt;
use crate::worker::{contact, link, note, notice, object, order};

/// An order that waited longer may have been entered by hand meanwhile.
const HAND_MADE_AFTER: Duration = Duration::from_hours(1);

/// How many deals of the contact are looked at for one made by hand.
const HAND_MADE_LOOKS_MAX: usize = 10;

/// Won and lost, the same in every pipeline (amoCRM API v4 reference, "leads/pipelines").
const CLOSED_STAGES: [u64; 2] = [142, 143];

/// Runs one attempt.
pub(super) async fn run(attempt: &Attempt<'_>, task: &DealTask, follow_ups: &mut Vec<FollowUp>) -> Result<(), Stop> {
    let (source, order) = order::read(attempt).await?;
    let deal = Deal {
        attempt,
        task,
        marker: marker(&source, &order.id),
        object: object::lead(attempt.target, attempt.access, &marker(&source, &order.id)),
        source,
        order,
    };
    let brought = deal.bring_up_to_date().await?;
    // An older event must not end the task before an earlier attempt's work is whole.
    deal.write_lines(brought.lead_id).await?;
    if task.hand_made == HandMade::Flag {
        follow_ups.extend(deal.flag().await?);
    }
    if brought.is_newer_already {
        return Err(Stop::Superseded {
            reason: ReasonCode::OLDER_THAN_APPLIED,
            text: "the deal already shows a newer state of the order".to_owned(),
        });
    }
    Ok(())
}

/// The deal after it was brought up to date.
struct Brought {
    lead_id: u64,
    /// Whether it showed a newer state than the event tells of.
    is_newer_already: bool,
}

/// How an attempt ends on an order that makes no deal.
pub(super) fn refused(refusal: &DealRefusal, language: crate::config::Language) -> Stop {
    let text = refusal.text(language);
    match refusal.ending() {
        Ending::Superseded(reason) => Stop::Superseded { reason, text },
        Ending::Dead(reason) => Stop::Dead { reason, text },
        _ => Stop::Dead { reason: ReasonCode::UNREADABLE, text },
    }
}

/// The deal of one order in one attempt.
struct Deal<'a> {
    attempt: &'a Attempt<'a>,
    task: &'a DealTask,
    source: String,
    order: Order,
    marker: String,
    object: ObjectRef,
}

impl Deal<'_> {
    /// Finds or makes the deal and sets what the shop owns.
    async fn bring_up_to_date(&self) -> Result<Brought, Stop> {
        let fields = self.fields()?;
        let known = self.attempt.context.store.view()?.object(&self.object)?.external_id().map(str::to_owned);
        if let Some(id) = known {
            let doubts = self.attempt.steps.doubts(&self.object)?;
            if let Some(lead) = self.attempt.crm.lead(object::number(&id)?).await? {
                return self.update(lead, doubts).await;
            }
            self.attempt.believe_absence(self.object.kind)?;
            self.attempt.steps.gone(&self.object).await?;
        }
        let subject = Subject { deal: self, new: self.new_lead(fields, None) };
        let absent = match self.attempt.steps.look(&subject).await? {
            Look::Found(id) => return self.update_found(&id).await,
            Look::Absent(absent) => absent,
        };
        let contact = self.contact(subject.new.responsible_user_id).await?;
        let contact_id = contact.as_ref().map(|contact| object::number(contact.external_id())).transpose()?;
        if self.task.hand_made == HandMade::Link
            && let Some(Created::Found(_)) = contact
            && let Some(id) = self.adopt(contact_id).await?
        {
            return self.update_found(&id).await;
        }
        let subject = Subject { deal: self, new: NewLead { contact_id, ..subject.new } };
        let lead_id = object::number(&self.attempt.steps.make(&subject, absent).await?)?;
        if let Some(contact_id) = contact_id {
            link::born(self.attempt, &self.marker, contact_id).await?;
        }
        Ok(Brought { lead_id, is_newer_already: false })
    }

    fn fields(&self) -> Result<DealFields, Stop> {
        new_deal(self.task, &self.source, &self.attempt.access.currency, &self.order)
            .map_err(|refusal| refused(&refusal, self.attempt.context.config.language))
    }

    fn new_lead(&self, fields: DealFields, contact_id: Option<u64>) -> NewLead {
        NewLead {
            name: fields.name,
            price: fields.price,
            pipeline_id: fields.pipeline_id,
            status_id: fields.status_id,
            responsible_user_id: fields.responsible_user_id.unwrap_or(self.attempt.access.responsible_user_id),
            custom: fields.custom.into_iter().map(|(field, text)| (field_ref(field), text)).collect(),
            contact_id,
        }
    }

    /// The customer as a contact; guests get none.
    async fn contact(&self, responsible: u64) -> Result<Option<Created>, Stop> {
        let Some(customer) = customer_of(&self.order, self.attempt.context.config.language) else { return Ok(None) };
        contact::ensure(self.attempt, &customer, responsible).await.map(Some)
    }

    /// Takes a deal made by hand for the order's; of two orders that see one deal, one gets it.
    async fn adopt(&self, contact_id: Option<u64>) -> Result<Option<String>, Stop> {
        let now = self.attempt.context.clock.now();
        while let Some(lead) = self.made_by_hand(contact_id, now).await? {
            // The store keeps what was written first.
            self.attempt.steps.adopt(&self.claim(lead.id), &self.marker).await?;
            if !self.is_anothers(lead.id)? {
                let id = lead.id.to_string();
                self.attempt.steps.adopt(&self.object, &id).await?;
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn claim(&self, lead_id: u64) -> ObjectRef {
        object::claim(self.attempt.target, self.attempt.access, lead_id)
    }

    /// Whether another order took the deal, which may not show that order's number yet.
    fn is_anothers(&self, lead_id: u64) -> Result<bool, Stop> {
        let claim = self.attempt.context.store.view()?.object(&self.claim(lead_id))?;
        Ok(claim.external_id().is_some_and(|marker| marker != self.marker))
    }

    /// A recent open deal of the contact without our field, if the order had waited long by `at`.
    async fn made_by_hand(&self, contact_id: Option<u64>, at: Timestamp) -> Result<Option<Lead>, Stop> {
        let waited = at.since(self.order.created_at);
        let Some(contact_id) = contact_id.filter(|_| waited > HAND_MADE_AFTER) else { return Ok(None) };
        let Some(contact) = self.attempt.crm.contact(contact_id).await? else { return Ok(None) };
        for id in contact.lead_ids.into_iter().rev().take(HAND_MADE_LOOKS_MAX) {
            let Some(lead) = self.attempt.crm.lead(id).await? else { continue };
            let is_open = !CLOSED_STAGES.contains(&lead.status_id);
            let is_free = self.marker_in(&lead).is_none() && !self.is_anothers(lead.id)?;
            if is_open && lead.created_at >= self.order.created_at && is_free {
                return Ok(Some(lead));
            }
        }
        Ok(None)
    }

    /// The notice about a deal made by hand beside ours.
    ///
    /// Asked after ours was made, by any attempt since the task began: the one that
    /// made it may have died, or lost the answer, before it could tell.
    async fn flag(&self) -> Result<Option<FollowUp>, Stop> {
        let parent = self.attempt.leased;
        let Some(made_at) = self.made_at()? else { return Ok(None) };
        let Some(lead) = self.made_by_hand(self.known_contact()?, made_at).await? else { return Ok(None) };
        let occasion = format!("hand-made:{}", lead.id);
        Ok(notice::seed(&self.attempt.context.config, parent.seed(), parent.id(), &occasion))
    }

    /// When the task meant to make the deal, in its present round of attempts.
    fn made_at(&self) -> Result<Option<Timestamp>, Stop> {
        let view = self.attempt.context.store.view()?;
        let id = self.attempt.leased.id();
        let began = view.task(id)?.and_then(|task| task.since);
        let intents = view.intents_of_task(id)?.into_iter();
        let creates = intents.filter(|intent| intent.object_kind == self.object.kind && intent.shape == "create");
        Ok(creates.map(|intent| intent.opened_at).filter(|at| Some(*at) >= began).max())
    }

    /// The customer's contact, where our file knows it.
    fn known_contact(&self) -> Result<Option<u64>, Stop> {
        let Some(customer) = customer_of(&self.order, self.attempt.context.config.language) else { return Ok(None) };
        let object = contact::object(self.attempt, &customer);
        let known = self.attempt.context.store.view()?.object(&object)?;
        known.external_id().map(object::number).transpose()
    }

    /// The number in the deal's field for it, unless that is empty.
    fn marker_in<'l>(&self, lead: &'l Lead) -> Option<&'l str> {
        let ours = |code: &String| *code == self.task.field_id_code;
        let value = lead.custom.iter().find(|value| value.code.as_ref().is_some_and(ours));
        value.map(|value| value.text.trim()).filter(|text| !text.is_empty())
    }

    async fn update_found(&self, id: &str) -> Result<Brought, Stop> {
        let doubts = self.attempt.steps.doubts(&self.object)?;
        match self.attempt.crm.lead(object::number(id)?).await? {
            Some(lead) => self.update(lead, doubts).await,
            None => Err(Stop::Retry { after: None, text: format!("deal {id} was found and cannot be read yet") }),
        }
    }

    /// Sets what the shop owns, never back; ties the customer to a deal without a contact.
    async fn update(&self, lead: Lead, doubts: Doubts) -> Result<Brought, Stop> {
        if self.marker_in(&lead).is_some_and(|marker| marker != self.marker) {
            return Err(Stop::Dead {
                reason: ReasonCode::AMBIGUOUS,
                text: format!(
                    "deal {} carries another order's number in its field {}; put the field right, then retry",
                    lead.id, self.task.field_id_code
                ),
            });
        }
        let applied = self.attempt.context.store.view()?.object(&self.object)?.version_at();
        let currency = &self.attempt.access.currency;
        let decided = changes(self.task, &self.source, currency, &self.order, &seen(&lead), applied)
            .map_err(|refusal| refused(&refusal, self.attempt.context.config.language))?;
        let is_newer_already = match decided {
            Changes::Set(patch) => {
                let patch = Patch { deal: self, lead: &lead, patch: lead_patch(patch) };
                self.attempt.steps.set(&patch, doubts).await?;
                false
            }
            Changes::Nothing => {
                self.attempt.steps.close_doubts(doubts).await?;
                self.events_are_old()?
            }
            Changes::Older => {
                self.attempt.steps.close_doubts(doubts).await?;
                true
            }
        };
        if let Some(customer) = customer_of(&self.order, self.attempt.context.config.language) {
            link::ensure(self.attempt, &self.marker, &lead, &customer).await?;
        }
        Ok(Brought { lead_id: lead.id, is_newer_already })
    }

    /// Whether all events that woke the task tell of older states than the one at hand.
    ///
    /// Never so once a person replayed it, who wants to hear that all is well.
    fn events_are_old(&self) -> Result<bool, Stop> {
        let view = self.attempt.context.store.view()?;
        let id = self.attempt.leased.id();
        if view.task(id)?.is_some_and(|task| task.replays > 0) {
            return Ok(false);
        }
        let met = view.events_of_task(id)?;
        let begins = |(_, meeting): &(EventId, Meeting)| matches!(meeting, Meeting::Made | Meeting::Renewed);
        let began = met.iter().rposition(begins).unwrap_or_default();
        let mut newest = None;
        for (event, _) in met.into_iter().skip(began) {
            let items = view.event(event)?.map(|event| event.items).unwrap_or_default();
            let told = items.iter().filter_map(|item| match item {
                ItemView::Fact { entity_id, source_time, .. } if *entity_id == self.order.id => *source_time,
                _ => None,
            });
            newest = newest.max(told.max());
        }
        Ok(newest.is_some_and(|told| told < self.order.updated_at))
    }

    async fn write_lines(&self, lead_id: u64) -> Result<(), Stop> {
        if self.order.lines.is_empty() {
            return Ok(());
        }
        let text = lines_note(&self.order, self.attempt.context.config.language);
        let key: Key = object::lines_note(self.attempt.access, &self.marker);
        note::write(self.attempt, lead_id, key, &text, Value::Null).await
    }

    fn version(&self, mapped: &Value) -> Version {
        let mut hash = [0; 16];
        hash.iter_mut().zip(Sha256::digest(mapped.to_string().as_bytes())).for_each(|(to, from)| *to = from);
        Version { at: self.order.updated_at, hash }
    }

    fn evidence(&self, read: &Value, request: &Value) -> Value {
        let event = self.attempt.leased.last_event().map(EventId::get);
        json!({ "event": event, "order": self.order.to_json(), "read": read, "request": request })
    }
}

/// The deal that is searched for and made.
struct Subject<'a> {
    deal: &'a Deal<'a>,
    new: NewLead,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.deal.object
    }

    async fn search(&self) -> Result<Vec<String>, Refusal> {
        let hits = self.crm().search_leads(&self.deal.marker).await?;
        let exact = |lead: &&Lead| self.deal.marker_in(lead) == Some(self.deal.marker.as_str());
        Ok(hits.iter().filter(exact).map(|lead| lead.id.to_string()).collect())
    }
}

impl Subject<'_> {
    fn crm(&self) -> &Amocrm {
        self.deal.attempt.crm
    }
}

impl Creatable for Subject<'_> {
    fn version(&self) -> Option<Version> {
        Some(self.deal.version(&self.new.to_json()))
    }

    fn evidence(&self) -> Value {
        self.deal.evidence(&Value::Null, &self.new.to_json())
    }

    async fn send(&self, proof: &IntentDurable) -> Result<String, Refusal> {
        self.crm().create_lead(proof, &self.new).await.map(|id| id.to_string())
    }
}

/// The fields that are set in a deal that exists.
struct Patch<'a> {
    deal: &'a Deal<'a>,
    lead: &'a Lead,
    patch: LeadPatch,
}

impl Settable for Patch<'_> {
    fn object(&self) -> &ObjectRef {
        &self.deal.object
    }

    fn external_id(&self) -> String {
        self.lead.id.to_string()
    }

    fn version(&self) -> Version {
        self.deal.version(&self.patch.to_json())
    }

    fn evidence(&self) -> Value {
        let read = json!({ "price": self.lead.price, "status_id": self.lead.status_id,
            "updated_at": Timestamp::as_secs(self.lead.updated_at) });
        self.deal.evidence(&read, &self.patch.to_json())
    }

    async fn send(&self, proof: &IntentDurable) -> Result<(), Refusal> {
        self.deal.attempt.crm.update_lead(proof, self.lead.id, &self.patch).await
    }
}

fn seen(lead: &Lead) -> DealSeen {
    let by_id = lead.custom.iter().map(|value| (CustomField::Id(value.field_id), value.text.clone()));
    let by_code = lead.custom.iter().filter_map(|value| {
        let code = value.code.clone()?;
        Some((CustomField::Code(code), value.text.clone()))
    });
    DealSeen {
        name: lead.name.clone(),
        price: lead.price,
        pipeline_id: lead.pipeline_id,
        status_id: lead.status_id,
        custom: by_id.chain(by_code).collect(),
    }
}

fn lead_patch(patch: DealPatch) -> LeadPatch {
    LeadPatch {
        price: patch.price,
        stage: patch.stage.map(|s| Stage { pipeline_id: s.pipeline_id, status_id: s.status_id }),
        custom: patch.custom.into_iter().map(|(field, text)| (field_ref(field), text)).collect(),
    }
}

fn field_ref(field: CustomField) -> FieldRef {
    match field {
        CustomField::Code(code) => FieldRef::Code(code),
        CustomField::Id(id) => FieldRef::Id(id),
    }
}
