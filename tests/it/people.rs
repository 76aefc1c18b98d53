//! What people do in the CRM, and what is theirs.

use std::time::Duration;

use serde_json::json;
use tambour::sandbox::{Fault, Operation, OrderSketch, When};
use tambour::store::{Receipt, Wish};

use crate::rig::{Rig, STAGE_CONTRACT, STAGE_NEW, START, Setup};

const PHONE: &str = "+79000000001";
const STAGE_WON: u64 = 142;

fn order() -> OrderSketch {
    OrderSketch { phone: Some(PHONE.to_owned()), ..OrderSketch::new(7, "#7", "4980.50", START) }
}

/// The order as it changes `minutes` after the start.
fn changed(minutes: u64, total: &str) -> OrderSketch {
    let updated_at = START.plus(Duration::from_mins(minutes));
    OrderSketch { updated_at, total: total.to_owned(), ..order() }
}

fn minutes(n: u64) -> Duration {
    Duration::from_mins(n)
}

/// Story: a person copied a deal together with its number. Two deals carry the marker, and
/// nobody can say which is ours: the task waits for a person, and a new event changes nothing.
#[test]
fn two_deals_with_one_marker_wait_for_a_person() {
    let mut rig = Rig::new(Setup::default());
    let marked = json!({"name": "Копия", "custom_fields_values": [
        {"field_code": "TAMBOUR_ID", "values": [{"value": "shop-7"}]}]});
    rig.ask("POST", "/api/v4/leads", &json!([marked, marked]));
    rig.order("orders/create", &order());
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead ambiguous", "notice done"]);
    let text = rig.task("deal").text;
    assert!(text.contains("50000001, 50000002"), "{text}");
    assert!(rig.crm.tasks()[0].text.contains("найдены две одинаковые карточки"));

    let calls = rig.network.log().len();
    let Receipt::New { tasks, .. } = rig.order("orders/updated", &changed(1, "1.00")) else { panic!("a new event") };
    assert_eq!(tasks[0].1.as_str(), "recorded");
    rig.run_for(minutes(300));
    assert_eq!((rig.network.log().len(), rig.crm.counts().leads), (calls, 2));

    // The person deletes one of them.
    rig.crm.delete_lead(50_000_002).unwrap();
    let id = rig.task("deal").id;
    rig.operate(id, Wish::Retry);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "notice done"]);
    assert_eq!((rig.crm.counts().leads, rig.crm.leads()[0].price), (1, 1));
}

/// Story: a manager deletes the deal, and the order changes. The deal is searched for, and
/// never made again without a person.
#[test]
fn a_deal_that_was_deleted_is_not_made_again() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.run_to_rest();
    rig.crm.delete_lead(rig.crm.leads()[0].id).unwrap();
    let calls = rig.network.log().len();
    for minute in 1..3 {
        rig.order("orders/updated", &changed(minute, "1.00"));
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal dead deleted_outside", "notice done"]);
    }
    let searched = rig.network.log()[calls..].contains(&"GET /api/v4/leads".to_owned());
    assert!(searched, "it may have been merged into another deal");
    assert_eq!(rig.crm.counts().leads, 0);
    assert!(rig.crm.tasks()[0].text.contains("созданную карточку удалили вручную"));
}

