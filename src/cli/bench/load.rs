//! The load: some senders at the same time, each waiting for its answer before the next delivery.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::cli::bench::bodies::Bodies;
use crate::cli::demo::folder::{SHOP, SHOP_SECRET};
use crate::clock::SharedClock;
use crate::domain::Monotonic;
use crate::sandbox::{Answered, Line, SendError, Sender, shopify_headers, sign};

/// Senders that share an address: half of what the door lets one have, since closed connections end a little later.
const SENDERS_PER_ADDRESS: usize = 32;

/// At most so many deliveries in one measurement, 16 bytes each in memory.
const DELIVERIES_MAX: usize = 2_000_000;

/// What a failed sender waits before it tries again, so that a closed port does not make it spin.
const AFTER_A_FAILURE: Duration = Duration::from_millis(10);

/// What is measured, and how.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) sender: Sender,
    pub(super) clock: SharedClock,
    pub(super) bodies: Arc<Bodies>,
    /// Numbers the deliveries of all measurements, so that none repeats another.
    pub(super) numbers: Arc<AtomicUsize>,
    /// Whether a sender keeps its connection; else each delivery pays for TCP and TLS.
    pub(super) keep_alive: bool,
    /// How many times faster than recorded; absent for as fast as possible.
    pub(super) speed: Option<f64>,
}

/// What the senders met.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Times of the accepted deliveries.
    pub(super) accepted: Vec<Duration>,
    /// Other answers, by status.
    pub(super) refused: BTreeMap<u16, u64>,
    /// Deliveries without an answer.
    pub(super) failed: u64,
    /// Bytes of the accepted bodies.
    pub(super) bytes: u64,
}

impl Met {
    fn add(&mut self, other: Self) {
        self.accepted.extend(other.accepted);
        other.refused.into_iter().for_each(|(status, count)| *self.refused.entry(status).or_default() += count);
        self.failed += other.failed;
        self.bytes += other.bytes;
    }
}

/// One measurement.
struct Run {
    plan: Plan,
    begun: Monotonic,
    until: Monotonic,
    /// Deliveries begun in this measurement.
    taken: AtomicUsize,
}

impl Plan {
    /// Sends for so long with so many connections; gives what was met and how long it took.
    pub(super) async fn measure(&self, connections: usize, within: Duration) -> (Met, Duration) {
        let begun = self.clock.monotonic();
        let run = Run { plan: self.clone(), begun, until: begun.plus(within), taken: AtomicUsize::new(0) };
        let run = Arc::new(run);
        let mut senders = JoinSet::new();
        for number in 0..connections {
            senders.spawn(Arc::clone(&run).send(address(number)));
        }
        let mut met = Met::default();
        while let Some(ended) = senders.join_next().await {
            match ended {
                Ok(of_one) => met.add(of_one),
                Err(error) => tracing::error!(%error, "a sender of the load panicked"),
            }
        }
        (met, self.clock.monotonic().since(begun))
    }
}

impl Run {
    async fn send(self: Arc<Self>, from: IpAddr) -> Met {
        let (plan, mut met, mut line) = (&self.plan, Met::default(), None);
        while let Some((taken, due)) = self.next() {
            if due.is_some_and(|due| due >= self.until) {
                break;
            }
            if let Some(due) = due {
                plan.clock.sleep_until(due).await;
            }
            let number = plan.numbers.fetch_add(1, Ordering::Relaxed);
            // Due times belong to the bodies of this measurement; made orders never repeat.
            let body = plan.bodies.body(if due.is_some() { taken } else { number });
            let (id, now) = (format!("bench-{number}"), plan.clock.now());
            let headers = shopify_headers("orders/create", SHOP, &id, &id, now, &sign(SHOP_SECRET, &body));
            let begun = plan.clock.monotonic();
            let bytes = u64::try_from(body.len()).unwrap_or_default();
            match post(plan, &mut line, from, &headers, body).await {
                Ok(answered) if answered.status == 200 => {
                    // A time that is kept counts from when it was due, whatever the sender was busy with.
                    met.accepted.push(plan.clock.monotonic().since(due.unwrap_or(begun)));
                    met.bytes += bytes;
                }
                Ok(answered) => *met.refused.entry(answered.status).or_default() += 1,
                Err(_) => {
                    line = None;
                    met.failed += 1;
                    plan.clock.sleep(AFTER_A_FAILURE).await;
                }
            }
        }
        met
    }

    /// The next delivery of this measurement and when it is due, if that is said; `None` when no more is to be sent.
    fn next(&self) -> Option<(usize, Option<Monotonic>)> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        if taken >= DELIVERIES_MAX || self.plan.clock.monotonic() >= self.until {
            return None;
        }
        let Some(speed) = self.plan.speed else { return Some((taken, None)) };
        let offset = self.plan.bodies.offset(taken)?;
        let after = Duration::try_from_secs_f64(offset.as_secs_f64() / speed).unwrap_or(Duration::MAX);
        Some((taken, Some(self.begun.plus(after))))
    }
}

async fn post(
    plan: &Plan,
    line: &mut Option<Line>,
    from: IpAddr,
    headers: &[(String, String)],
    body: bytes::Bytes,
) -> Result<Answered, SendError> {
    let mut open = match line.take() {
        Some(open) => open,
        None => plan.sender.line(Some(from)).await?,
    };
    let answered = open.post("/in/shop", headers, body).await?;
    if plan.keep_alive {
        *line = Some(open);
    }
    Ok(answered)
}

/// The loopback address of a sender, from 127.0.1.1 on.
fn address(number: usize) -> IpAddr {
    let last = u8::try_from(1 + number / SENDERS_PER_ADDRESS).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 0, 1, last).into()
}
