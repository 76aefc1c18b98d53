//! A Shopify shop's Admin GraphQL API: one order, read fresh.
//!
//! An answer has three layers: the HTTP status, top-level `errors` with a
//! code, and the data, where an unknown order is null (Shopify documentation,
//! "GraphQL Admin API", read 2026-11). A rate limit comes as HTTP 200 with the
//! code `THROTTLED`; only codes count, never messages.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::classify::{Asked, plain_word, read_json, unreadable};
use crate::client::limits::Limits;
use crate::client::peer::Peer;
use crate::client::{Answer, Method, SharedTransport};
use crate::clock::SharedClock;
use crate::config::ShopApi;
use crate::domain::{ReasonCode, Refusal};
use crate::telemetry::Metrics;

/// An order costs about 25 points of the standard plan's 100 a second (Shopify
/// documentation, "rate limits", read 2026-11).
const CALLS_PER_SECOND: u32 = 4;

/// As many as leave within a second.
const IN_FLIGHT_MAX: usize = 4;

/// A shop; cheap to clone, clones share its limits.
#[derive(Clone, Debug)]
pub struct Shop {
    peer: Arc<Peer>,
}

impl Shop {
    /// Prepares calls to the shop; makes none.
    ///
    /// `source` is the configured name, for metrics.
    pub fn new(
        source: &str,
        api: &ShopApi,
        transport: SharedTransport,
        clock: SharedClock,
        metrics: Arc<Metrics>,
    ) -> Self {
        let peer = Peer {
            url: format!("{}/admin/api/{}", api.url, api.version),
            credential: ("x-shopify-access-token", api.token.clone()),
            timeout: api.timeout,
            limits: Limits::new(IN_FLIGHT_MAX, CALLS_PER_SECOND, Arc::clone(&clock)),
            transport,
            clock,
            name: source.to_owned(),
            metrics,
        };
        Self { peer: Arc::new(peer) }
    }

    /// Reads an order by its number, as an object of the GraphQL `fields`; `None` when the shop has none.
    ///
    /// # Errors
    /// Any class but `Unknown`; `Dead` when the shop refuses the question itself.
    pub async fn order(&self, order_id: &str, fields: &str) -> Result<Option<Value>, Refusal> {
        let body = json!({
            "query": format!("query Order($id: ID!) {{ order(id: $id) {{ {fields} }} }}"),
            "variables": {"id": format!("gid://shopify/Order/{order_id}")},
        });
        let answer = self.peer.send(Asked::List, Method::Post, "/graphql.json", Some(&body)).await?;
        let order = read_order(&answer);
        if let Some(wish) = order.as_ref().err().and_then(Refusal::after) {
            self.peer.limits.slow_down(Some(wish));
        }
        order
    }
}

#[derive(Deserialize)]
struct Reply {
    data: Option<Map<String, Value>>,
    #[serde(default)]
    errors: Vec<GraphqlError>,
    #[serde(default)]
    extensions: Value,
}

#[derive(Deserialize)]
struct GraphqlError {
    #[serde(default)]
    extensions: Value,
}

impl GraphqlError {
    fn code(&self) -> &str {
        self.extensions.get("code").and_then(Value::as_str).unwrap_or_default()
    }
}

fn read_order(answer: &Answer) -> Result<Option<Value>, Refusal> {
    let reply: Reply = read_json(Asked::List, answer)?;
    if let Some(error) = reply.errors.first() {
        return Err(error_class(error.code(), &reply.extensions));
    }
    match reply.data.and_then(|mut data| data.remove("order")) {
        Some(Value::Null) => Ok(None),
        Some(order @ Value::Object(_)) => Ok(Some(order)),
        _ => Err(unreadable(Asked::List, answer.status)),
    }
}

fn error_class(code: &str, extensions: &Value) -> Refusal {
    let named = if code.is_empty() { "an error without a code".to_owned() } else { plain_word(code) };
    let text = |cause: &str| format!("the shop answered {named}: {cause}");
    match code {
        "THROTTLED" => Refusal::Retry { after: Some(cost_pause(extensions)), text: text("too many calls") },
        "INTERNAL_SERVER_ERROR" => Refusal::Retry { after: None, text: text("the shop failed to answer") },
        "ACCESS_DENIED" => Refusal::Hold { text: text("the token may not read orders; give it `read_orders`") },
        "SHOP_INACTIVE" => Refusal::Hold { text: text("the shop is closed; have it opened") },
        _ => Refusal::Dead {
            reason: ReasonCode::VALIDATION,
            text: text("the question was refused; check the API version, then retry"),
        },
    }
}

