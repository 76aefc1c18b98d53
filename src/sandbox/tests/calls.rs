//! Every endpoint against the recorded shapes, and what is refused.

use super::{Fixture, assert_same_shape, ids, recorded};
use crate::domain::Timestamp;
use crate::sandbox::OrderSketch;
use serde_json::{Value, json};

/// No hits.
const NONE: [u64; 0] = [];

#[test]
fn the_account_is_the_recorded_one() {
    let fixture = Fixture::new();
    let check = |path, recorded: &str| {
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        assert_eq!(fixture.get(path), (200, recorded), "{path}");
    };
    check("/api/v4/account", recorded!("amocrm/api/account.json"));
    check("/api/v4/leads/pipelines", recorded!("amocrm/api/pipelines.json"));
    assert_eq!(ids(&fixture.get("/api/v4/users"), "users"), [9_000_001]);
    assert_eq!(ids(&fixture.get("/api/v4/contacts/custom_fields"), "custom_fields"), [702_001, 702_002]);
    assert_eq!(ids(&fixture.get("/api/v4/leads/custom_fields"), "custom_fields"), NONE);
}

#[test]
fn answers_have_the_recorded_shapes() {
    let fixture = Fixture::new();
    let field = json!([{"name": "Источник", "type": "select", "enums": [{"value": "Сайт"}, {"value": "Звонок"}]}]);
    let (_, field) = fixture.post("/api/v4/leads/custom_fields", &field);
    let field = field["_embedded"]["custom_fields"][0]["id"].clone();
    let contact = fixture.contact("+7 900 000-00-01");
    let lead = json!([{"name": "Окна", "price": 128500.5, "status_id": 61_000_003, "request_id": "ev-000124",
        "custom_fields_values": [{"field_id": field, "values": [{"value": "Звонок"}]}],
        "_embedded": {"contacts": [{"id": contact, "is_main": true}]}}]);
    let (_, made) = fixture.post("/api/v4/leads", &lead);
    assert_same_shape(&made, recorded!("amocrm/api/leads-post-answer.json"));
    assert_eq!(made["_embedded"]["leads"][0]["request_id"], "ev-000124");
    let lead = made["_embedded"]["leads"][0]["id"].as_u64().unwrap();
    let other = fixture.lead("Вторая");

    let (_, read) = fixture.get(&format!("/api/v4/leads/{lead}?with=contacts"));
    assert_same_shape(&read, recorded!("amocrm/api/lead-with-contacts.json"));
    assert_eq!((&read["price"], &read["price_with_minor_units"]), (&json!(128_500), &json!(128_500.5)));
    assert_eq!(read["custom_fields_values"][0]["values"][0]["value"], "Звонок");
    let (_, page) = fixture.get("/api/v4/leads?order%5Bupdated_at%5D=asc&limit=1");
    assert_same_shape(&page, recorded!("amocrm/api/leads-page-1.json"));
    let (_, changed) = fixture.patch(&format!("/api/v4/leads/{other}"), &json!({"price": 5}));
    assert_same_shape(&changed, recorded!("amocrm/api/lead-patch-answer.json"));

    let (_, hits) = fixture.get("/api/v4/contacts?query=9000000001&with=leads");
    assert_same_shape(&hits, recorded!("amocrm/api/contacts-query.json"));
    let (_, read) = fixture.get(&format!("/api/v4/contacts/{contact}?with=leads"));
    assert_same_shape(&read, recorded!("amocrm/api/contact.json"));

    let note = json!([{"note_type": "service_message", "params": {"service": "Tambour", "text": "Договор № 17"}}]);
    let (_, made) = fixture.post(&format!("/api/v4/leads/{lead}/notes"), &note);
    assert_same_shape(&made, recorded!("amocrm/api/notes-post-answer.json"));
    let (_, notes) = fixture.get(&format!("/api/v4/leads/{lead}/notes?filter[note_type][]=service_message"));
    assert_same_shape(&notes, recorded!("amocrm/api/notes-list.json"));
}

