//! `send`: a signed sample to our own door, the way that the sender's own deliveries come.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::cli::check::sample;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::{Setting, print};
use crate::client::{Call, Failure, HttpTransport, Method, Transport as _};
use crate::config::{LabelledSecret, Source, SourceKind};
use crate::domain::{NameKind, Timestamp};
use crate::sandbox::{shopify_headers, sign};
use crate::telemetry::new_trace_id;

/// Longer than any source's own deadline.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Send a signed sample to the door, through DNS and TLS
///
/// The built-in samples do no harm: a test order makes no deal, and no route wants the stage of the sample deal.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The source whose sender is played
    source: String,
    /// A file with the body; without it a built-in sample
    #[arg(value_name = "FILE")]
    sample: Option<PathBuf>,
    /// The topic of a Shopify delivery
    #[arg(long, default_value = "orders/create")]
    topic: String,
    /// Where the door is for its senders, without a path; without it the listener's own address
    #[arg(long)]
    url: Option<String>,
    /// Take any certificate
    #[arg(long)]
    insecure: bool,
}

const HELP: &str = "\
Examples:
  tambour send shop --url https://hooks.example.com
  tambour send shop order.json --topic orders/paid --insecure";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let config = setting.load()?;
    let source = config.sources.get(config.names.in_keys(NameKind::Source, &args.source)).ok_or_else(|| {
        let known: Vec<&str> = config.sources.keys().map(String::as_str).collect();
        Error::of(Exit::Usage, format!("there is no source `{}`; there are: {}", args.source, known.join(", ")))
    })?;
    let body = args.sample.as_deref().map(read_body).transpose()?;
    let is_own = args.url.is_none();
    let base = args.url.unwrap_or_else(|| own_url(config.listener.address));
    let subject = subject(&source.kind, body.as_deref());
    let call = delivery(source, &base, &args.topic, body, setting.clock.now())?;
    let transport = if args.insecure { HttpTransport::without_certificate_checks() } else { HttpTransport::new() }?;
    // The address token is part of the URL, so the URL is not shown.
    print::say(&format!("sending {} bytes to source {} at {base}", call.body.len(), source.name));
    if is_own {
        print::say("(the listener's own address; --url https://<host> takes the way of the senders)");
    }
    let answer = transport.call(call).await.map_err(unreachable)?;
    print::out(&format!("{} {}\n", answer.status, meaning(answer.status)))?;
    if answer.status == 200 {
        match subject {
            Some(name) => print::say(&setting.hint(&format!("what became of {name}: tambour trace '{name}'"))),
            None => print::say(&setting.hint("what became of it: tambour events --limit 1")),
        }
        return Ok(Exit::Ok);
    }
    if answer.status == 503 {
        print::say("hint: how it stands: tambour status, tambour windows");
    }
    Ok(Exit::Refused)
}

/// What `trace` knows the sent thing by.
fn subject(kind: &SourceKind, body: Option<&[u8]>) -> Option<String> {
    match (kind, body) {
        (SourceKind::Shopify { .. }, None) => Some(sample::ORDER_NAME.to_owned()),
        (SourceKind::Shopify { .. }, Some(body)) => {
            let order: serde_json::Value = serde_json::from_slice(body).ok()?;
            order.get("name")?.as_str().filter(|name| !name.contains('\'')).map(str::to_owned)
        }
        (SourceKind::Amocrm { .. }, None) => Some(sample::LEAD_ID.to_owned()),
        (SourceKind::Amocrm { .. }, Some(_)) => None,
    }
}

fn read_body(path: &Path) -> Result<Bytes, Error> {
    fs::read(path).map(Bytes::from).map_err(|error| {
        let read = Error::new(Exit::Usage, &error);
        read.hint(format!("the sample is a file: ls -l {}", path.display()))
    })
}

