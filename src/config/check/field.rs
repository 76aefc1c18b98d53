//! The fields that items have, so that a mistyped condition is told before it never holds.

use crate::config::check::event;

/// Fields of a deal in a delivery (amoCRM "webhooks format", read 2026-11; recorded deliveries).
const DEAL: &[&str] = &[
    "account_id",
    "created_at",
    "created_user_id",
    "custom_fields",
    "date_create",
    "id",
    "last_modified",
    "modified_user_id",
    "name",
    "note",
    "old_pipeline_id",
    "old_responsible_user_id",
    "old_status_id",
    "pipeline_id",
    "price",
    "responsible_user_id",
    "status_id",
    "tags",
    "type",
    "updated_at",
];

/// Fields of an order, and what its edits and deletions have instead
/// (Shopify webhook reference, API 2026-10, read 2026-11).
const ORDER: &[&str] = &[
    "admin_graphql_api_id",
    "app_id",
    "billing_address",
    "browser_ip",
    "buyer_accepts_marketing",
    "cancel_reason",
    "cancelled_at",
    "cart_token",
    "checkout_id",
    "checkout_token",
    "client_details",
    "closed_at",
    "company",
    "confirmation_number",
    "confirmed",
    "contact_email",
    "created_at",
    "currency",
    "current_subtotal_price",
    "current_subtotal_price_set",
    "current_shipping_price_set",
    "current_total_additional_fees_set",
    "current_total_discounts",
    "current_total_discounts_set",
    "current_total_duties_set",
    "current_total_price",
    "current_total_price_set",
    "current_total_tax",
    "current_total_tax_set",
    "customer",
    "customer_locale",
    "device_id",
    "discount_applications",
    "discount_codes",
    "duties_included",
    "email",
    "estimated_taxes",
    "financial_status",
    "fulfillment_status",
    "fulfillments",
    "id",
    "landing_site",
    "landing_site_ref",
    "line_items",
    "location_id",
    "merchant_business_entity_id",
    "merchant_of_record_app_id",
    "name",
    "note",
    "note_attributes",
    "number",
    "order_edit",
    "order_number",
    "order_status_url",
    "original_total_additional_fees_set",
    "original_total_duties_set",
    "payment_gateway_names",
    "payment_terms",
    "phone",
    "po_number",
    "presentment_currency",
    "processed_at",
    "reference",
    "referring_site",
    "refunds",
    "returns",
    "shipping_address",
    "shipping_lines",
    "source_identifier",
    "source_name",
    "source_url",
    "subtotal_price",
    "subtotal_price_set",
    "tags",
    "tax_exempt",
    "tax_lines",
    "taxes_included",
    "test",
    "token",
    "total_cash_rounding_payment_adjustment_set",
    "total_cash_rounding_refund_adjustment_set",
    "total_discounts",
    "total_discounts_set",
    "total_line_items_price",
    "total_line_items_price_set",
    "total_outstanding",
    "total_price",
    "total_price_set",
    "total_shipping_price_set",
    "total_tax",
    "total_tax_set",
    "total_tip_received",
    "total_weight",
    "updated_at",
    "user_id",
];

/// Fields of a refund (Shopify webhook reference, API 2026-10, read 2026-11).
const REFUND: &[&str] = &[
    "admin_graphql_api_id",
    "created_at",
    "duties",
    "id",
    "note",
    "order_adjustments",
    "order_id",
    "processed_at",
    "refund_line_items",
    "refund_shipping_lines",
    "restock",
    "return",
    "total_duties_set",
    "transactions",
    "user_id",
];

/// The fields that an item of an event can have; absent where no list is kept.
pub(super) fn known(event: &str) -> Option<&'static [&'static str]> {
    match event {
        "refunds/create" => Some(REFUND),
        _ if event::is_about_an_order(event) => Some(ORDER),
        _ if event::is_about_a_deal(event) => Some(DEAL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of the recorded deliveries is known.
    #[test]
    fn recorded_items_have_known_fields_only() {
        let read = |name: &str| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
            std::fs::read_to_string(folder.join(name)).unwrap()
        };
        for (event, name) in [
            ("orders/create", "shopify/orders-create.json"),
            ("orders/cancelled", "shopify/orders-cancelled.json"),
            ("orders/paid", "shopify/orders-paid.json"),
            ("orders/updated", "shopify/orders-updated.json"),
            ("refunds/create", "shopify/refunds-create.json"),
        ] {
            let body: serde_json::Value = serde_json::from_str(&read(name)).unwrap();
            for field in body.as_object().unwrap().keys() {
                assert!(known(event).unwrap().contains(&field.as_str()), "{name}: {field}");
            }
        }
        for name in ["leads-add", "leads-update", "leads-status", "leads-status-pipeline-change", "leads-responsible"] {
            let body = read(&format!("amocrm/{name}.txt"));
            for (key, _) in form_urlencoded::parse(body.trim().as_bytes()) {
                let parts: Vec<&str> = key.split('[').map(|part| part.trim_end_matches(']')).collect();
                if let ["leads", _, _, field, ..] = parts[..] {
                    assert!(DEAL.contains(&field), "{name}: {field}");
                }
            }
        }
        assert_eq!(known("customers/create"), None);
    }
}