#[test]
fn refusals_have_the_recorded_shapes() {
    let fixture = Fixture::new();
    let lead = json!([{"name": 5, "custom_fields_values": [{"field_id": 1, "values": [{"value": "x"}]}]}]);
    let (status, body) = fixture.post("/api/v4/leads", &lead);
    assert_eq!(status, 400);
    assert_same_shape(&body, recorded!("amocrm/api/error-400-validation.json"));
    let check = |path: &str, token: &str, status, recorded: &str| {
        let headers = vec![("authorization".to_owned(), token.to_owned())];
        let request = crate::sandbox::Request::new("GET", path, headers, bytes::Bytes::new());
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        assert_eq!(super::parsed(&fixture.sandbox.handle(&request)), (status, recorded), "{path}");
    };
    let good = "Bearer sandbox-amocrm-token";
    check("/api/v4/account", "Bearer other", 401, recorded!("amocrm/api/error-401.json"));
    check("/api/v4/leads/1", good, 404, recorded!("amocrm/api/error-404.json"));
    check("/api/v4/leads/x", good, 404, recorded!("amocrm/api/error-404.json"));
    check("/api/v4/leads/1/notes", good, 404, recorded!("amocrm/api/error-404.json"));
    check("/", good, 404, recorded!("amocrm/api/error-404.json"));
    let body = "x".repeat(crate::sandbox::door::BODY_BYTES_MAX + 1);
    assert_eq!(fixture.call("POST", "/api/v4/leads", &body).status, 413);
}

/// Each wrong item must be refused by name, and a batch with one bad item must change nothing.
#[test]
fn wrong_values_are_refused_and_change_nothing() {
    let fixture = Fixture::new();
    fixture.post("/api/v4/leads/custom_fields", &json!({"name": "Номер", "type": "numeric", "code": "NUMBER"}));
    let lead = fixture.lead("Есть");
    let before = fixture.sandbox.counts();
    let check = |path: &str, bad: Value, errors: &[(&str, &str)]| {
        let (status, body) = fixture.post(path, &json!([bad]));
        let found = body["validation-errors"][0]["errors"].as_array().cloned().unwrap_or_default();
        let found: Vec<_> = found.iter().map(|e| (e["code"].as_str().unwrap(), e["path"].as_str().unwrap())).collect();
        assert_eq!((status, found.as_slice()), (400, errors), "{bad}");
    };
    let choice = "NotSupportedChoice";
    let value = |code: &str, value: Value| json!({"custom_fields_values": [{"field_code": code, "values": [{"value": value}]}]});
    check("/api/v4/leads", json!({"price": "5"}), &[("InvalidType", "price")]);
    check("/api/v4/leads", json!({"status_id": 1}), &[(choice, "status_id")]);
    check("/api/v4/leads", json!({"pipeline_id": 1}), &[(choice, "pipeline_id")]);
    check("/api/v4/leads", json!({"responsible_user_id": 1}), &[(choice, "responsible_user_id")]);
    check("/api/v4/leads", json!({"_embedded": {"contacts": [{"id": 1}]}}), &[(choice, "_embedded.contacts.0.id")]);
    check("/api/v4/leads", value("PHONE", json!("x")), &[(choice, "custom_fields_values.0.field_id")]);
    check("/api/v4/leads", value("NUMBER", json!("12a")), &[("InvalidType", "custom_fields_values.0.values.0.value")]);
    check("/api/v4/contacts", value("PHONE", json!(7)), &[("InvalidType", "custom_fields_values.0.values.0.value")]);
    check("/api/v4/leads/notes", json!({"note_type": "common", "entity_id": lead}), &[("FieldMissing", "params.text")]);
    check("/api/v4/leads/notes", json!({"note_type": "x"}), &[("FieldMissing", "entity_id"), (choice, "note_type")]);
    let task = json!({"text": "Позвонить", "entity_type": "leads", "entity_id": lead});
    check("/api/v4/tasks", task, &[("FieldMissing", "complete_till")]);
    let field = json!({"name": "Другое", "type": "text", "code": "NUMBER"});
    check("/api/v4/leads/custom_fields", field, &[("NotUnique", "code")]);
    check("/api/v4/leads/custom_fields", json!({"type": "blob"}), &[("FieldMissing", "name"), (choice, "type")]);

    let (status, body) = fixture.post("/api/v4/leads", &json!([{"name": "Хорошая"}, {"price": -1}]));
    assert_eq!((status, &body["validation-errors"][0]["request_id"]), (400, &json!("1")));
    for body in ["", "[", "{}", "[]", "[1]"] {
        assert_eq!(fixture.call("POST", "/api/v4/leads", body).status, 400, "{body}");
    }
    for path in
        ["/api/v4/leads?filter[price]=1", "/api/v4/leads?page=0", "/api/v4/leads?limit=251", "/api/v4/tasks?a=b"]
    {
        assert_eq!(fixture.get(path).0, 400, "{path}");
    }
    let after = fixture.sandbox.counts();
    assert_eq!((after.leads, after.contacts, after.notes, after.tasks), (before.leads, 0, 0, 0));
}

