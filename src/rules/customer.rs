//! Who bought: the contact that a deal gets.

use std::fmt;

use crate::config::Language;
use crate::rules::order::Order;
use crate::text::{Email, Phone, normalize_email, normalize_phone};

/// A person who can be reached; `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Customer {
    /// What to call them; never an e-mail or a phone.
    pub name: String,
    /// The most trusted phone that can be read.
    pub phone: Option<Phone>,
    /// The most trusted e-mail that can be read.
    pub email: Option<Email>,
}

impl fmt::Debug for Customer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Customer(..)")
    }
}

/// The customer of an order; absent for a guest without phone and e-mail.
///
/// Without a name they are called `Покупатель` or `Customer`.
pub fn customer_of(order: &Order, language: Language) -> Option<Customer> {
    let phone = order.phones.iter().find_map(|raw| normalize_phone(raw));
    let email = order.emails.iter().find_map(|raw| normalize_email(raw));
    if phone.is_none() && email.is_none() {
        return None;
    }
    let name = order.customer_names.iter().find(|name| !is_address(name)).cloned().unwrap_or_else(|| {
        let word = match language {
            Language::Ru => "Покупатель",
            Language::En => "Customer",
        };
        word.to_owned()
    });
    Some(Customer { name, phone, email })
}

/// Shops show an e-mail or a phone where a name is missing.
fn is_address(name: &str) -> bool {
    name.contains('@') || normalize_phone(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::samples;

    fn check(change: impl FnOnce(&mut Order), expected: Option<(&str, Option<&str>, Option<&str>)>) {
        let mut order = samples::order();
        change(&mut order);
        let got = customer_of(&order, Language::Ru)
            .map(|c| (c.name, c.phone.map(|p| p.to_string()), c.email.map(|e| e.to_string())));
        let owned = |text: Option<&str>| text.map(str::to_owned);
        assert_eq!(got, expected.map(|(name, phone, email)| (name.to_owned(), owned(phone), owned(email))));
    }

    #[test]
    fn the_most_trusted_readable_contact_counts() {
        let (phone, email) = (Some("+79000000001"), Some("anna.test@example.com"));
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        check(|_| {}, Some(("Анна Тестова", phone, email)));
        check(|order| order.phones = texts(&["нет", "8 900 000-00-02", "+79000000001"]), {
            Some(("Анна Тестова", Some("+79000000002"), email))
        });
        check(
            |order| order.emails = texts(&["-", "B@Example.com"]),
            Some(("Анна Тестова", phone, Some("B@example.com"))),
        );
        check(|order| order.phones.clear(), Some(("Анна Тестова", None, email)));
        check(|order| order.emails.clear(), Some(("Анна Тестова", phone, None)));
        check(|order| order.customer_names.clear(), Some(("Покупатель", phone, email)));
        check(|order| order.customer_names = texts(&["anna.test@example.com", "+7 900 000-00-01", "Борис"]), {
            Some(("Борис", phone, email))
        });
        check(
            |order| {
                order.phones = texts(&["12"]);
                order.emails = texts(&["нет"]);
            },
            None,
        );
    }

    #[test]
    fn guests_have_none_and_debug_shows_nothing() {
        let guest = Order::from_webhook(&samples::shopify("orders-create-guest.json")).unwrap();
        assert_eq!(customer_of(&guest, Language::Ru), None);
        let mut nameless = samples::order();
        nameless.customer_names.clear();
        let customer = customer_of(&nameless, Language::En).unwrap();
        assert_eq!((customer.name.as_str(), format!("{customer:?}").as_str()), ("Customer", "Customer(..)"));
    }
}