/// Story: two contacts of one buyer are merged, and ours is the one that vanished. The next
/// order finds the one that stayed.
#[test]
fn a_contact_that_was_merged_away_is_searched_for_again() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.run_to_rest();
    rig.crm.delete_contact(rig.crm.contacts()[0].id).unwrap();
    let stays = rig.crm.add_contact_by_hand("Анна Тестова", Some("8 900 000-00-01"), None);
    rig.order("orders/create", &OrderSketch { id: 8, ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal done"]);
    assert_eq!(rig.crm.leads()[1].contacts, [stays]);
}

/// Story: the buyer's contact is deleted, and the buyer orders again. Whether the person is
/// wanted in the CRM is not ours to say: a person is told, makes the contact anew, and
/// asks for another attempt.
#[test]
fn a_contact_that_was_deleted_is_not_made_again() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.run_to_rest();
    rig.crm.delete_contact(rig.crm.contacts()[0].id).unwrap();
    rig.order("orders/create", &OrderSketch { id: 8, ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal dead deleted_outside", "notice done"]);
    rig.crm.add_contact_by_hand("Анна", Some(PHONE), None);
    let id = rig.tasks()[1].id;
    rig.operate(id, Wish::Retry);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal done", "notice done"]);
    assert_eq!((rig.crm.counts().contacts, rig.crm.counts().leads), (1, 2));
}

/// Story: an account with 6,000 tasks of its people. The notice about an order without a
/// deal is still made once, though its answer is lost and it must be looked for.
#[test]
fn a_notice_is_found_among_thousands_of_tasks() {
    let mut rig = Rig::new(Setup::default());
    let old = json!({"text": "Позвонить", "complete_till": START.as_secs()});
    for _ in 0..24 {
        rig.ask("POST", "/api/v4/tasks", &vec![old.clone(); 250].into());
    }
    rig.jump(minutes(60 * 24));
    rig.crm.inject(Operation::TaskCreate, When::Nth(1), Fault::LostAnswer);
    rig.order("orders/create", &OrderSketch { currency: "USD".to_owned(), ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead wrong_currency", "notice done"]);
    assert_eq!(rig.crm.tasks().len(), 6001);
}

/// Story: a task is retired in the configuration while an order waits for it. The order is
/// not lost in silence: its task is dead, and a person is told.
#[test]
fn a_task_without_its_configuration_is_dead_and_a_person_is_told() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.restart_with(Setup { deal_task: "deals", retire: r#"["task deal"]"#, ..Setup::default() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead configuration", "notice done"]);
    assert!(rig.crm.tasks()[0].text.contains("ошибка в настройках"));
}

/// Story: a target is retired while an order waits for it. No lane stands still for good:
/// the task ends where a person sees it.
#[test]
fn a_task_for_a_retired_target_is_dead() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    let retire = r#"["target crm"]"#;
    rig.restart_with(Setup { target_name: "second", retire, ..Setup::default() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead configuration"]);
}

/// Story: shop, target and task get other names, one while an order waits, and then the order
/// changes. All keys are the old ones: the waiting task runs, the change finds its deal, and a
/// repeat of the first delivery is a repeat.
#[test]
fn renamed_things_keep_their_keys() {
    let renamed = Setup {
        shop_name: "moscow",
        shop: r#"formerly = "shop""#,
        target_name: "kommo",
        target: r#"formerly = "crm""#,
        deal_task: "orders",
        deal: r#"formerly = "deal""#,
        ..Setup::default()
    };
    let mut rig = Rig::new(Setup::default());
    rig.order_as("orders/create", &order(), "w-1", "e-1");
    let waiting = rig.task("deal");
    rig.restart_with(renamed);
    rig.run_to_rest();
    assert_eq!(rig.crm.leads()[0].fields["TAMBOUR_ID"], format!("shop-{}", order().id));

    let again = rig.order_as("orders/create", &order(), "w-1", "e-1");
    assert!(matches!(again, Receipt::Duplicate { .. }), "{again:?}");
    let mut later = order();
    later.total = "5555.00".to_owned();
    later.updated_at = rig.now();
    rig.order("orders/updated", &later);
    rig.run_to_rest();
    assert_eq!((rig.task("deal").id, rig.task("deal").key), (waiting.id, waiting.key));
    assert_eq!((rig.crm.leads().len(), rig.crm.contacts().len()), (1, 1));
    assert_eq!(rig.crm.leads()[0].price, 5555);
}

/// P14. Story: the stage of new deals is changed while an order waits. What waits is done
/// as the configuration says now.
#[test]
fn a_changed_configuration_counts_for_waiting_tasks() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.restart_with(Setup { deal_stage: STAGE_CONTRACT, ..Setup::default() });
    rig.run_to_rest();
    assert_eq!(rig.crm.leads()[0].status_id, STAGE_CONTRACT);
}

/// B35. Story: a sum that is not exact to the kopeck. It is never rounded in silence.
#[test]
fn a_sum_that_is_not_exact_is_left_to_a_person() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &OrderSketch { total: "1999.995".to_owned(), ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead bad_money", "notice done"]);
    assert_eq!(rig.crm.counts().leads, 0);
}

/// Story: an order in dollars, in an account that counts roubles. No rate is guessed: the
/// manager reads in Russian what to do.
#[test]
fn an_order_in_another_currency_is_left_to_a_person() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &OrderSketch { currency: "USD".to_owned(), ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead wrong_currency", "notice done"]);
    let [told] = rig.crm.tasks().try_into().unwrap();
    let expected = "tambour не смог выполнить задачу «deal» (7): валюта заказа не совпадает с валютой CRM. \
                    Заказ в валюте USD, а суммы в CRM ведутся в RUB. \
                    Проведите заказ вручную или исправьте currency у цели. \
                    Подробности: tambour trace t1. После исправления: tambour retry t1.\n[tambour:";
    assert!(told.text.starts_with(expected), "{}", told.text);
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.contacts), (0, 0));
}

/// Story: a guest buys without a phone and an e-mail. The deal stands without a contact.
#[test]
fn a_guest_gets_a_deal_without_a_contact() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &OrderSketch { phone: None, ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"]);
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.contacts, rig.crm.leads()[0].contacts.len()), (1, 0, 0));
}

/// The appliance was away for two hours; meanwhile a manager entered the order by hand.
/// Gives the deal that the manager made.
fn entered_by_hand(rig: &Rig) -> u64 {
    rig.jump(minutes(30));
    let contact = rig.crm.add_contact_by_hand("Анна", Some("8 900 000-00-01"), None);
    let (by_hand, _) = rig.crm.add_lead_by_hand("Заказ по телефону", 4980, Some(contact)).unwrap();
    rig.jump(minutes(90));
    by_hand
}

/// Story: as above, by the policy `flag`. Our deal is made, and the responsible person is
/// told of both.
#[test]
fn a_deal_made_by_hand_is_flagged() {
    let mut rig = Rig::new(Setup::default());
    let by_hand = entered_by_hand(&rig);
    rig.order("orders/create", &order());
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "notice done"]);
    let [_, ours] = rig.crm.leads().try_into().unwrap();
    assert_eq!(ours.fields["TAMBOUR_ID"], "shop-7");
    let [told] = rig.crm.tasks().try_into().unwrap();
    assert_eq!(told.lead_id, Some(ours.id));
    assert!(told.text.contains(&by_hand.to_string()) && told.text.contains("По заказу 7"), "{}", told.text);
}