#[test]
fn custom_fields_are_kept_replaced_and_cleared() {
    let fixture = Fixture::new();
    let lead = fixture.lead("Окна");
    let path = format!("/api/v4/leads/{lead}");
    let check = |kind: &str, sent: Value, kept: Value, text: &str| {
        let field = json!({"name": kind, "type": kind, "code": kind, "enums": [{"value": "Сайт"}]});
        assert_eq!(fixture.post("/api/v4/leads/custom_fields", &field).0, 200);
        let values = json!({"custom_fields_values": [{"field_code": kind, "values": [{"value": sent}]}]});
        assert_eq!(fixture.patch(&path, &values).0, 200, "{kind}");
        let (_, read) = fixture.get(&path);
        let fields = read["custom_fields_values"].as_array().unwrap();
        let field = fields.iter().find(|field| field["field_code"] == kind).unwrap();
        assert_eq!(field["values"][0]["value"], kept, "{kind}");
        assert_eq!(fixture.sandbox.lead(lead).unwrap().fields[kind], text);
    };
    check("text", json!("shop-1"), json!("shop-1"), "shop-1");
    check("numeric", json!(4980.5), json!("4980.5"), "4980.5");
    check("monetary", json!("49.80"), json!("49.80"), "49.80");
    check("checkbox", json!(true), json!(true), "1");
    check("date", json!("2026-11-30T11:00:00Z"), json!(1_796_036_400), "1796036400");
    check("select", json!("Сайт"), json!("Сайт"), "Сайт");
    for empty in [json!(null), json!([])] {
        let clear = json!({"custom_fields_values": [{"field_code": "text", "values": empty}]});
        assert_eq!(fixture.patch(&path, &clear).0, 200);
        let fields = fixture.sandbox.lead(lead).unwrap().fields;
        assert!(!fields.contains_key("text") && fields.contains_key("numeric"), "others stay");
    }
}

#[test]
fn searches_find_parts_and_page_through_all_hits() {
    let fixture = Fixture::new();
    fixture.post("/api/v4/leads/custom_fields", &json!({"name": "Заказ", "type": "text", "code": "ORDER"}));
    let contact = fixture.contact("8 (900) 000-00-02");
    let leads: Vec<u64> = (1..=3)
        .map(|n| {
            let values = json!([{"field_code": "ORDER", "values": [{"value": format!("shop-10{n}")}]}]);
            fixture.made(
                "/api/v4/leads",
                "leads",
                &json!({"name": format!("Заказ #{n}"), "custom_fields_values": values}),
            )
        })
        .collect();
    let find = |path: &str, name: &str| ids(&fixture.get(path), name);
    let (first, second, third) = (leads[0], leads[1], leads[2]);
    assert_eq!(find("/api/v4/leads?query=shop-10", "leads"), leads);
    assert_eq!(find("/api/v4/leads?query=SHOP-102", "leads"), [second]);
    assert_eq!(find("/api/v4/leads?query=%D0%B7%D0%B0%D0%BA%D0%B0%D0%B7%20%233", "leads"), [third]);
    assert_eq!(find("/api/v4/leads?query=9000000002", "leads"), NONE, "a contact's phone does not find its leads");
    assert_eq!(find(&format!("/api/v4/leads?filter[id][]={first}&filter[id][]={third}"), "leads"), [first, third]);
    assert_eq!(find("/api/v4/leads?query=shop&limit=2", "leads"), [first, second]);
    assert_eq!(find("/api/v4/leads?query=shop&limit=2&page=2", "leads"), [third]);
    assert_eq!(find("/api/v4/leads?query=shop&limit=2&page=3", "leads"), NONE);
    assert_eq!(find("/api/v4/leads?order[id]=desc&limit=1", "leads"), [third]);
    for query in ["9000000002", "%2B%280%29%20002", "anna.TEST@", "%D0%A2%D0%95%D0%A1%D0%A2"] {
        assert_eq!(find(&format!("/api/v4/contacts?query={query}"), "contacts"), [contact], "{query}");
    }
    assert_eq!(find("/api/v4/contacts?query=79000000002", "contacts"), NONE, "the phone was written with an 8");
    let (_, page) = fixture.get("/api/v4/leads?query=shop&limit=2");
    let next = page["_links"]["next"]["href"].as_str().unwrap();
    assert_eq!(next, "https://tambourtest.amocrm.ru/api/v4/leads?query=shop&page=2&limit=2");
    let (_, last) = fixture.get("/api/v4/leads?query=shop&limit=2&page=2");
    assert!(last["_links"].get("next").is_none());
    assert_eq!(fixture.sandbox.contacts_with_phone("+7 900 000 00 02"), [contact]);
}

