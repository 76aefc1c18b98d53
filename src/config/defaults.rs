//! What holds when a key is absent: every default has its name here, and no other place.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::config::{HandMade, Language, Quota};

/// `language`: the users' own.
pub const LANGUAGE: Language = Language::Ru;
/// `workers`: a few waits for slow systems side by side, cheap on one CPU.
pub const WORKERS: usize = 4;
/// `address` in `[admin]`: loopback, on a port that Prometheus users know to be an exporter's.
pub const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// `max_body` of a Shopify source: an order with hundreds of lines is some hundred KiB.
pub const SHOPIFY_BODY_BYTES_MAX: usize = 1024 * 1024;
/// `max_body` of an amoCRM source: a bulk edit comes as one request with hundreds of items.
pub const AMOCRM_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// `answer_within` of a Shopify source: 70 % of its 5 s.
pub const SHOPIFY_ANSWER_WITHIN: Duration = Duration::from_millis(3500);
/// `answer_within` of an amoCRM source: 70 % of its 2 s.
pub const AMOCRM_ANSWER_WITHIN: Duration = Duration::from_millis(1400);
/// `quota` of a Shopify source, which proves itself: a shop that sells an order a
/// second for an hour, each with its eight events.
pub const SHOPIFY_QUOTA: Quota = Quota { events_per_hour: 30_000, bytes_per_day: 2 << 30, inflight: 1024 };
/// `quota` of an amoCRM source, whose address is its only proof: a bulk edit of
/// ten thousand deals within an hour.
pub const AMOCRM_QUOTA: Quota = Quota { events_per_hour: 10_000, bytes_per_day: 512 << 20, inflight: 256 };
/// `timeout` in a source's `api`.
pub const SHOP_API_TIMEOUT: Duration = Duration::from_secs(20);

/// `in_flight` of a target: enough to reach the rate at half a second a call.
pub const IN_FLIGHT_MAX: usize = 4;
/// `rate` of a target: amoCRM's own limit for one integration
/// (amoCRM API recommendations, "limits", read 2026-11).
pub const CALLS_PER_SECOND: u32 = 7;
/// `timeout` of a target: that of amoCRM's official PHP client.
pub const TARGET_TIMEOUT: Duration = Duration::from_secs(20);
/// `search_lag` of a target: how long a new deal may stay invisible to search.
pub const SEARCH_LAG: Duration = Duration::from_secs(60);
/// `doubt_tail` of a target: with time-out and search lag, 90 s.
pub const DOUBT_TAIL: Duration = Duration::from_secs(10);

/// `hand_made` of a deal task: tell a person, take nothing over.
pub const HAND_MADE: HandMade = HandMade::Flag;
/// `test_orders` of a deal task.
pub const TEST_ORDERS: bool = false;
/// `field_id_code` of a deal task.
pub const FIELD_ID_CODE: &str = "TAMBOUR_ID";
/// `field_version_code` of a deal task.
pub const FIELD_VERSION_CODE: &str = "TAMBOUR_VERSION";
/// `field_total_code` of a deal task.
pub const FIELD_TOTAL_CODE: &str = "TAMBOUR_TOTAL";
/// `version` of a note task.
pub const NOTE_VERSION: &str = "1";
/// `due_in` of a notice task.
pub const NOTICE_DUE_IN: Duration = Duration::from_hours(24);
/// A target's notice task is named so, and its target, where the file has none.
pub const NOTICE_PREFIX: &str = "notice-";
