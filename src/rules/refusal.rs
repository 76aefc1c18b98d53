//! Why an order makes no deal or no change, told to machines and to people.

use crate::config::Language;
use crate::domain::{Ending, ReasonCode};
use crate::rules::order::OrderError;
use crate::text::TemplateError;

/// Why an order makes no deal or no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DealRefusal {
    /// A test order, and the task wants none.
    #[error("test order")]
    TestOrder,
    /// The order's sums are in another currency than the account's.
    #[error("order in {order}, account in {account}")]
    WrongCurrency {
        /// The order's.
        order: String,
        /// The account's.
        account: String,
    },
    /// The order cannot be read: usually a subscription with `include_fields`, or a sum with three decimals.
    #[error("unusable order")]
    Order(#[from] OrderError),
    /// A template of the task failed on this order.
    #[error("template of `{setting}` failed")]
    Template {
        /// The setting: `name`, `fields.<id>`.
        setting: String,
        /// Where and why.
        #[source]
        source: TemplateError,
    },
}

impl DealRefusal {
    /// How the task ends: a test order is not wanted any more, the rest waits for a person.
    pub fn ending(&self) -> Ending {
        match self {
            Self::TestOrder => Ending::Superseded(ReasonCode::TEST_ORDER),
            Self::WrongCurrency { .. } => Ending::Dead(ReasonCode::WRONG_CURRENCY),
            Self::Order(OrderError::Money { .. }) => Ending::Dead(ReasonCode::BAD_MONEY),
            Self::Order(_) => Ending::Dead(ReasonCode::UNREADABLE),
            Self::Template { .. } => Ending::Dead(ReasonCode::TEMPLATE),
        }
    }

    /// What happened and what to do, without the customer's data.
    pub fn text(&self, language: Language) -> String {
        match language {
            Language::Ru => self.text_ru(),
            Language::En => self.text_en(),
        }
    }

    fn text_ru(&self) -> String {
        match self {
            Self::TestOrder => "Тестовый заказ: сделка по нему не ведётся (test_orders = false).".to_owned(),
            Self::WrongCurrency { order, account } => format!(
                "Заказ в валюте {order}, а суммы в CRM ведутся в {account}. \
                 Проведите заказ вручную или исправьте currency у цели."
            ),
            Self::Order(OrderError::Money { field, .. }) => format!(
                "Сумму в поле {field} нельзя записать точно до копейки. \
                 Проверьте заказ в магазине и внесите сумму вручную."
            ),
            Self::Order(OrderError::Missing { field } | OrderError::Malformed { field }) => format!(
                "В заказе нет поля {field}, или оно не читается. \
                 Проверьте, что подписка магазина присылает заказ целиком (без include_fields)."
            ),
            Self::Template { setting, source } => {
                format!("Шаблон {setting} не сработал на этом заказе: {source}. Исправьте его и повторите задачу.")
            }
        }
    }

    fn text_en(&self) -> String {
        match self {
            Self::TestOrder => "A test order makes no deal (test_orders = false).".to_owned(),
            Self::WrongCurrency { order, account } => format!(
                "The order is in {order}, but the CRM keeps sums in {account}. \
                 Enter the order by hand or correct the target's currency."
            ),
            Self::Order(OrderError::Money { field, .. }) => format!(
                "The sum in {field} cannot be kept exactly in minor units. \
                 Check the order in the shop and enter the sum by hand."
            ),
            Self::Order(OrderError::Missing { field } | OrderError::Malformed { field }) => format!(
                "The order has no field {field}, or it cannot be read. \
                 Check that the shop's subscription sends whole orders (no include_fields)."
            ),
            Self::Template { setting, source } => {
                format!("The template {setting} failed on this order: {source}. Correct it and retry the task.")
            }
        }
    }
}
