//! Which event a route wants.

use serde_json::Value;

use crate::config::{Condition, Route};
use crate::rules::compare::{same, scalar_text};
use crate::source::Fact;

/// Whether a route wants a fact: its source, its kind, and all conditions.
///
/// `since` is not looked at: it needs the time of the entity or of the move.
pub fn route_matches(route: &Route, source: &str, fact: &Fact) -> bool {
    route.source == source
        && route.events.contains(&fact.kind)
        && route.conditions.iter().all(|condition| holds(condition, &fact.data))
}

/// Whether a field of an item has one of the wanted values.
///
/// Dots go into objects, and through lists to any of their elements. Values are
/// compared as text, numbers with tolerance; null reads as empty text, a field
/// that is missing never holds.
pub fn holds(condition: &Condition, data: &Value) -> bool {
    any_at(data, Some(&condition.field), &|value| {
        scalar_text(value).is_some_and(|text| condition.any_of.iter().any(|wanted| same(&text, wanted)))
    })
}

fn any_at(value: &Value, path: Option<&str>, wanted: &dyn Fn(&Value) -> bool) -> bool {
    match (value, path) {
        (Value::Array(items), _) => items.iter().any(|item| any_at(item, path, wanted)),
        (_, None) => wanted(value),
        (Value::Object(fields), Some(path)) => {
            let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
            fields.get(name).is_some_and(|inner| any_at(inner, rest, wanted))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::rules::samples;

    fn condition(field: &str, any_of: &[&str]) -> Condition {
        Condition { field: field.to_owned(), any_of: any_of.iter().map(|&text| text.to_owned()).collect() }
    }

    fn check(field: &str, any_of: &[&str], expected: bool) {
        let data = json!({
            "status_id": "142", "pipeline_id": 31, "price": 142.0, "test": true, "note": null, "text": "",
            "big": 1_524_831_183_200_260_097_u64, "nested": {"a": {"b": "deep"}},
            "tags": [{"id": "1", "name": "VIP"}, {"id": "2", "name": "опт"}], "list": [[1, 2], ["x"]],
        });
        assert_eq!(holds(&condition(field, any_of), &data), expected, "{field} {any_of:?}");
    }

    #[test]
    fn fields_are_compared_as_text_with_tolerance() {
        check("status_id", &["142"], true);
        check("status_id", &["7", "142.0"], true);
        check("status_id", &["143"], false);
        check("status_id", &[], false);
        check("pipeline_id", &["31"], true);
        check("price", &["142"], true);
        check("test", &["true"], true);
        check("test", &["1"], false);
        check("big", &["1524831183200260097"], true);
        check("big", &["1524831183200260096"], false);
        check("nested.a.b", &["deep"], true);
        check("nested.a", &["deep"], false);
        check("nested.a.b.c", &["deep"], false);
        check("tags.name", &["опт"], true);
        check("tags.id", &["3"], false);
        check("list", &["2"], true);
        check("list", &["x"], true);
        check("note", &[""], true);
        check("text", &[""], true);
        check("absent", &[""], false);
        check("", &[""], false);
        check("a..b", &[""], false);
    }

    #[test]
    fn a_route_wants_its_source_kind_and_conditions() {
        let route = Route {
            source: "amo".to_owned(),
            events: vec!["leads.status".to_owned(), "leads.add".to_owned()],
            conditions: vec![condition("status_id", &["142", "143"]), condition("pipeline_id", &["31"])],
            task: "note".to_owned(),
            since: None,
        };
        let fact = |kind: &str, status: &str| Fact {
            kind: kind.to_owned(),
            entity_kind: "lead".to_owned(),
            entity_id: "1".to_owned(),
            source_time: None,
            is_whole: false,
            data: json!({"status_id": status, "pipeline_id": "31"}),
        };
        assert!(route_matches(&route, "amo", &fact("leads.status", "143")));
        assert!(route_matches(&route, "amo", &fact("leads.add", "142")));
        assert!(!route_matches(&route, "amo", &fact("leads.status", "1")));
        assert!(!route_matches(&route, "amo", &fact("leads", "142")));
        assert!(!route_matches(&route, "shop", &fact("leads.status", "142")));
    }

    proptest! {
        #[test]
        fn any_data_and_path_give_an_answer(data in samples::json(), field in "[a-z.]{0,12}") {
            holds(&condition(&field, &["1", ""]), &data);
        }
    }
}
