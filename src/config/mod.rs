//! The configuration: file, then raw, then checked.
//!
//! [`load`] reads one TOML file and gives a [`Config`] in which nothing is
//! optional that must exist, or all [`Problems`] at once, each with its line.
//! Unknown keys are problems. Relative paths begin at the file's folder, and
//! secrets stand outside the file; [`load_without_secrets`] leaves them there. `packaging/tambour.toml` is a whole file for
//! one shop.
//!
//! The keys, with what holds when one is absent:
//!
//! | table | key | absent | meaning |
//! |---|---|---|---|
//! | | `language` | `"ru"` | `"ru"` or `"en"`: texts for managers and customers |
//! | | `data` | | folder of the data file, made if absent |
//! | | `workers` | 4 | tasks that run at the same time, 1 to 64 |
//! | | `pauses` | 1, 5, 15, 60 min | list of pauses between attempts; the last one repeats |
//! | | `retire` | none | list of names that are gone for good: `"source old-shop"`, `"target crm"`, `"task deal"` |
//! | `listener` | `address` | | IP address and port of the public door |
//! | `listener` | `trusted_proxies` | we end TLS | list of addresses and networks of proxies that end TLS for us |
//! | `listener` | `certificate` | | without proxies: PEM file of the chain, leaf first |
//! | `listener` | `key` | | without proxies: PEM file of the private key |
//! | `admin` | `address` | `"127.0.0.1:9464"` | loopback address of metrics and health |
//! | `sources.<name>` | `kind` | | `"shopify"` or `"amocrm"` |
//! | `sources.<name>` | `formerly` | | the first name that it had |
//! | `sources.<name>` | `max_body` | 1 MiB; amoCRM 8 MiB | longer bodies are refused: bytes, `"64KiB"`, `"1MiB"` |
//! | `sources.<name>` | `answer_within` | 3.5 s; amoCRM 1.4 s | our deadline for the answer |
//! | `sources.<name>` | `quota` | as below | what it may have of us; more is refused with 503 |
//! | `sources.<name>` | `shops` | | Shopify: list of `*.myshopify.com` domains |
//! | `sources.<name>` | `secrets` | | Shopify: list of secrets, each with a `label`, newest first |
//! | `sources.<name>` | `api` | no fresh reads | Shopify: access to the one shop |
//! | `sources.<name>` | `account_id` | | amoCRM: the numeric account id |
//! | `sources.<name>` | `address_token` | | amoCRM: secret part of the address, 16 characters or more |
//! | `sources.<name>.quota` | `events_per_hour` | 30000; amoCRM 10000 | new events in any hour |
//! | `sources.<name>.quota` | `bytes_per_day` | 2 GiB; amoCRM 512 MiB | bytes of their bodies in any day |
//! | `sources.<name>.quota` | `inflight` | 1024; amoCRM 256 | verified deliveries worked on at the same time, 1 to 4096 |
//! | `sources.<name>.secrets` | `label` | | what metrics show instead of the secret |
//! | `sources.<name>.api` | `version` | | API version: `"2026-10"` |
//! | `sources.<name>.api` | `token` | | secret: the access token |
//! | `sources.<name>.api` | `url` | `https://<shop>` | base URL |
//! | `sources.<name>.api` | `timeout` | 20 s | longest wait for one call |
//! | `targets.<name>` | `kind` | | `"amocrm"` |
//! | `targets.<name>` | `formerly` | | the first name that it had |
//! | `targets.<name>` | `url` | | base URL: `"https://<subdomain>.amocrm.ru"` |
//! | `targets.<name>` | `account_id` | | the numeric account id |
//! | `targets.<name>` | `token` | | secret: a long-lived token |
//! | `targets.<name>` | `responsible_user_id` | | who gets notices that nobody else does |
//! | `targets.<name>` | `currency` | | the account's currency: `"RUB"` |
//! | `targets.<name>` | `in_flight` | 4 | calls at the same time, 1 to 64 |
//! | `targets.<name>` | `rate` | 7 | calls a second, 1 to 200 |
//! | `targets.<name>` | `timeout` | 20 s | longest wait for one call |
//! | `targets.<name>` | `search_lag` | 60 s | how long a new object may stay invisible to search |
//! | `targets.<name>` | `doubt_tail` | 10 s | added to both before a doubt is settled |
//! | `tasks.<name>` | `kind` | | `"deal"`, `"note"` or `"notice"` |
//! | `tasks.<name>` | `formerly` | | the first name that it had |
//! | `tasks.<name>` | `target` | | name of a target |
//! | `tasks.<name>` | `pipeline_id` | | deal: pipeline of new deals |
//! | `tasks.<name>` | `status_id` | | deal: stage of new deals |
//! | `tasks.<name>` | `responsible_user_id` | the target's | deal: responsible user of new deals |
//! | `tasks.<name>` | `name` | | deal: template of the deal's name, from `order` |
//! | `tasks.<name>` | `fields` | none | deal: list of CRM fields that the shop owns |
//! | `tasks.<name>` | `moves` | none | deal: list of stage moves that the shop may make |
//! | `tasks.<name>` | `hand_made` | `"flag"` | deal: `"flag"` or `"link"` a deal that a person made by hand |
//! | `tasks.<name>` | `test_orders` | false | deal: whether test orders make deals too |
//! | `tasks.<name>` | `field_id_code` | `"TAMBOUR_ID"` | deal: code of the field with `<source>-<order id>` |
//! | `tasks.<name>` | `field_version_code` | `"TAMBOUR_VERSION"` | deal: code of the field with the applied version |
//! | `tasks.<name>` | `field_total_code` | `"TAMBOUR_TOTAL"` | deal: code of the field with the exact sum |
//! | `tasks.<name>` | `text` | | note: template of the note, from `lead` |
//! | `tasks.<name>` | `on_return` | | note: `"keep"`, when a deal comes back to the stage |
//! | `tasks.<name>` | `valid_in` | any | note: list of stages where the deal must still be |
//! | `tasks.<name>` | `version` | `"1"` | note: part of its key; another version makes another note |
//! | `tasks.<name>` | `due_in` | 1 day | notice: how long the person has |
//! | `tasks.<name>.fields` | `field_id` | | id of the CRM field |
//! | `tasks.<name>.fields` | `value` | | template of its value, from `order` |
//! | `tasks.<name>.moves` | `when` | | `"paid"`, `"cancelled"`, `"fulfilled"` or `"refunded"` |
//! | `tasks.<name>.moves` | `from` | any but won and lost | list of stages |
//! | `tasks.<name>.moves` | `to` | | stage |
//! | `routes` | `source` | | name of a source |
//! | `routes` | `events` | | list of event kinds: `"orders/create"`, `"leads.status"` |
//! | `routes` | `task` | | name of a deal or note task |
//! | `routes` | `where` | always | fields of the item, each with a value or a list of values |
//! | `routes` | `since` | first live | acts only on what happened after it: `"2026-11-30T00:00:00Z"` |
//! | a secret | `credential` | | name of a file in `$CREDENTIALS_DIRECTORY` |
//! | a secret | `file` | | path of a file that only its owner may open |
//! | a secret | `env` | | name of an environment variable |
//!
//! Names of sources, targets and tasks are part of keys, in the data file and in
//! the CRM. What has another name now says `formerly = "..."` with its first
//! one: keys, lists and logs go on with that ([`Names`]), and a source keeps its
//! old address beside the new one.
//!
//! Durations are written `"500ms"`, `"1.5s"`, `"15m"`, `"1h"`, `"30d"`. A target
//! without a notice task gets one by the name `notice-<target>`.

mod check;
pub mod defaults;
mod model;
mod names;
mod network;
mod problem;
mod raw;
mod secret;
#[cfg(test)]
mod tests;

pub use check::{load, load_without_secrets};
pub use model::{
    AmocrmTarget, Condition, Config, DealTask, FieldTemplate, Front, HandMade, Language, Listener, Move, NoteTask,
    NoticeTask, Quota, Route, ShopApi, Source, SourceKind, Target, TargetKind, Task, TaskKind,
};
pub use names::{LostName, LostNames, Names};
pub use network::Network;
pub use problem::{Problem, Problems};
pub use secret::{LabelledSecret, Secret};
