//! What a list call asks for: page, order, filters, and the page that answers it.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::{Reply, Request};
use crate::sandbox::world::Stamps;

/// The page size without `limit` (amoCRM API v4 reference).
const LIMIT_DEFAULT: usize = 50;
/// The largest page; more is refused.
const LIMIT_MAX: usize = 250;

/// The query of a list call.
#[derive(Debug)]
pub(super) struct Asked {
    pairs: Vec<(String, String)>,
    page: usize,
    limit: usize,
    order: Order,
    is_descending: bool,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Id,
    CreatedAt,
    UpdatedAt,
}

impl Asked {
    /// Reads a query; `filters` are the names that this list knows.
    ///
    /// A filter or an order that is not emulated is refused, because answering
    /// without it would show a client too much.
    pub(super) fn of(request: &Request, filters: &[&str]) -> Result<Self, Problem> {
        let refuse = |what: &str| Problem::BadRequest(format!("The sandbox does not know {what}."));
        let pairs = request.query();
        let (mut page, mut limit, mut order, mut is_descending) = (1, LIMIT_DEFAULT, Order::Id, false);
        for (key, value) in &pairs {
            match key.as_str() {
                "page" => page = value.parse().ok().filter(|&n| n > 0).ok_or_else(|| refuse("this page"))?,
                "limit" => {
                    let in_range = |n: &usize| (1..=LIMIT_MAX).contains(n);
                    limit = value.parse().ok().filter(in_range).ok_or_else(|| refuse("this limit"))?;
                }
                "order[id]" => order = Order::Id,
                "order[created_at]" => order = Order::CreatedAt,
                "order[updated_at]" => order = Order::UpdatedAt,
                "query" | "with" => {}
                _ if filter_name(key).is_some_and(|name| filters.contains(&name)) => {}
                _ => return Err(refuse(key)),
            }
            is_descending |= key.starts_with("order[") && value == "desc";
        }
        Ok(Self { pairs, page, limit, order, is_descending })
    }

    /// The value of a parameter; absent and empty are the same.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|text| !text.is_empty())
    }

    /// Whether `with` names `what`.
    pub(super) fn with(&self, what: &str) -> bool {
        self.text("with").is_some_and(|with| with.split(',').any(|w| w == what))
    }

    /// Whether a filter lets `value` through; an absent one lets everything through.
    pub(super) fn lets_through(&self, filter: &str, value: &str) -> bool {
        let mut wanted =
            self.pairs.iter().filter(|(key, _)| filter_name(key) == Some(filter)).map(|(_, v)| v).peekable();
        wanted.peek().is_none() || wanted.any(|v| v == value)
    }

    /// Answers with the page that was asked for, 204 when it is empty.
    pub(super) fn page<T>(
        &self,
        desk: &Desk<'_>,
        name: &str,
        mut hits: Vec<(u64, Stamps, T)>,
        render: impl Fn(u64, T) -> Value,
    ) -> Reply {
        hits.sort_by_key(|(id, stamps, _)| match self.order {
            Order::Id => (0, *id),
            Order::CreatedAt => (stamps.created_at, *id),
            Order::UpdatedAt => (stamps.updated_at, *id),
        });
        if self.is_descending {
            hits.reverse();
        }
        let skipped = (self.page - 1).saturating_mul(self.limit);
        let has_next = hits.len() > skipped.saturating_add(self.limit);
        let items: Vec<Value> =
            hits.into_iter().skip(skipped).take(self.limit).map(|(id, _, thing)| render(id, thing)).collect();
        if items.is_empty() {
            return Reply::empty(204);
        }
        let mut links = json!({"self": {"href": self.href(desk.request, self.page)}});
        if let (true, Some(links)) = (has_next, links.as_object_mut()) {
            links.insert("next".to_owned(), json!({"href": self.href(desk.request, self.page + 1)}));
        }
        answer::hal(&json!({"_page": self.page, "_links": links, "_embedded": {name: items}}))
    }

    /// The same list on another page.
    fn href(&self, request: &Request, page: usize) -> String {
        let kept = self.pairs.iter().filter(|(key, _)| key != "page" && key != "limit");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair("page", &page.to_string())
            .append_pair("limit", &self.limit.to_string())
            .finish();
        format!("{}{}?{query}", request.origin(), request.path())
    }
}

/// `id` of `filter[id]`, `filter[id][]` and `filter[id][0]`.
fn filter_name(key: &str) -> Option<&str> {
    key.strip_prefix("filter[")?.split_once(']').map(|(name, _)| name)
}
