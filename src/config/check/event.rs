//! The event kinds that each kind of source can send.

use crate::config::SourceKind;

/// Topics of Shopify (Shopify webhook reference, API 2026-10, read 2026-11).
const SHOPIFY: &[&str] = &[
    "app/uninstalled",
    "customers/create",
    "customers/data_request",
    "customers/delete",
    "customers/disable",
    "customers/enable",
    "customers/redact",
    "customers/update",
    "orders/cancelled",
    "orders/create",
    "orders/delete",
    "orders/edited",
    "orders/fulfilled",
    "orders/paid",
    "orders/partially_fulfilled",
    "orders/updated",
    "refunds/create",
    "shop/redact",
];

/// `<entity>.<action>` from amoCRM's body keys `<entity>[<action>]`
/// (amoCRM "webhooks format", read 2026-11; recorded deliveries).
const AMOCRM: &[&str] = &[
    "catalogs.add",
    "catalogs.delete",
    "catalogs.update",
    "companies.add",
    "companies.delete",
    "companies.note",
    "companies.responsible",
    "companies.restore",
    "companies.update",
    "contacts.add",
    "contacts.delete",
    "contacts.note",
    "contacts.responsible",
    "contacts.restore",
    "contacts.update",
    "customers.add",
    "customers.delete",
    "customers.note",
    "customers.responsible",
    "customers.update",
    "leads.add",
    "leads.delete",
    "leads.note",
    "leads.responsible",
    "leads.restore",
    "leads.status",
    "leads.update",
    "message.add",
    "outgoing_message.add",
    "talk.add",
    "talk.delete",
    "talk.update",
    "task.add",
    "task.delete",
    "task.responsible",
    "task.update",
    "unsorted.add",
    "unsorted.delete",
    "unsorted.update",
];

/// Every event kind that a route of such a source can name.
pub(super) const fn known(source: &SourceKind) -> &'static [&'static str] {
    match source {
        SourceKind::Shopify { .. } => SHOPIFY,
        SourceKind::Amocrm { .. } => AMOCRM,
    }
}

/// Whether an event of this kind is about a shop's order.
pub(super) fn is_about_an_order(kind: &str) -> bool {
    kind.starts_with("orders/") || kind == "refunds/create"
}

/// Whether an event of this kind is about a deal.
pub(super) fn is_about_a_deal(kind: &str) -> bool {
    kind.starts_with("leads.")
}
