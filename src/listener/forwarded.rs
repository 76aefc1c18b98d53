//! The client behind trusted proxies: `X-Forwarded-For` or `Forwarded` (RFC 7239).
//!
//! Each proxy adds the address that it was called from at the end, and passes
//! on what was there before, which the client may have made up. So the lists
//! are read from the end, and a word counts only if a trusted proxy said it.

use std::iter::successors;
use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::FORWARDED;

use crate::config::Network;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Whose request a trusted `proxy` passes on; port 0 where the proxy tells none.
///
/// The proxy itself where it tells nothing that can be read, and where both
/// headers stand and differ: one of them then comes from the client.
pub(super) fn client(proxy: SocketAddr, headers: &HeaderMap, trusted: &[Network]) -> SocketAddr {
    let walk = |name: &str, read: fn(&str) -> Option<SocketAddr>| {
        // A proxy may add to the last line or add a line; together they are one list.
        let lines = headers.get_all(name).iter().rev();
        let mut hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(',')).map(read);
        let is_proxy = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
        successors(Some(proxy), |hop| is_proxy(hop.ip()).then(|| hops.next().flatten()).flatten()).last()
    };
    let x_forwarded_for = headers.contains_key(X_FORWARDED_FOR).then(|| walk(X_FORWARDED_FOR, address)).flatten();
    let forwarded = headers.contains_key(FORWARDED).then(|| walk(FORWARDED.as_str(), forwarded_for)).flatten();
    match (x_forwarded_for, forwarded) {
        (Some(one), Some(other)) if one.ip() != other.ip() => proxy,
        (one, other) => one.or(other).unwrap_or(proxy),
    }
}

/// The address of one `for=` among the pairs of an element.
///
/// Commas in quotes are not looked for: no address has one, and a client must
/// not hide what the proxy adds behind a quote that it opens.
fn forwarded_for(element: &str) -> Option<SocketAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for")).map(|(_, node)| node.trim());
    let node = nodes.next()?;
    let node = node.strip_prefix('"').map_or(Some(node), |node| node.strip_suffix('"'))?;
    nodes.next().is_none().then(|| address(node)).flatten()
}

/// An address as proxies write it, with or without brackets and port.
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address: SocketAddr = bare.parse().map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse()).ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1:5000";

    /// What stands behind the proxy of a request with these header lines.
    #[track_caller]
    fn check(lines: &[(&'static str, &str)], expected: &str) {
        let trusted = [("10.0.0.0", 8), ("fd00::", 8)].map(|(first, bits)| Network::of(first.parse().unwrap(), bits));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, hyper::header::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let client = client(PROXY.parse().unwrap(), &headers, &trusted);
        assert_eq!(client.to_string(), expected, "{lines:?}");
    }

    const XFF: &str = "x-forwarded-for";
    const FWD: &str = "forwarded";

    #[test]
    fn the_last_word_that_a_proxy_cannot_vouch_for_is_the_client() {
        check(&[(XFF, "203.0.113.9")], "203.0.113.9:0");
        check(&[(XFF, "203.0.113.9, 10.0.0.3")], "203.0.113.9:0");
        check(&[(XFF, "203.0.113.9,10.0.0.3 ,\t10.0.0.2")], "203.0.113.9:0");
        check(&[(XFF, "10.0.0.7, 10.0.0.2")], "10.0.0.7:0");
        check(&[(XFF, "203.0.113.9"), (XFF, "10.0.0.2")], "203.0.113.9:0");
        check(&[(FWD, "for=203.0.113.9;proto=https;by=10.0.0.1")], "203.0.113.9:0");
        check(&[(FWD, "for=203.0.113.9, For=10.0.0.2"), (FWD, "proto=http; for=10.0.0.3")], "203.0.113.9:0");
    }

    #[test]
    fn what_the_client_made_up_is_not_believed() {
        check(&[(XFF, "192.0.2.1, 203.0.113.9")], "203.0.113.9:0");
        check(&[(XFF, "10.0.0.7, 203.0.113.9")], "203.0.113.9:0");
        check(&[(XFF, "192.0.2.1"), (XFF, "203.0.113.9, 10.0.0.2")], "203.0.113.9:0");
        check(&[(FWD, "for=\"192.0.2.1, for=203.0.113.9")], "203.0.113.9:0");
        check(&[(FWD, "for=192.0.2.1;for=203.0.113.9")], PROXY);
        check(&[(XFF, "203.0.113.9"), (FWD, "for=192.0.2.1")], PROXY);
        check(&[(XFF, "192.0.2.1"), (FWD, "for=203.0.113.9")], PROXY);
        check(&[(XFF, "203.0.113.9"), (FWD, "for=203.0.113.9")], "203.0.113.9:0");
    }

    #[test]
    fn addresses_come_with_brackets_and_ports() {
        check(&[(XFF, "203.0.113.9:4711")], "203.0.113.9:4711");
        check(&[(XFF, "2001:db8::1")], "[2001:db8::1]:0");
        check(&[(XFF, "[2001:db8::1]")], "[2001:db8::1]:0");
        check(&[(XFF, "[2001:db8::1]:4711, fd00::2, [fd00::3]:80")], "[2001:db8::1]:4711");
        check(&[(XFF, "::ffff:203.0.113.9")], "203.0.113.9:0");
        check(&[(XFF, "203.0.113.9, ::ffff:10.0.0.2")], "203.0.113.9:0");
        check(&[(FWD, "for=\"[2001:db8::1]:4711\"")], "[2001:db8::1]:4711");
        check(&[(FWD, "for=\"203.0.113.9:80\", for=\"[fd00::2]\"")], "203.0.113.9:80");
    }

    #[test]
    fn behind_junk_stands_the_last_known_proxy() {
        check(&[], PROXY);
        for junk in ["", ",", "unknown", "_hidden", "localhost", "203.0.113", "203.0.113.9:", "203.0.113.9:70000"] {
            check(&[(XFF, junk)], PROXY);
        }
        for junk in ["fe80::1%eth0", "[2001:db8::1", "[203.0.113.9]x", "203.0.113.9;", "203.0.113.9 10.0.0.2", "é"] {
            check(&[(XFF, junk)], PROXY);
        }
        check(&[(XFF, "203.0.113.9, unknown, 10.0.0.2")], "10.0.0.2:0");
        check(&[(XFF, "203.0.113.9, , 10.0.0.2")], "10.0.0.2:0");
        for junk in
            ["203.0.113.9", "for=unknown", "for=", "for=\"203.0.113.9", "by=203.0.113.9", "for=_a;by=203.0.113.9"]
        {
            check(&[(FWD, junk)], PROXY);
        }
    }
}
