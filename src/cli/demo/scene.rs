//! What the demo sends, and what it expects as an answer.

use std::time::Duration;

use bytes::Bytes;

use crate::cli::demo::Error;
use crate::cli::demo::folder::{ADDRESS_TOKEN, SHOP, SHOP_SECRET, STAGE_CONTRACT, STAGE_FIRST};
use crate::clock::SharedClock;
use crate::domain::Timestamp;
use crate::sandbox::{Fault, Operation, OrderSketch, Sandbox, Sender, When, shopify_headers, sign};

/// The deal that five notifications tell of.
pub(super) const FIVE: &str = "Договор с пятью уведомлениями";
/// The deal that is moved three times.
pub(super) const THREE: &str = "Договор с тремя щелчками";
const ORDER_ID: u64 = 912_345_678_901_234_567;

/// One delivery: what it was, what it should be answered, what it was answered.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) what: String,
    pub(super) expected: u16,
    pub(super) answered: u16,
}

/// The play, with the senders' side of it.
pub(super) struct Scene {
    sandbox: Sandbox,
    sender: Sender,
    clock: SharedClock,
    started: Timestamp,
    sent: Vec<Sent>,
}

impl Scene {
    pub(super) fn new(sandbox: Sandbox, sender: Sender, clock: SharedClock) -> Self {
        let started = clock.now();
        Self { sandbox, sender, clock, started, sent: Vec::new() }
    }

    /// The appliance listens elsewhere after its restart.
    pub(super) fn meet(&mut self, sender: Sender) {
        self.sender = sender;
    }

    pub(super) fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// A new order; returns once the CRM has made the deal and sits on its answer.
    pub(super) async fn order_while_the_answer_is_withheld(&mut self) -> Result<(), Error> {
        self.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::WithholdLastByte);
        let body = self.order("4980.00", 0);
        self.shop("a new order", 200, "orders/create", Some("d-1"), &body, None).await?;
        self.sandbox.seen(Operation::LeadCreate, 1).await;
        Ok(())
    }

    /// Its retry, an older state after a newer one, a forgery, one without the id.
    pub(super) async fn repeats_and_forgeries(&mut self) -> Result<(), Error> {
        let first = self.order("4980.00", 0);
        let older = self.order("5100.00", 20);
        let newer = self.order("5480.50", 40);
        self.shop("the same order, sent again", 200, "orders/create", Some("d-1"), &first, None).await?;
        self.shop("a newer state: 5480.50", 200, "orders/updated", Some("d-2"), &newer, None).await?;
        self.shop("an older state after it: 5100.00", 200, "orders/updated", Some("d-3"), &older, None).await?;
        let forged = sign("another secret", &newer);
        self.shop("a forged order", 401, "orders/updated", Some("d-4"), &newer, Some(forged)).await?;
        self.shop("an order without the delivery id", 400, "orders/updated", None, &newer, None).await?;
        Ok(())
    }

    /// Stage, sum, contact, sum again, and the first once more: one note.
    pub(super) async fn five_notifications(&mut self) -> Result<(), Error> {
        let (deal, _) = self.sandbox.add_lead_by_hand(FIVE, 100, None)?;
        let contact = self.sandbox.add_contact_by_hand("Пётр Примеров", Some("+7 900 000-00-02"), None);
        let stage = self.sandbox.move_lead(deal, STAGE_CONTRACT)?;
        self.crm(format!("deal {deal}: to the contract stage"), &stage).await?;
        let hook = self.sandbox.set_price(deal, 120)?;
        self.crm(format!("deal {deal}: sum 120"), &hook).await?;
        self.until_the_second_changes().await;
        let hook = self.sandbox.link_contact(deal, contact)?;
        self.crm(format!("deal {deal}: contact"), &hook).await?;
        let hook = self.sandbox.set_price(deal, 150)?;
        self.crm(format!("deal {deal}: sum 150"), &hook).await?;
        self.crm(format!("deal {deal}: the first, sent again"), &stage).await
    }

    /// A manager who sees no result moves the card back and forth.
    pub(super) async fn forward_back_forward(&mut self) -> Result<(), Error> {
        let (deal, _) = self.sandbox.add_lead_by_hand(THREE, 300, None)?;
        let hook = self.sandbox.move_lead(deal, STAGE_CONTRACT)?;
        self.crm(format!("deal {deal}: forward"), &hook).await?;
        self.until_the_second_changes().await;
        let hook = self.sandbox.move_lead(deal, STAGE_FIRST)?;
        self.crm(format!("deal {deal}: back"), &hook).await?;
        self.until_the_second_changes().await;
        let hook = self.sandbox.move_lead(deal, STAGE_CONTRACT)?;
        self.crm(format!("deal {deal}: forward"), &hook).await
    }

    /// The CRM's times have whole seconds; two changes in one second may look the same.
    async fn until_the_second_changes(&self) {
        self.clock.sleep(Duration::from_millis(1100)).await;
    }

    fn order(&self, total: &str, age_secs: u64) -> Bytes {
        let mut order = OrderSketch::new(ORDER_ID, "#1042", total, self.started);
        order.first_name = "Анна".to_owned();
        order.last_name = "Тестова".to_owned();
        order.phone = Some("8 (900) 000-00-01".to_owned());
        order.email = Some("anna.test@example.com".to_owned());
        order.updated_at = self.started.plus(Duration::from_secs(age_secs));
        Bytes::from(order.to_json().to_string())
    }

    async fn shop(
        &mut self,
        what: impl Into<String>,
        expected: u16,
        topic: &str,
        delivery: Option<&str>,
        body: &Bytes,
        signature: Option<String>,
    ) -> Result<(), Error> {
        let signature = signature.unwrap_or_else(|| sign(SHOP_SECRET, body));
        let id = delivery.unwrap_or_default();
        let mut headers = shopify_headers(topic, SHOP, id, "event-1", self.clock.now(), &signature);
        if delivery.is_none() {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-shopify-webhook-id"));
        }
        let answered = self.sender.post("/in/shop", &headers, body.clone()).await?.status;
        self.sent.push(Sent { what: what.into(), expected, answered });
        Ok(())
    }

    async fn crm(&mut self, what: impl Into<String>, hook: &Bytes) -> Result<(), Error> {
        let headers = [("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        let answered = self.sender.post(&format!("/in/crm/{ADDRESS_TOKEN}"), &headers, hook.clone()).await?.status;
        self.sent.push(Sent { what: what.into(), expected: 200, answered });
        Ok(())
    }
}
