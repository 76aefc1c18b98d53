//! The order of a deal task: read fresh from the shop, else from the newest stored body.

use std::time::Duration;

use crate::client::Shop;
use crate::domain::{ReasonCode, Refusal};
use crate::effect::Stop;
use crate::rules::{DealRefusal, ORDER_FIELDS, Order};
use crate::source::parse_json;
use crate::store::{EventView, View, entity_key};
use crate::worker::attempt::Attempt;
use crate::worker::deal::refused;

/// The word for a deleted order (Shopify documentation, "webhook topics", read 2026-11).
const DELETED: &str = "orders/delete";

/// A shop's replica that still does not show an order after so long never will.
const REPLICA_LAG_MAX: Duration = Duration::from_hours(1);

/// How long a shop that nobody may read is left alone.
const SHUT_PAUSE: Duration = Duration::from_mins(15);

/// The name of the source, and the order as the shop shows it now, else the newest whole body that was stored.
pub(super) async fn read(attempt: &Attempt<'_>) -> Result<(String, Order), Stop> {
    let unreadable = |text: String| Stop::Dead { reason: ReasonCode::UNREADABLE, text };
    let view = attempt.context.store.view()?;
    let event = attempt.leased.last_event().map(|id| view.event(id)).transpose()?.flatten();
    let event = event.ok_or_else(|| unreadable("the event of the task is not stored any more".to_owned()))?;
    let order = match attempt.context.shops.get(&event.source) {
        Some(shop) => fresh(attempt, shop, &event).await?,
        None => stored(attempt, &view, &event)?,
    };
    Ok((event.source, order))
}

async fn fresh(attempt: &Attempt<'_>, shop: &Shop, event: &EventView) -> Result<Order, Stop> {
    let node = shop.order(&attempt.leased.seed().entity, ORDER_FIELDS).await;
    let Some(node) = node.map_err(|refusal| shop_refusal(refusal, &event.source))? else {
        return Err(absent(attempt, event)?);
    };
    let order = Order::from_graphql(&node)
        .map_err(|error| refused(&DealRefusal::Order(error), attempt.context.config.language))?;
    if attempt.leased.newest_source_time().is_some_and(|told| order.updated_at < told) {
        let text = "the shop shows the order as it was before the event; it is read again".to_owned();
        return Err(Stop::Retry { after: None, text });
    }
    Ok(order)
}

fn stored(attempt: &Attempt<'_>, view: &View, event: &EventView) -> Result<Order, Stop> {
    let unreadable = |text: String| Stop::Dead { reason: ReasonCode::UNREADABLE, text };
    let entity = entity_key(&event.source, &event.account, "order", &attempt.leased.seed().entity);
    let newest = view.newest_whole(&entity)?.map(|id| view.body(id)).transpose()?.flatten();
    let body = newest.ok_or_else(|| {
        unreadable(format!("no whole order is stored; set `api` of source `{}`, then retry", event.source))
    })?;
    let json = parse_json(&body).map_err(|why| unreadable(format!("the stored order is {why}")))?;
    Order::from_webhook(&json).map_err(|error| refused(&DealRefusal::Order(error), attempt.context.config.language))
}

/// The shop has no such order: it was deleted, or a replica does not show it yet.
fn absent(attempt: &Attempt<'_>, event: &EventView) -> Result<Stop, Stop> {
    let id = &attempt.leased.seed().entity;
    let view = attempt.context.store.view()?;
    // Routes need not name the topic for it to be stored.
    let of_order = view.events_of_entity(&entity_key(&event.source, &event.account, "order", id))?;
    let newest = of_order.last().map(|id| view.event(*id)).transpose()?.flatten();
    let reason = ReasonCode::ENTITY_GONE;
    if newest.is_some_and(|newest| newest.topic == DELETED) {
        return Ok(Stop::Superseded { reason, text: format!("order {id} was deleted in the shop") });
    }
    if attempt.context.clock.now().since(event.received_at) < REPLICA_LAG_MAX {
        let text = format!("the shop does not show order {id} yet; it is read again");
        return Ok(Stop::Retry { after: None, text });
    }
    let text = format!(
        "the shop does not show order {id}, and told of no deletion; if it exists there, check that the token may \
         read it (orders older than 60 days need `read_all_orders`), then retry"
    );
    Ok(Stop::Dead { reason, text })
}

/// A shop whose API is shut does not shut the CRM: its tasks come again later, without a count.
fn shop_refusal(refusal: Refusal, source: &str) -> Stop {
    let Refusal::Hold { text } = refusal else { return refusal.into() };
    tracing::error!(source, text, "the shop's API is shut; put the shop's token right");
    let text = format!("the shop's API: {text}; put the shop's token right, the tasks go on by themselves");
    Stop::Wait { pause: SHUT_PAUSE, text }
}