/// Story: as above, and the answer to our create is lost, or the process dies on it. The
/// next attempt finds our deal; the person is told all the same, once.
#[test]
fn a_deal_made_by_hand_is_flagged_through_a_lost_answer() {
    for fault in [Fault::LostAnswer, Fault::LostRequest] {
        let mut rig = Rig::new(Setup::default());
        entered_by_hand(&rig);
        rig.crm.inject(Operation::LeadCreate, When::Nth(1), fault);
        rig.order("orders/create", &order());
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal done", "notice done"], "{fault:?}");
        assert_eq!((rig.crm.counts().leads, rig.crm.tasks().len()), (2, 1));
    }
}

/// Story: as above, by the policy `link`. The manager's deal becomes the order's: it gets
/// our fields and keeps its name and stage.
#[test]
fn a_deal_made_by_hand_is_linked() {
    let mut rig = Rig::new(Setup { deal: r#"hand_made = "link""#, ..Setup::default() });
    let by_hand = entered_by_hand(&rig);
    rig.order("orders/create", &order());
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"]);
    let [lead] = rig.crm.leads().try_into().unwrap();
    assert_eq!((lead.id, lead.name.as_str(), lead.price), (by_hand, "Заказ по телефону", 4981));
    assert_eq!((lead.fields["TAMBOUR_ID"].as_str(), lead.fields["TAMBOUR_TOTAL"].as_str()), ("shop-7", "4980.50"));
    assert_eq!(rig.crm.notes_of_lead(by_hand).len(), 1);

    rig.order("orders/updated", &changed(200, "10.00"));
    rig.run_to_rest();
    assert_eq!((rig.crm.counts().leads, rig.crm.leads()[0].price), (1, 10));
}

/// Story: as above, with two orders of the buyer and one deal made by hand. One order gets
/// it, and the other one a deal of its own.
#[test]
fn two_orders_do_not_share_a_deal_made_by_hand() {
    for seed in 0..20 {
        let mut rig = Rig::new(Setup { deal: r#"hand_made = "link""#, ..Setup::default() });
        rig.network.jitter(seed);
        entered_by_hand(&rig);
        rig.order("orders/create", &order());
        rig.order("orders/create", &OrderSketch { id: 8, ..order() });
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal done", "deal done"], "seed {seed}");
        let mut numbers: Vec<String> = rig.crm.leads().iter().map(|lead| lead.fields["TAMBOUR_ID"].clone()).collect();
        numbers.sort();
        assert_eq!(numbers, ["shop-7", "shop-8"], "seed {seed}");
    }
}

/// Story: a manager writes another order's number into our deal. Whose it is only a person
/// can say; nothing of the first order is written into it.
#[test]
fn a_deal_with_another_orders_number_is_left_to_a_person() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.run_to_rest();
    let id = rig.crm.leads()[0].id;
    let foreign = json!([{"id": id, "custom_fields_values": [
        {"field_code": "TAMBOUR_ID", "values": [{"value": "shop-8"}]}]}]);
    rig.ask("PATCH", "/api/v4/leads", &foreign);
    rig.order("orders/updated", &changed(1, "1.00"));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead ambiguous", "notice done"]);
    assert!(rig.task("deal").text.contains("another order's number"), "{}", rig.task("deal").text);
    let lead = &rig.crm.leads()[0];
    assert_eq!((lead.price, lead.fields["TAMBOUR_ID"].as_str()), (4981, "shop-8"));
}

/// Story: a guest's order names its customer later. The deal is tied to the contact, once,
/// through lost answers too; when a manager takes the tie away, it stays away.
#[test]
fn a_guest_who_is_named_later_is_tied_to_the_deal() {
    for fault in [None, Some(Fault::LostAnswer), Some(Fault::LostRequest)] {
        let mut rig = Rig::new(Setup::default());
        rig.order("orders/create", &OrderSketch { phone: None, ..order() });
        rig.run_to_rest();
        assert!(rig.crm.leads()[0].contacts.is_empty());
        if let Some(fault) = fault {
            rig.crm.inject(Operation::LeadLink, When::Nth(1), fault);
        }
        for minute in 1..=2 {
            rig.order("orders/updated", &changed(minute, "10.00"));
            rig.run_to_rest();
            assert_eq!(rig.told(), ["deal done"], "{fault:?}");
            let contact = rig.crm.contacts()[0].id;
            assert_eq!((rig.crm.counts().contacts, &rig.crm.leads()[0].contacts), (1, &vec![contact]));
        }
        assert_eq!(rig.view().doubts(10).unwrap(), []);
        assert_eq!(rig.calls(Operation::LeadLink), if fault == Some(Fault::LostRequest) { 2 } else { 1 });
    }
}

/// Story: within the hour, or with a deal that is closed, older than the order or another
/// order's, nobody is bothered.
#[test]
fn other_deals_of_the_buyer_are_no_suspects() {
    let mut rig = Rig::new(Setup::default());
    let contact = rig.crm.add_contact_by_hand("Анна", Some(PHONE), None);
    let before = rig.crm.add_lead_by_hand("Раньше", 1, Some(contact)).unwrap().0;
    rig.jump(minutes(10));
    rig.order("orders/create", &OrderSketch { created_at: rig.now(), ..order() });
    let (closed, _) = rig.crm.add_lead_by_hand("Закрыта", 1, Some(contact)).unwrap();
    rig.crm.move_lead(closed, STAGE_WON).unwrap();
    rig.order("orders/create", &OrderSketch { id: 8, created_at: rig.now(), ..order() });
    rig.jump(minutes(90));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal done"]);
    assert_eq!((rig.crm.counts().leads, before), (4, 50_000_001));
}

/// Story: the manager renames the deal and moves it on; the shop's price stays the shop's.
/// No update of the order takes back what the manager owns.
#[test]
fn a_managers_name_and_stage_are_never_taken_back() {
    let moves = r#"moves = [{ when = "paid", from = [61000002], to = 61000003 }]"#;
    let mut rig = Rig::new(Setup { deal: moves, ..Setup::default() });
    rig.order("orders/create", &order());
    rig.run_to_rest();
    let id = rig.crm.leads()[0].id;
    assert_eq!((rig.crm.leads()[0].status_id, rig.crm.leads()[0].price), (STAGE_NEW, 4981));

    let paid = |minute, total| OrderSketch { financial_status: "paid".to_owned(), ..changed(minute, total) };
    rig.order("orders/paid", &paid(1, "4980.50"));
    rig.run_to_rest();
    assert_eq!(rig.crm.leads()[0].status_id, STAGE_CONTRACT, "the shop's own move");

    rig.crm.rename(id, "Анна, окна в офис").unwrap();
    rig.crm.move_lead(id, STAGE_WON).unwrap();
    rig.crm.set_price(id, 1).unwrap();
    for minute in 2..5 {
        rig.jump(minutes(1));
        rig.order("orders/updated", &paid(minute, "99.40"));
        rig.run_to_rest();
        let lead = &rig.crm.leads()[0];
        assert_eq!((lead.name.as_str(), lead.status_id, lead.price), ("Анна, окна в офис", STAGE_WON, 99));
        assert_eq!(lead.fields["TAMBOUR_TOTAL"], "99.40");
    }
    // The second and third update found nothing to change, and wrote nothing.
    assert_eq!(rig.calls(Operation::LeadUpdate), 2);
}