/// The time until the bucket holds what the question costs, in whole seconds rounded up, at least one.
fn cost_pause(extensions: &Value) -> Duration {
    let number = |path: &str| extensions.pointer(path).and_then(Value::as_f64);
    let pause = || {
        let missing = number("/cost/requestedQueryCost")? - number("/cost/throttleStatus/currentlyAvailable")?;
        let rate = number("/cost/throttleStatus/restoreRate")?;
        Duration::try_from_secs_f64((missing / rate).ceil()).ok()
    };
    pause().unwrap_or_default().max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::client::Failure;
    use crate::client::scripted::{Scripted, answer, sample};
    use crate::clock::ManualClock;
    use crate::config::Secret;
    use crate::domain::Timestamp;

    const ORDER: &str = r#"{"data":{"order":{"legacyResourceId":"912345678901234567","n":912345678901234567}}}"#;

    fn shop(transport: &Arc<Scripted>) -> Shop {
        let api = ShopApi {
            url: "https://shop.example.com".to_owned(),
            version: "2026-10".to_owned(),
            token: Secret::new("t0ken".to_owned()),
            timeout: Duration::from_secs(10),
        };
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_796_036_400));
        Shop::new("shop", &api, transport.clone(), clock, Arc::default())
    }

    #[tokio::test]
    async fn an_order_is_asked_for_by_its_global_id() {
        let transport = Scripted::answering([Ok(answer(200, ORDER))]);
        let order = shop(&transport).order("912345678901234567", "legacyResourceId n").await.unwrap().unwrap();
        assert_eq!(order["n"].as_u64(), Some(912_345_678_901_234_567));
        assert_eq!(transport.lines(), ["POST https://shop.example.com/admin/api/2026-10/graphql.json"]);
        let expected = json!({
            "query": "query Order($id: ID!) { order(id: $id) { legacyResourceId n } }",
            "variables": {"id": "gid://shopify/Order/912345678901234567"},
        });
        assert_eq!(transport.last_body(), expected);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [header("x-shopify-access-token", "t0ken"), header("content-type", "application/json")];
        assert_eq!(transport.calls()[0].headers, expected);
    }

    async fn check(got: Result<Answer, Failure>, expected: Result<Option<()>, Refusal>) {
        let shown = format!("{got:?}");
        let transport = Scripted::answering([got]);
        let order = shop(&transport).order("1", "id").await;
        assert_eq!(order.map(|order| order.map(drop)), expected, "{shown}");
    }

    fn error(extensions: &str) -> Bytes {
        format!(r#"{{"errors":[{{"message":"Throttled: Анна"{extensions}}}],"data":{{"order":{{"id":1}}}}}}"#).into()
    }

    fn dead(answered: &str) -> Result<Option<()>, Refusal> {
        let text = format!("the shop answered {answered}: the question was refused; check the API version, then retry");
        Err(Refusal::Dead { reason: ReasonCode::VALIDATION, text })
    }

    fn retry(after: Option<u64>, text: &str) -> Result<Option<()>, Refusal> {
        Err(Refusal::Retry { after: after.map(Duration::from_secs), text: text.to_owned() })
    }

    fn hold(text: &str) -> Result<Option<()>, Refusal> {
        Err(Refusal::Hold { text: text.to_owned() })
    }

    /// B39: a limit inside HTTP 200 is told by its code alone.
    #[tokio::test]
    async fn errors_inside_a_success() {
        let recorded = |file: &str| Ok(answer(200, sample(&format!("shopify-graphql/{file}"))));
        let throttled = "the shop answered THROTTLED: too many calls";
        check(recorded("throttled.json"), retry(Some(7), throttled)).await;
        let denied = "the shop answered ACCESS_DENIED: the token may not read orders; \
                      give it `read_orders`";
        check(recorded("errors-access-denied.json"), hold(denied)).await;
        check(recorded("errors-max-cost.json"), dead("MAX_COST_EXCEEDED")).await;
        let with = |extensions: &str| Ok(answer(200, error(extensions)));
        check(with(""), dead("an error without a code")).await;
        check(with(r#","extensions":{"code":"Анна"}"#), dead("?")).await;
        check(with(r#","extensions":{"code":"THROTTLED"}"#), retry(Some(1), throttled)).await;
        let failed = "the shop answered INTERNAL_SERVER_ERROR: the shop failed to answer";
        check(with(r#","extensions":{"code":"INTERNAL_SERVER_ERROR"}"#), retry(None, failed)).await;
        let closed = "the shop answered SHOP_INACTIVE: the shop is closed; have it opened";
        check(with(r#","extensions":{"code":"SHOP_INACTIVE"}"#), hold(closed)).await;
    }

    #[tokio::test]
    async fn the_other_layers() {
        check(Ok(answer(200, r#"{"data":{"order":null}}"#)), Ok(None)).await;
        check(Ok(answer(200, ORDER)), Ok(Some(()))).await;
        let unreadable = "HTTP 200 with an answer that cannot be read";
        for body in
            ["", "<html>", "{}", r#"{"data":{}}"#, r#"{"data":null}"#, r#"{"data":{"order":[]}}"#, r#"{"errors":"x"}"#]
        {
            check(Ok(answer(200, body)), retry(None, unreadable)).await;
        }
        let token = "HTTP 401: the token is not accepted; set a valid one";
        check(Ok(answer(401, sample("shopify-graphql/errors-unauthorized-401.json"))), hold(token)).await;
        let address = "HTTP 404: there is no such API at the address; check it";
        check(Ok(answer(404, r#"{"errors":"Not Found"}"#)), hold(address)).await;
        let mut limited = answer(429, "");
        limited.headers.push(("retry-after".to_owned(), "2.0".to_owned()));
        check(Ok(limited), retry(Some(2), "HTTP 429: too many calls")).await;
        let lost = Failure::Lost("timed out".to_owned());
        check(Err(lost), retry(None, "the answer was lost: timed out")).await;
    }

    #[test]
    fn a_pause_follows_the_cost() {
        let check = |requested: Value, available: f64, rate: f64, expected| {
            let extensions = json!({"cost": {
                "requestedQueryCost": requested,
                "throttleStatus": {"currentlyAvailable": available, "restoreRate": rate},
            }});
            assert_eq!(cost_pause(&extensions), Duration::from_secs(expected), "{extensions}");
        };
        check(json!(752), 63.0, 100.0, 7);
        check(json!(763), 63.0, 100.0, 7);
        check(json!(764), 63.0, 100.0, 8);
        check(json!(10), 63.0, 100.0, 1);
        check(json!(752), 63.0, 0.0, 1);
        check(json!("many"), 63.0, 100.0, 1);
    }
}