#[test]
fn leads_are_changed_moved_and_linked() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.contact("+79000000001"), fixture.contact("+79000000002"));
    let lead =
        fixture.made("/api/v4/leads", "leads", &json!({"name": "Окна", "_embedded": {"contacts": [{"id": one}]}}));
    assert_eq!(fixture.sandbox.lead(lead).unwrap().status_id, 61_000_002, "the stage after the incoming leads");
    let won = json!({"id": lead, "status_id": 142, "pipeline_id": 7_100_001, "price": 10});
    assert_eq!(fixture.patch("/api/v4/leads", &json!([won])).0, 200);
    let (_, read) = fixture.get(&format!("/api/v4/leads/{lead}"));
    assert_eq!(
        (&read["status_id"], &read["closed_at"], &read["price"]),
        (&json!(142), &json!(1_796_036_400), &json!(10))
    );
    let link = json!([{"to_entity_id": two, "to_entity_type": "contacts", "metadata": {"is_main": true}}]);
    assert_eq!(fixture.post(&format!("/api/v4/leads/{lead}/link"), &link).0, 200);
    assert_eq!(fixture.sandbox.lead(lead).unwrap().contacts, [two, one], "the main one first");
    assert_eq!(fixture.sandbox.leads_of_contact(one), [lead]);
    let renamed = json!({"first_name": "Анна", "last_name": "Новая"});
    assert_eq!(fixture.patch(&format!("/api/v4/contacts/{one}"), &renamed).0, 200);
    assert_eq!(fixture.sandbox.contact(one).unwrap().name, "Анна Новая");
    assert_eq!(fixture.patch("/api/v4/leads/1", &json!({})).0, 404);
    assert_eq!(fixture.patch("/api/v4/leads", &json!([{"id": 1}])).0, 400);
}

#[test]
fn notes_and_tasks_stay_with_their_lead() {
    let fixture = Fixture::new();
    let (lead, other) = (fixture.lead("Окна"), fixture.lead("Двери"));
    let note = |text: &str| json!({"note_type": "common", "params": {"text": text}});
    let first = fixture.made(&format!("/api/v4/leads/{lead}/notes"), "notes", &note("раз"));
    let second = fixture.made(&format!("/api/v4/leads/{lead}/notes"), "notes", &note("два"));
    let with_id = json!({"note_type": "common", "params": {"text": "три"}, "entity_id": other});
    fixture.made("/api/v4/leads/notes", "notes", &with_id);
    let listed = fixture.get(&format!("/api/v4/leads/{lead}/notes?page=1&limit=250&order[id]=desc"));
    assert_eq!(ids(&listed, "notes"), [second, first]);
    assert_eq!(fixture.sandbox.notes_of_lead(lead), ["раз", "два"]);
    let task = json!({"text": "Позвонить", "entity_type": "leads", "entity_id": other, "complete_till": 1_796_040_000});
    let task = fixture.made("/api/v4/tasks", "tasks", &task);
    let of = |id: u64| fixture.get(&format!("/api/v4/tasks?filter[entity_type]=leads&filter[entity_id][]={id}"));
    assert_eq!(ids(&of(other), "tasks"), [task]);
    assert_eq!(of(lead), (204, Value::Null));
    assert_eq!(fixture.sandbox.tasks_of_lead(other), ["Позвонить"]);
    fixture.made("/api/v4/tasks", "tasks", &json!({"text": "Разобраться", "complete_till": 1_796_040_000}));
    let about: Vec<Option<u64>> = fixture.sandbox.tasks().iter().map(|task| task.lead_id).collect();
    assert_eq!(about, [Some(other), None], "a task may be about nothing in particular");
}

