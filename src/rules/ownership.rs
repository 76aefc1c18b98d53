//! What the shop may change in a deal that exists, and what people own.
//!
//! | field | set at creation | set later |
//! |---|---|---|
//! | price, exact sum, marker, the task's `fields` | yes | when they differ |
//! | version | yes | together with another change, never alone |
//! | stage | yes | by an allowed move |
//! | name, responsible user, pipeline | yes | never |
//!
//! *Never older*: an order that is older than what is applied changes nothing.
//! What is applied is the later of our own record and the version that stands in
//! the CRM, so that a restored file or another handler's write counts too.
//!
//! *Echoes end*: a look that finds nothing to change writes nothing. That is why
//! a newer version alone is no change: it would answer each of our own writes
//! with another one.
//!
//! *Moves* are tried in file order, each from the stage that the one before
//! left, so a paid and already delivered order goes through both. A move names
//! the stages it may leave; without a list it leaves any but won and lost. A deal
//! that a person took to another pipeline is only moved to won or lost, which
//! every pipeline has. As long as the order meets `when`, the move stays allowed:
//! list `from` where people move deals on by hand, or a later change of the order
//! takes them back.

use std::collections::BTreeMap;
use std::fmt;

use crate::config::{DealTask, Move};
use crate::domain::Timestamp;
use crate::rules::compare::same;
use crate::rules::deal::{CustomField, accept_order, owned_fields, version_field};
use crate::rules::order::Order;
use crate::rules::read_order::read_time;
use crate::rules::refusal::DealRefusal;

/// The stage "won", the same in every pipeline (amoCRM API v4 reference, "leads/pipelines").
const STATUS_WON: u64 = 142;
/// The stage "lost", the same in every pipeline.
const STATUS_LOST: u64 = 143;

/// A deal as the CRM shows it now; `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct DealSeen {
    /// Its name.
    pub name: String,
    /// Its price in whole units.
    pub price: i64,
    /// Its pipeline.
    pub pipeline_id: u64,
    /// Its stage.
    pub status_id: u64,
    /// Texts of its custom fields; a field that has a code stands under its code and its id.
    pub custom: BTreeMap<CustomField, String>,
}

/// A place in a pipeline; both ids go into a call (amoCRM API v4 reference, "leads").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The pipeline.
    pub pipeline_id: u64,
    /// The stage in it.
    pub status_id: u64,
}

/// What an order changes in its deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// All that the shop owns is as it should be.
    Nothing,
    /// What is applied is newer than this order.
    Older,
    /// These fields are to be set, in one call.
    Set(DealPatch),
}

/// The fields of a deal to be set; `Debug` shows no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DealPatch {
    /// The price in whole units, if it differs.
    pub price: Option<i64>,
    /// The stage, if a move leads to another one.
    pub stage: Option<Stage>,
    /// Custom fields that differ, and the version; an empty text clears the field.
    pub custom: Vec<(CustomField, String)>,
}

impl fmt::Debug for DealSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DealSeen")
            .field("price", &self.price)
            .field("pipeline_id", &self.pipeline_id)
            .field("status_id", &self.status_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DealPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&CustomField> = self.custom.iter().map(|(field, _)| field).collect();
        f.debug_struct("DealPatch")
            .field("price", &self.price)
            .field("stage", &self.stage)
            .field("custom", &fields)
            .finish()
    }
}

/// What an order changes in its deal as it is seen now.
///
/// `applied` is our own record of the version that was written last.
///
/// # Errors
/// [`DealRefusal`]: a test order, another currency than the account's, or a template that fails.
pub fn changes(
    task: &DealTask,
    source: &str,
    account_currency: &str,
    order: &Order,
    seen: &DealSeen,
    applied: Option<Timestamp>,
) -> Result<Changes, DealRefusal> {
    accept_order(task, account_currency, order)?;
    let (version, version_text) = version_field(task, order);
    let in_crm = seen.custom.get(&version).and_then(|text| read_time(text));
    if applied.max(in_crm).is_some_and(|applied| order.updated_at < applied) {
        return Ok(Changes::Older);
    }
    let price = order.total.rounded_units();
    let mut custom = owned_fields(task, source, order)?;
    custom.retain(|(field, text)| !same(seen.custom.get(field).map_or("", String::as_str), text));
    let mut patch =
        DealPatch { price: (price != seen.price).then_some(price), stage: stage_after(task, order, seen), custom };
    if patch == DealPatch::default() {
        return Ok(Changes::Nothing);
    }
    patch.custom.push((version, version_text));
    Ok(Changes::Set(patch))
}

