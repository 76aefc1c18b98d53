//! Odd bytes, from the door to the CRM.

use tambour::sandbox::{OrderLine, OrderSketch, shopify_headers, sign};

use crate::rig::{Rig, SHOP, SHOP_SECRET, STAGE_CONTRACT, START, Setup};

/// A delivery of exactly these bytes; gives the stored ones.
fn stored(rig: &mut Rig, topic: &str, body: &str) -> Vec<u8> {
    let headers = shopify_headers(topic, SHOP, "webhook", "event", START, &sign(SHOP_SECRET, body.as_bytes()));
    rig.deliver("shop", &headers, body.to_owned().into()).unwrap();
    rig.view().body(rig.events().pop().unwrap().id).unwrap().unwrap()
}

/// B01. Story: a body that no JSON library writes the same way again. Its signature
/// covers the bytes, so it must be verified and stored as they came.
#[test]
fn a_body_is_verified_and_stored_byte_for_byte() {
    let mut rig = Rig::new(Setup::default());
    let body = r#"{"a":"x\u2028\u2028","u":"https:\/\/e.example\/?a=1\u0026b=2","n":1.0}"#;
    assert_eq!(stored(&mut rig, "products/update", body), body.as_bytes());
    let event = &rig.events()[0];
    assert_eq!(event.secret_label.as_deref(), Some("app"));
    // P05: what the sender says in headers is kept, its signature is not.
    let header = |name: &str| event.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    assert_eq!((header("x-shopify-topic"), header("x-shopify-webhook-id")), (Some("products/update"), Some("webhook")));
    assert_eq!(header("x-shopify-hmac-sha256"), None);
}

/// P04. Story: a correctly signed body that is no UTF-8. It is kept for a person.
#[test]
fn a_body_in_another_encoding_is_stored() {
    let mut rig = Rig::new(Setup::default());
    let body: &[u8] = b"{\"id\": 7, \"name\": \"\xc0\xed\xed\xe0 \0\"}";
    let headers = shopify_headers("orders/create", SHOP, "webhook", "event", START, &sign(SHOP_SECRET, body));
    rig.deliver("shop", &headers, body.to_vec().into()).unwrap();
    let event = &rig.events()[0];
    assert_eq!(event.state, "unreadable");
    assert_eq!(rig.view().body(event.id).unwrap().unwrap(), body);
    assert_eq!(rig.told(), Vec::<String>::new());
}

/// Story: a delivery with a right signature, of a shop that is not ours.
#[test]
fn a_foreign_shop_makes_nothing() {
    let mut rig = Rig::new(Setup::default());
    let body = OrderSketch::new(7, "#7", "1.00", START).to_json().to_string();
    let signature = sign(SHOP_SECRET, body.as_bytes());
    let headers = shopify_headers("orders/create", "other.myshopify.com", "webhook", "event", START, &signature);
    rig.deliver("shop", &headers, body.into()).unwrap();
    assert_eq!((rig.events()[0].state.as_str(), rig.told().len()), ("foreign", 0));
}

/// B13. Story: a buyer's name with characters beyond 16 bits, a title that some
/// program cut inside an emoji, a NUL. All of it goes through to the CRM; what is no
/// text becomes U+FFFD or is left out, and the stored bytes stay what they were.
#[test]
fn odd_characters_reach_the_crm() {
    const NAME: &str = "Мария 👩\u{200d}👩\u{200d}👧 𝐏";
    let mut rig = Rig::new(Setup::default());
    let line =
        OrderLine { title: "Чай HALF NUL".to_owned(), sku: String::new(), quantity: 1, price: "1".to_owned() };
    let order = OrderSketch {
        first_name: NAME.to_owned(),
        phone: Some("+79000000001".to_owned()),
        lines: vec![line],
        ..OrderSketch::new(7, "#7 HALF", "1.00", START)
    };
    let body = order.to_json().to_string().replace("HALF", r"\ud83d").replace("NUL", r"\u0000");
    assert_eq!(stored(&mut rig, "orders/create", &body), body.as_bytes());
    rig.run_to_rest();

    assert_eq!(rig.told(), ["deal done"], "{}", rig.task("deal").text);
    assert_eq!(rig.crm.contacts()[0].name, NAME);
    let lead = &rig.crm.leads()[0];
    assert_eq!(lead.name, "Заказ #7 \u{fffd}");
    let note = &rig.crm.notes_of_lead(lead.id)[0];
    assert!(note.contains("Чай \u{fffd}: 1 × 1.00"), "{note:?}");

    rig.crm.rename(lead.id, NAME).unwrap();
    let hook = rig.crm.move_lead(lead.id, STAGE_CONTRACT).unwrap();
    rig.hook(hook);
    rig.run_to_rest();
    let note = &rig.crm.notes_of_lead(lead.id)[1];
    assert!(note.starts_with(&format!("Договор по сделке {NAME}\n[tambour:")), "{note:?}");
}