/// The listener's address as one can call it from here.
fn own_url(address: SocketAddr) -> String {
    let ip = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

fn delivery(source: &Source, base: &str, topic: &str, body: Option<Bytes>, now: Timestamp) -> Result<Call, Error> {
    let token = source.address_token.as_ref().map(|token| format!("/{}", token.expose())).unwrap_or_default();
    let url = format!("{}/in/{}{token}", base.trim_end_matches('/'), source.name);
    let (headers, body) = match &source.kind {
        SourceKind::Shopify { shops, secrets, .. } => {
            let body = body.unwrap_or_else(|| sample::order(now).to_json().to_string().into());
            let shop = shops.first().map_or("", String::as_str);
            (signed(secrets, topic, shop, &body, now)?, body)
        }
        SourceKind::Amocrm { account_id } => {
            let form = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
            (vec![form], body.unwrap_or_else(|| sample::moved_lead(*account_id, now).into()))
        }
    };
    Ok(Call { method: Method::Post, url, headers, body, timeout: ANSWER_WITHIN })
}

/// Headers with a delivery id of their own, so that no sample is taken for a repeat.
fn signed(
    secrets: &[LabelledSecret],
    topic: &str,
    shop: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<Vec<(String, String)>, Error> {
    let newest = secrets.first().map_or("", |labelled| labelled.secret.expose());
    let id = new_trace_id().map_err(|error| Error::new(Exit::Internal, &error))?.to_string();
    let headers = shopify_headers(topic, shop, &id, &id, now, &sign(newest, body));
    Ok(headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
}

fn unreachable(failure: Failure) -> Error {
    let hint = match failure {
        Failure::Certificate(_) => "send to the certificate's name with --url, or take any certificate with --insecure",
        Failure::NotSent(_) => "see that it runs and that the name leads here: tambour status, getent hosts <name>",
        Failure::Lost(_) => "see what became of it: tambour events --limit 1",
    };
    Error::new(Exit::Unreachable, &failure).hint(hint)
}

/// What the door's answer says to its sender.
const fn meaning(status: u16) -> &'static str {
    match status {
        200 => "the delivery is on disk",
        400 => "a header is missing, or the body was cut: usually a proxy in between",
        401 => {
            "the signature is wrong: serve has another secret than this file (restart it), or a proxy rewrote the body"
        }
        404 => "the door knows no such source, or the address token is another one",
        405 => "the address is taken by another program, or a proxy changed the method",
        408 => "the body came too slowly",
        413 => "the body is over `max_body` of the source",
        415 => "a proxy in between compressed the body",
        503 => "not accepted in time, or over the quota; the sender comes again: see tambour status",
        301 | 302 | 307 | 308 => "a redirect: senders do not follow it; give them the address that it leads to",
        _ => "no answer of a tambour: another program listens there",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secret, defaults};
    use crate::source::{RawDelivery, read, verify};

    const NOW: Timestamp = Timestamp::from_secs(1_796_036_400);

    fn source(name: &str, kind: SourceKind, token: Option<&str>) -> Source {
        Source {
            name: name.to_owned(),
            kind,
            address_token: token.map(|token| Secret::new(token.to_owned())),
            body_bytes_max: 1 << 20,
            answer_within: Duration::from_secs(1),
            quota: defaults::SHOPIFY_QUOTA,
        }
    }

    fn shop() -> Source {
        let secret =
            |label: &str| LabelledSecret { label: label.to_owned(), secret: Secret::new(format!("s-{label}")) };
        let shops = vec!["tambour-test.myshopify.com".to_owned()];
        source("shop", SourceKind::Shopify { shops, secrets: vec![secret("new"), secret("old")], api: None }, None)
    }

    /// What is sent must pass the door's own check, under the newest secret, and be of our account.
    #[test]
    fn a_sample_is_what_its_sender_would_send() {
        let crm = source("crm", SourceKind::Amocrm { account_id: 31_000_001 }, Some("address-token-0001"));
        for (source, url, kind, label) in [
            (shop(), "https://hooks.example.com/in/shop", "orders/create", Some("new")),
            (crm, "https://hooks.example.com/in/crm/address-token-0001", "leads.status", None),
        ] {
            let call = delivery(&source, "https://hooks.example.com/", "orders/create", None, NOW).unwrap();
            assert_eq!(call.url, url);
            let headers = call.headers.into_iter().map(|(name, value)| (name, Bytes::from(value))).collect();
            let verified = verify(&source, RawDelivery { headers, body: call.body, received_at: NOW }).unwrap();
            assert_eq!(verified.secret_label(), label);
            let reading = read(&source, &verified);
            assert_eq!((reading.foreign, reading.topic.as_str()), (false, kind));
            assert!(reading.identity.is_some());
        }
    }

    #[test]
    fn the_listeners_own_address_can_be_called() {
        let check = |address: &str, expected: &str| assert_eq!(own_url(address.parse().unwrap()), expected);
        check("0.0.0.0:443", "https://127.0.0.1:443");
        check("[::]:8443", "https://127.0.0.1:8443");
        check("192.0.2.7:443", "https://192.0.2.7:443");
    }
}