/// The stage that the allowed moves lead to, unless it is the present one.
fn stage_after(task: &DealTask, order: &Order, seen: &DealSeen) -> Option<Stage> {
    let status_id = task.moves.iter().fold(seen.status_id, |status_id, step| {
        let in_reach = seen.pipeline_id == task.pipeline_id || is_closed(step.to);
        if in_reach && meets(order, &step.when) && may_leave(step, status_id) { step.to } else { status_id }
    });
    (status_id != seen.status_id).then_some(Stage { pipeline_id: seen.pipeline_id, status_id })
}

fn may_leave(step: &Move, status_id: u64) -> bool {
    if step.from.is_empty() { !is_closed(status_id) } else { step.from.contains(&status_id) }
}

fn is_closed(status_id: u64) -> bool {
    status_id == STATUS_WON || status_id == STATUS_LOST
}

/// Whether an order is in the state that a move waits for; `check` refuses other words.
fn meets(order: &Order, when: &str) -> bool {
    match when {
        "paid" | "refunded" => order.financial_status.as_deref() == Some(when),
        "fulfilled" => order.fulfillment_status.as_deref() == Some(when),
        "cancelled" => order.cancelled,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::deal::new_deal;
    use crate::rules::samples;
    use crate::text::Money;

    fn code(code: &str) -> CustomField {
        CustomField::Code(code.to_owned())
    }

    /// The deal as the CRM shows it after it was made from the sample order.
    fn seen() -> DealSeen {
        let deal = new_deal(&samples::task(), "shop", "RUB", &samples::order()).unwrap();
        DealSeen {
            name: deal.name,
            price: deal.price,
            pipeline_id: deal.pipeline_id,
            status_id: deal.status_id,
            custom: deal.custom.into_iter().collect(),
        }
    }

    fn decide(order: &Order, seen: &DealSeen, applied: Option<Timestamp>) -> Changes {
        changes(&samples::task(), "shop", "RUB", order, seen, applied).unwrap()
    }

    fn set(changes: Changes) -> DealPatch {
        match changes {
            Changes::Set(patch) => patch,
            other => panic!("{other:?}"),
        }
    }

    /// Each row changes the order or the deal, and names the fields that are written.
    #[test]
    fn only_owned_fields_are_set_and_only_when_they_differ() {
        type Change = fn(&mut Order, &mut DealSeen);
        let rows: [(&str, Change, &[CustomField], Option<i64>); 10] = [
            ("nothing", |_, _| {}, &[], None),
            ("a newer version alone", |order, _| order.updated_at = Timestamp::from_secs(1_796_040_000), &[], None),
            ("people's fields", |_, seen| seen.name = "Анна, чай".to_owned(), &[], None),
            ("the note", |order, _| order.note = "позвонить".to_owned(), &[], None),
            ("another total", |order, _| order.total = Money::from_minor(500_000), &[code("ORDER_TOTAL")], Some(5000)),
            ("kopecks only", |order, _| order.total = Money::from_minor(498_049), &[code("ORDER_TOTAL")], None),
            ("a price set by hand", |_, seen| seen.price = 1, &[], Some(4980)),
            ("other tags", |order, _| order.tags = vec!["VIP".to_owned()], &[CustomField::Id(77)], None),
            ("no tags", |order, _| order.tags.clear(), &[CustomField::Id(77)], None),
            ("a lost marker", |_, seen| drop(seen.custom.remove(&code("ORDER_ID"))), &[code("ORDER_ID")], None),
        ];
        for (name, change, fields, price) in rows {
            let (mut order, mut deal) = (samples::order(), seen());
            change(&mut order, &mut deal);
            let got = decide(&order, &deal, None);
            if fields.is_empty() && price.is_none() {
                assert_eq!(got, Changes::Nothing, "{name}");
                continue;
            }
            let patch = set(got);
            let written: Vec<CustomField> = patch.custom.iter().map(|(field, _)| field.clone()).collect();
            assert_eq!(written, [fields, &[code("ORDER_VERSION")]].concat(), "{name}");
            assert_eq!((patch.price, patch.stage), (price, None), "{name}");
        }
    }

    #[test]
    fn numbers_are_compared_with_tolerance() {
        let mut deal = seen();
        deal.custom.insert(code("ORDER_TOTAL"), "4980".to_owned());
        assert_eq!(decide(&samples::order(), &deal, None), Changes::Nothing);
    }

    /// Bug B23: a late older event must not overwrite what is applied, and an
    /// equal version is still made whole.
    #[test]
    fn never_older_than_what_is_applied() {
        let at = samples::order().updated_at;
        let (before, after) = (Timestamp::from_millis(at.as_millis() - 1), Timestamp::from_millis(at.as_millis() + 1));
        // our record, the version in the CRM, whether the order is older
        let rows = [
            (None, "", false),
            (Some(before), "", false),
            (Some(at), "", false),
            (Some(after), "", true),
            (None, "2026-11-30T11:05:09Z", false),
            (None, "2026-11-30T11:05:10Z", false),
            (None, "2026-11-30T14:05:10+03:00", false),
            (None, "2026-11-30T11:05:11Z", true),
            (Some(before), "2026-11-30T14:05:11+03:00", true),
            (Some(after), "2026-11-30T11:05:09Z", true),
            (Some(at), "вчера", false),
        ];
        for (record, in_crm, older) in rows {
            let mut deal = seen();
            deal.price = 1;
            deal.custom.insert(code("ORDER_VERSION"), in_crm.to_owned());
            let got = decide(&samples::order(), &deal, record);
            assert_eq!(got == Changes::Older, older, "{record:?} {in_crm}: {got:?}");
            assert!(older || set(got).price == Some(4980), "{record:?} {in_crm}");
        }
    }

    fn stage(pipeline_id: u64, from: u64, financial: &str, fulfillment: &str, cancelled: bool) -> Option<u64> {
        let deal = DealSeen { pipeline_id, status_id: from, ..seen() };
        let order = Order {
            financial_status: Some(financial.to_owned()),
            fulfillment_status: Some(fulfillment.to_owned()),
            cancelled,
            ..samples::order()
        };
        match decide(&order, &deal, None) {
            Changes::Set(patch) => patch.stage.map(|stage| {
                assert_eq!(stage.pipeline_id, pipeline_id);
                stage.status_id
            }),
            _ => None,
        }
    }

    /// Moves of the sample task: paid 1 -> 2, fulfilled 2 -> 142, cancelled any -> 143, refunded 142 -> 143.
    #[test]
    fn the_stage_moves_only_as_allowed() {
        // pipeline, present stage, payment, delivery, cancelled, stage that is set
        let rows = [
            (31, 1, "pending", "", false, None),
            (31, 1, "paid", "", false, Some(2)),
            (31, 2, "paid", "", false, None),
            (31, 9, "paid", "", false, None),
            (31, 2, "pending", "", false, None),
            (31, 2, "paid", "fulfilled", false, Some(142)),
            (31, 1, "paid", "fulfilled", false, Some(142)),
            (31, 1, "paid", "partial", false, Some(2)),
            (31, 1, "pending", "fulfilled", false, None),
            (31, 9, "voided", "", true, Some(143)),
            (31, 1, "paid", "", true, Some(143)),
            (31, 142, "paid", "", true, None),
            (31, 143, "paid", "fulfilled", true, None),
            (31, 142, "refunded", "fulfilled", false, Some(143)),
            (31, 143, "refunded", "", false, None),
            (31, 142, "partially_refunded", "fulfilled", false, None),
            (99, 1, "paid", "", false, None),
            (99, 1, "voided", "", true, Some(143)),
        ];
        for (pipeline_id, from, financial, fulfillment, cancelled, expected) in rows {
            let got = stage(pipeline_id, from, financial, fulfillment, cancelled);
            assert_eq!(got, expected, "{pipeline_id}/{from} {financial} {fulfillment} {cancelled}");
        }
    }

    /// Bug B26: after our own write the next look must find nothing to do.
    #[test]
    fn an_echo_finds_nothing_to_change() {
        let order = Order {
            total: Money::from_minor(123_456),
            tags: Vec::new(),
            financial_status: Some("paid".to_owned()),
            fulfillment_status: Some("fulfilled".to_owned()),
            ..samples::order()
        };
        let mut deal = seen();
        let patch = set(decide(&order, &deal, None));
        deal.price = patch.price.unwrap_or(deal.price);
        deal.status_id = patch.stage.map_or(deal.status_id, |stage| stage.status_id);
        deal.custom.extend(patch.custom.clone());
        assert_eq!(decide(&order, &deal, Some(order.updated_at)), Changes::Nothing);
        let shown = format!("{patch:?} {deal:?}");
        assert!(!shown.contains("1234.56") && !shown.contains("#1042"), "{shown}");
    }

    #[test]
    fn refusals_come_before_changes() {
        let task = DealTask { test_orders: false, ..samples::task() };
        assert_eq!(changes(&task, "shop", "RUB", &samples::order(), &seen(), None), Err(DealRefusal::TestOrder));
        let usd = changes(&samples::task(), "shop", "USD", &samples::order(), &seen(), None);
        assert!(matches!(usd, Err(DealRefusal::WrongCurrency { .. })));
    }
}
