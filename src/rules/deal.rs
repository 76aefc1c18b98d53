//! From an order to the fields of its deal.
//!
//! The deal's price in amoCRM is an integer, so it is rounded half up; the exact
//! sum stands as text in a field of its own, beside the marker by which the deal
//! is found again and the version of the order that is applied. The three field
//! codes come from the task. Which of these fields may be changed later says
//! `ownership.rs`.

use std::fmt;

use serde_json::{Value, json};

use crate::config::DealTask;
use crate::rules::order::{Order, utc_seconds};
use crate::rules::refusal::DealRefusal;
use crate::text::Template;

/// A custom field of the CRM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CustomField {
    /// By its code.
    Code(String),
    /// By its numeric id.
    Id(u64),
}

/// What a new deal is made with; `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct DealFields {
    /// Its name, one line.
    pub name: String,
    /// The total in whole units.
    pub price: i64,
    /// Custom fields with their texts, none empty.
    pub custom: Vec<(CustomField, String)>,
    /// Its pipeline.
    pub pipeline_id: u64,
    /// Its stage.
    pub status_id: u64,
    /// Its responsible user; absent = the target's default.
    pub responsible_user_id: Option<u64>,
}

impl fmt::Debug for DealFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DealFields")
            .field("price", &self.price)
            .field("pipeline_id", &self.pipeline_id)
            .field("status_id", &self.status_id)
            .finish_non_exhaustive()
    }
}

/// The text by which a deal of an order is found again: `<source>-<order id>`.
pub fn marker(source: &str, order_id: &str) -> String {
    format!("{source}-{order_id}")
}

/// What the deal of an order is made with.
///
/// # Errors
/// [`DealRefusal`]: a test order, another currency than the account's, or a template that fails.
pub fn new_deal(
    task: &DealTask,
    source: &str,
    account_currency: &str,
    order: &Order,
) -> Result<DealFields, DealRefusal> {
    accept_order(task, account_currency, order)?;
    let name = render(&task.name, "name", &template_data(order))?;
    let mut custom = owned_fields(task, source, order)?;
    custom.push(version_field(task, order));
    custom.retain(|(_, text)| !text.is_empty());
    Ok(DealFields {
        name: name.split_whitespace().collect::<Vec<_>>().join(" "),
        price: order.total.rounded_units(),
        custom,
        pipeline_id: task.pipeline_id,
        status_id: task.status_id,
        responsible_user_id: task.responsible_user_id,
    })
}

/// Says no to orders that the CRM must not show.
pub(super) fn accept_order(task: &DealTask, account_currency: &str, order: &Order) -> Result<(), DealRefusal> {
    if order.test && !task.test_orders {
        return Err(DealRefusal::TestOrder);
    }
    if !order.currency.eq_ignore_ascii_case(account_currency) {
        return Err(DealRefusal::WrongCurrency { order: order.currency.clone(), account: account_currency.to_owned() });
    }
    Ok(())
}

/// The custom fields that the shop owns, but for the version; an empty text means cleared.
pub(super) fn owned_fields(
    task: &DealTask,
    source: &str,
    order: &Order,
) -> Result<Vec<(CustomField, String)>, DealRefusal> {
    let data = template_data(order);
    let mut fields = vec![
        (CustomField::Code(task.field_id_code.clone()), marker(source, &order.id)),
        (CustomField::Code(task.field_total_code.clone()), order.total.to_string()),
    ];
    for field in &task.fields {
        let text = render(&field.value, &format!("fields.{}", field.field_id), &data)?;
        fields.push((CustomField::Id(field.field_id), text.trim().to_owned()));
    }
    Ok(fields)
}

/// The field that says which version of the order is applied.
pub(super) fn version_field(task: &DealTask, order: &Order) -> (CustomField, String) {
    (CustomField::Code(task.field_version_code.clone()), utc_seconds(order.updated_at))
}

