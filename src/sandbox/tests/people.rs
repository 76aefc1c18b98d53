//! What people do, and the webhooks of it.

use std::time::Duration;

use super::{Fixture, recorded};
use crate::sandbox::Error;
use serde_json::{Value, json};

fn pairs(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).into_owned().collect()
}

/// A move must give the recorded pairs in the recorded order; tags are not emulated, field ids are our own.
#[test]
fn a_move_gives_the_recorded_webhook() {
    let fixture = Fixture::new();
    let field = |name: &str, kind: &str| {
        let field = json!({"name": name, "type": kind, "enums": [{"value": "Сайт / форма №3"}]});
        fixture.post("/api/v4/leads/custom_fields", &field).1["id"].as_u64().unwrap()
    };
    let ours = [
        field("Источник", "select"),
        field("Дата договора", "date"),
        field("Нужна доставка?", "checkbox"),
        field("Комментарий", "textarea"),
    ];
    let recorded = pairs(recorded!("amocrm/leads-status.txt").as_bytes());
    let recorded: Vec<_> = recorded.into_iter().filter(|(key, _)| !key.contains("[tags]")).collect();
    let text = |end: &str| recorded.iter().find(|(key, _)| key.ends_with(end)).unwrap().1.clone();
    let values = json!([
        {"field_id": ours[0], "values": [{"value": "Сайт / форма №3"}]},
        {"field_id": ours[1], "values": [{"value": 1_796_083_200}]},
        {"field_id": ours[2], "values": [{"value": true}]},
        {"field_id": ours[3], "values": [{"value": text("[custom_fields][3][values][0][value]")}]},
    ]);
    let lead = json!({"name": text("[name]"), "price": 128_500, "custom_fields_values": values});
    let lead = fixture.made("/api/v4/leads", "leads", &lead);
    fixture.clock.advance(Duration::from_secs(310));
    let body = fixture.sandbox.move_lead(lead, 61_000_003).unwrap();
    // The recorded lead was made by the robot; ids of fields and choices are given by each account.
    let expected: Vec<_> = recorded
        .iter()
        .map(|(key, value)| match key.as_str() {
            key if key.ends_with("[created_user_id]") => "9000001".to_owned(),
            key if key.ends_with("[enum]") => "503001".to_owned(),
            _ => match value.strip_prefix("70100").and_then(|digit| digit.parse::<usize>().ok()) {
                Some(place) => ours[place - 1].to_string(),
                None => value.clone(),
            },
        })
        .collect();
    let found = pairs(&body);
    assert_eq!(
        found.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        recorded.iter().map(|(key, _)| key).collect::<Vec<_>>()
    );
    assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected);
}

#[test]
fn a_lead_made_and_deleted_by_hand_gives_the_recorded_webhooks() {
    let fixture = Fixture::new();
    let keys = |body: &[u8]| pairs(body).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let contact = fixture.sandbox.add_contact_by_hand("Анна", Some("+7 900 000-00-01"), Some("anna.test@example.com"));
    let (lead, added) = fixture.sandbox.add_lead_by_hand("", 0, Some(contact)).unwrap();
    assert_eq!(keys(&added), keys(recorded!("amocrm/leads-add.txt").as_bytes()));
    assert_eq!(fixture.sandbox.contacts_with_phone("8-900-0000001"), [contact]);
    assert_eq!(fixture.sandbox.contact(contact).unwrap().leads, [lead]);
    let deleted = fixture.sandbox.delete_lead(lead).unwrap();
    assert_eq!(keys(&deleted), keys(recorded!("amocrm/leads-delete.txt").as_bytes()));
    assert_eq!(fixture.get(&format!("/api/v4/leads/{lead}")), (204, Value::Null));
    assert_eq!(fixture.patch(&format!("/api/v4/leads/{lead}"), &json!({})).0, 404);
    assert_eq!((fixture.sandbox.lead(lead), fixture.sandbox.leads().len()), (None, 0));
    assert_eq!(fixture.sandbox.rename(lead, "Окна"), Err(Error::NoLead(lead)));
}

#[test]
fn acts_change_what_clients_read() {
    let fixture = Fixture::new();
    let lead = fixture.lead("Окна");
    let contact = fixture.contact("+79000000001");
    let sandbox = &fixture.sandbox;
    let renamed = sandbox.rename(lead, "Двери & окна").unwrap();
    assert!(pairs(&renamed).contains(&("leads[update][0][name]".to_owned(), "Двери & окна".to_owned())));
    sandbox.set_price(lead, 4980).unwrap();
    sandbox.link_contact(lead, contact).unwrap();
    let echo = sandbox.update_hook(lead).unwrap();
    assert!(pairs(&echo).contains(&("leads[update][0][price]".to_owned(), "4980".to_owned())));
    let (_, read) = fixture.get(&format!("/api/v4/leads/{lead}?with=contacts"));
    assert_eq!((&read["name"], &read["price"]), (&json!("Двери & окна"), &json!(4980)));
    assert_eq!(read["_embedded"]["contacts"][0]["id"], contact);
    assert_eq!(sandbox.move_lead(lead, 5), Err(Error::NoStage(5)));
    assert_eq!(sandbox.link_contact(lead, 5), Err(Error::NoContact(5)));
    assert_eq!(sandbox.put_order(json!({"id": "7"})), Err(Error::NotAnOrder));
}

#[test]
fn a_stage_of_another_pipeline_moves_the_lead_there() {
    let mut settings = crate::sandbox::Settings::default();
    let mut second = settings.pipelines[0].clone();
    second.id = 7_100_002;
    second.stages[2].id = 62_000_001;
    settings.pipelines.push(second);
    let clock = crate::clock::ManualClock::starting_at(crate::domain::Timestamp::from_secs(1_796_036_400));
    let sandbox = crate::sandbox::Sandbox::new(clock, settings);
    let (lead, _) = sandbox.add_lead_by_hand("Окна", 5, None).unwrap();
    let keys = |body: &[u8]| pairs(body).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let moved = sandbox.move_lead(lead, 62_000_001).unwrap();
    assert_eq!(keys(&moved), keys(recorded!("amocrm/leads-status-pipeline-change.txt").as_bytes()));
    sandbox.move_lead(lead, 142).unwrap();
    assert_eq!(sandbox.lead(lead).unwrap().pipeline_id, 7_100_002, "won is a stage of every pipeline");
}
