//! The newest stored order of a route, for templates to be tried on.

use crate::admin::view::Sample;
use crate::admin::{Context, Error};
use crate::rules::Order;
use crate::store::{Broken, EventView, View};

/// How many of the newest events of a route are looked at for one that holds a whole order.
const LOOKS_MAX: usize = 50;

/// Finds the newest event of these kinds whose body is a whole order.
pub(super) async fn newest_order(
    context: &Context,
    source: String,
    events: Vec<String>,
) -> Result<Option<Sample>, Error> {
    context.read(move |file| find(file, &source, &events)).await
}

fn find(file: &View, source: &str, kinds: &[String]) -> Result<Option<Sample>, Broken> {
    let of_route = |event: &EventView| event.source == source && kinds.contains(&event.topic);
    for event in file.events(None, LOOKS_MAX, &of_route)? {
        let body = file.body(event.id)?;
        let json = body.and_then(|body| serde_json::from_slice(&body).ok());
        if let Some(body) = json.filter(|json| Order::from_webhook(json).is_ok()) {
            return Ok(Some(Sample { event: event.id.to_string(), body }));
        }
    }
    Ok(None)
}