fn template_data(order: &Order) -> Value {
    json!({ "order": order.to_json() })
}

fn render(template: &Template, setting: &str, data: &Value) -> Result<String, DealRefusal> {
    template.render(data).map_err(|source| DealRefusal::Template { setting: setting.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::domain::{Ending, ReasonCode};
    use crate::rules::order::OrderError;
    use crate::rules::samples;
    use crate::text::{Money, MoneyError};

    #[test]
    fn a_new_deal_has_the_exact_sum_marker_and_version() {
        let mut order = samples::order();
        order.total = Money::from_minor(498_050);
        let deal = new_deal(&samples::task(), "shop", "rub", &order).unwrap();
        let code = |code: &str| CustomField::Code(code.to_owned());
        assert_eq!((deal.name.as_str(), deal.price), ("Заказ #1042", 4981));
        assert_eq!((deal.pipeline_id, deal.status_id, deal.responsible_user_id), (31, 1, None));
        assert_eq!(
            deal.custom,
            [
                (code("ORDER_ID"), "shop-912345678901234567".to_owned()),
                (code("ORDER_TOTAL"), "4980.50".to_owned()),
                (CustomField::Id(77), "Опт, первый заказ, VIP".to_owned()),
                (code("ORDER_VERSION"), utc_seconds(order.updated_at)),
            ]
        );
        assert!(deal.custom.iter().any(|(_, text)| text == "2026-11-30T11:05:10Z"), "{:?}", order.updated_at);
        assert!(!format!("{deal:?}").contains("Заказ"));
    }

    #[test]
    fn an_empty_field_is_left_out_of_a_new_deal() {
        let mut order = samples::order();
        order.tags.clear();
        let deal = new_deal(&samples::task(), "shop", "RUB", &order).unwrap();
        assert!(!deal.custom.iter().any(|(field, _)| *field == CustomField::Id(77)));
    }

    fn refused(change: impl FnOnce(&mut DealTask, &mut Order)) -> DealRefusal {
        let (mut task, mut order) = (samples::task(), samples::order());
        change(&mut task, &mut order);
        new_deal(&task, "shop", "RUB", &order).unwrap_err()
    }

    #[test]
    fn refusals_say_how_the_task_ends_and_what_to_do() {
        let order_error = OrderError::Money { field: "/total_price".to_owned(), source: MoneyError::SubMinor };
        let missing = OrderError::Missing { field: "/updated_at".to_owned() };
        let rows = [
            (
                refused(|task, _| task.test_orders = false),
                Ending::Superseded(ReasonCode::TEST_ORDER),
                ("Тестовый заказ", "test order"),
            ),
            (
                refused(|_, order| order.currency = "USD".to_owned()),
                Ending::Dead(ReasonCode::WRONG_CURRENCY),
                ("валюте USD, а суммы в CRM ведутся в RUB", "in USD, but the CRM keeps sums in RUB"),
            ),
            (
                refused(|task, _| task.name = Template::parse("{{ order.nmae }}").unwrap()),
                Ending::Dead(ReasonCode::TEMPLATE),
                ("Шаблон name", "template name"),
            ),
            (
                refused(|task, _| task.fields[0].value = Template::parse("{{ order.lines[7].sku }}").unwrap()),
                Ending::Dead(ReasonCode::TEMPLATE),
                ("Шаблон fields.77", "template fields.77"),
            ),
            (order_error.into(), Ending::Dead(ReasonCode::BAD_MONEY), ("/total_price", "/total_price")),
            (missing.into(), Ending::Dead(ReasonCode::UNREADABLE), ("/updated_at", "/updated_at")),
        ];
        for (refusal, ending, (ru, en)) in rows {
            assert_eq!(refusal.ending(), ending);
            let (got_ru, got_en) = (refusal.text(Language::Ru), refusal.text(Language::En));
            assert!(got_ru.contains(ru) && got_en.contains(en), "{got_ru} / {got_en}");
        }
    }
}
