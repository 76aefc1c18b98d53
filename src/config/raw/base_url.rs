//! The address of an API: scheme, host and port, and nothing after them.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Checks a base URL and takes a trailing slash off; the error goes on after the key's name.
///
/// A path is refused, because the client adds its own: usually an address that
/// was copied from a browser. Plain HTTP would send the token readable, so it
/// is for loopback only.
pub(super) fn parse(text: &str) -> Result<String, &'static str> {
    const SHAPE: &str = "must look like https://host or https://host:port, without path, query or user";
    let text = text.strip_suffix('/').unwrap_or(text);
    let (scheme, authority) = text.split_once("://").ok_or(SHAPE)?;
    let host = host(authority).ok_or(SHAPE)?;
    match scheme {
        "https" => Ok(text.to_owned()),
        "http" if is_loopback(host) => Ok(text.to_owned()),
        "http" => Err("must begin with https://, since plain http would show the token to everybody on the way"),
        _ => Err(SHAPE),
    }
}

/// The host of `host`, `host:port` or `[v6]:port`.
fn host(authority: &str) -> Option<&str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return is_port(after).then_some(host);
    }
    let (host, port) = authority.split_at_checked(authority.find(':').unwrap_or(authority.len()))?;
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (host.split('.').all(is_label) && is_port(port)).then_some(host)
}

/// Nothing, or a colon and a port.
fn is_port(text: &str) -> bool {
    let number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    text.is_empty() || text.strip_prefix(':').is_some_and(number)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_have_a_host_and_nothing_after_it() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(parse(text).ok().as_deref(), expected, "{text}");
        check("https://tambourtest.amocrm.ru", Some("https://tambourtest.amocrm.ru"));
        check("https://tambourtest.amocrm.ru/", Some("https://tambourtest.amocrm.ru"));
        check("https://crm.example:8443", Some("https://crm.example:8443"));
        check("https://[2001:db8::1]:8443", Some("https://[2001:db8::1]:8443"));
        check("http://127.0.0.1:4010", Some("http://127.0.0.1:4010"));
        check("http://localhost:4010/", Some("http://localhost:4010"));
        check("http://[::1]:4010", Some("http://[::1]:4010"));
        for bad in [
            "",
            "https://",
            "https:///",
            "tambourtest.amocrm.ru",
            "ftp://tambourtest.amocrm.ru",
            "http://tambourtest.amocrm.ru",
            "http://127.0.0.1.amocrm.ru",
            "http://localhost.amocrm.ru",
            "https://tambourtest.amocrm.ru/leads",
            "https://tambourtest.amocrm.ru//",
            "https://tambourtest.amocrm.ru?a",
            "https://user:word@tambourtest.amocrm.ru",
            "https://tambourtest..ru",
            "https://тест.рф",
            "https://crm.example:port",
            "https://crm.example:",
            "https://crm.example:65536",
            "https://[::1",
            "https://crm example",
        ] {
            check(bad, None);
        }
    }
}