#[test]
fn the_shop_answers_for_one_order() {
    let fixture = Fixture::new();
    let order: Value = serde_json::from_str(recorded!("shopify/orders-paid.json")).unwrap();
    let id = fixture.sandbox.put_order(order).unwrap();
    let path = "/admin/api/2026-10/graphql.json";
    let ask = |id: String| {
        let body = json!({"query": "query($id: ID!) { order(id: $id) { name } }", "variables": {"id": id}});
        fixture.post(path, &body)
    };
    let (status, body) = ask(format!("gid://shopify/Order/{id}"));
    let node = &body["data"]["order"];
    let page: Value = serde_json::from_str(recorded!("shopify/graphql/orders-page-1.json")).unwrap();
    for (name, value) in page["data"]["orders"]["edges"][0]["node"].as_object().unwrap() {
        if !["customer", "tags", "note"].contains(&name.as_str()) {
            assert_eq!(&node[name], value, "{name}");
        }
    }
    assert_eq!((status, &node["tags"]), (200, &json!(["Опт", "первый заказ", "VIP"])));
    assert_eq!(node["customer"]["displayName"], "Анна Тестова");
    assert_eq!(node["shippingAddress"], json!({"name": "Анна Тестова", "phone": "8 (900) 000-00-01"}));
    let line = &node["lineItems"]["nodes"][0];
    assert_eq!(
        (&line["title"], &line["quantity"], &line["currentQuantity"]),
        (&json!("Чай «Утро»"), &json!(2), &json!(2))
    );
    assert_eq!(line["originalUnitPriceSet"]["shopMoney"], json!({"amount": "1290.0", "currencyCode": "RUB"}));
    assert_eq!(body["extensions"], page["extensions"]);
    for unknown in ["gid://shopify/Order/1", "gid://shopify/Order/x", "1"] {
        assert_eq!(ask(unknown.to_owned()).1["data"], json!({"order": null}), "{unknown}");
    }
    assert!(fixture.post(path, &json!({"query": "{ shop { name } }"})).1.get("data").is_none());
    let at = Timestamp::from_secs(1_796_036_400);
    let guest = fixture.sandbox.put_order(OrderSketch::new(7, "#7", "10.00", at).to_json()).unwrap();
    let (_, body) = ask(format!("gid://shopify/Order/{guest}"));
    assert_eq!((&body["data"]["order"]["customer"], &body["data"]["order"]["email"]), (&Value::Null, &Value::Null));
    let bare = crate::sandbox::Request::new("POST", path, Vec::new(), bytes::Bytes::new());
    let recorded: Value = serde_json::from_str(recorded!("shopify/graphql/errors-unauthorized-401.json")).unwrap();
    assert_eq!(super::parsed(&fixture.sandbox.handle(&bare)), (401, recorded));
}

/// Whatever stands in place of a value, a write is done or refused, and the account stays readable.
#[test]
fn no_value_in_any_place_breaks_a_write() {
    let fixture = Fixture::new();
    let (contact, lead) = (fixture.contact("+79000000001"), fixture.lead("Окна"));
    let values = json!([{"field_id": 702_001, "values": [{"value": "1", "enum_code": "MOB", "enum_id": 502_001}]}]);
    let writes = [
        (
            "/api/v4/leads",
            json!({"name": "", "price": 1, "status_id": 142, "pipeline_id": 7_100_001,
            "responsible_user_id": 9_000_001, "custom_fields_values": values,
            "_embedded": {"contacts": [{"id": contact, "is_main": true}]}, "request_id": "a"}),
        ),
        ("/api/v4/contacts", json!({"name": "", "first_name": "", "last_name": "", "custom_fields_values": values})),
        ("/api/v4/leads/notes", json!({"entity_id": lead, "note_type": "common", "params": {"text": ""}})),
        (
            "/api/v4/tasks",
            json!({"entity_id": lead, "entity_type": "leads", "text": "", "complete_till": 1, "task_type_id": 1}),
        ),
        ("/api/v4/leads/custom_fields", json!({"name": "", "type": "select", "code": "", "enums": [{"value": ""}]})),
    ];
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!([]),
        json!([0]),
        json!({}),
    ];
    for (path, item) in &writes {
        for pointer in pointers(item, "") {
            for odd in &odd {
                let mut item = item.clone();
                *item.pointer_mut(&pointer).unwrap() = odd.clone();
                let (status, body) = fixture.post(path, &json!([item]));
                assert!(matches!(status, 200 | 400), "{path} {item}: {status} {body}");
            }
        }
    }
    for (path, name) in [("/api/v4/leads", "leads"), ("/api/v4/contacts", "contacts"), ("/api/v4/tasks", "tasks")] {
        assert!(!ids(&fixture.get(path), name).is_empty());
    }
}

/// The JSON pointers of everything inside a value.
fn pointers(value: &Value, path: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(array) => array.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(name, value): (String, &Value)| {
        let path = format!("{path}/{name}");
        let mut all = pointers(value, &path);
        all.push(path);
        all
    };
    inside.into_iter().flat_map(below).collect()
}
