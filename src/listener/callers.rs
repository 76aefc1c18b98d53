//! Who calls, and how much each caller may have open at the same time.
//!
//! A connection counts for the address that it comes from. A trusted proxy's
//! connections carry everybody's requests, so behind one each request counts
//! for its client instead, from its header to its answer.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;

use crate::config::Network;
use crate::listener::forwarded::client;
use crate::telemetry::Metrics;

/// The addresses of one caller: an IPv4 address, or the IPv6 /64 that one site has (RFC 6177).
const SITE_BITS: u8 = 64;

/// Counts what each caller has open; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Callers {
    trusted: Arc<[Network]>,
    open_max: usize,
    open: Arc<Open>,
    metrics: Arc<Metrics>,
}

/// Things open by caller; an absent one has none.
type Open = Mutex<HashMap<Network, usize>>;

/// One connection or request of a caller; ends its count when dropped.
#[derive(Debug)]
pub(super) struct Place(Option<(Network, Arc<Open>)>);

impl Callers {
    pub(super) fn new(trusted: Vec<Network>, open_max: usize, metrics: Arc<Metrics>) -> Self {
        Self { trusted: trusted.into(), open_max, open: Arc::default(), metrics }
    }

    /// A place for a connection; `None` when its address has too many.
    pub(super) fn connection(&self, peer: IpAddr) -> Option<Place> {
        if self.is_trusted(peer) { Some(Place(None)) } else { self.enter(peer) }
    }

    /// Whose request it is, with a place for it; `None` when its address has too many.
    ///
    /// Without a proxy the connection has the place already.
    pub(super) fn request(&self, peer: SocketAddr, headers: &HeaderMap) -> Option<(SocketAddr, Place)> {
        if !self.is_trusted(peer.ip()) {
            return Some((peer, Place(None)));
        }
        let client = client(peer, headers, &self.trusted);
        Some((client, self.enter(client.ip())?))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    fn enter(&self, address: IpAddr) -> Option<Place> {
        let caller = Network::of(address, SITE_BITS);
        let mut open = lock(&self.open);
        let count = open.entry(caller).or_default();
        if *count >= self.open_max {
            self.metrics.caller_refused();
            return None;
        }
        *count += 1;
        Some(Place(Some((caller, Arc::clone(&self.open)))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((caller, open)) = &self.0 else { return };
        let mut open = lock(open);
        if let Some(count) = open.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(caller);
            }
        }
    }
}

/// No panic can leave a count half changed.
fn lock(open: &Open) -> MutexGuard<'_, HashMap<Network, usize>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers(trusted: &[(&str, u8)], open_max: usize) -> Callers {
        let trusted = trusted.iter().map(|(address, prefix)| Network::of(address.parse().unwrap(), *prefix)).collect();
        Callers::new(trusted, open_max, Arc::default())
    }

    #[test]
    fn one_site_is_one_caller() {
        let check = |one: &str, other: &str, is_same: bool| {
            let callers = callers(&[], 1);
            let _first = callers.connection(one.parse().unwrap()).unwrap();
            let second = callers.connection(other.parse().unwrap());
            assert_eq!(second.is_none(), is_same, "{one} and {other}");
        };
        check("203.0.113.9", "203.0.113.9", true);
        check("203.0.113.9", "203.0.113.10", false);
        check("203.0.113.9", "::ffff:203.0.113.9", true);
        check("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true);
        check("2001:db8:1:2::1", "2001:db8:1:3::1", false);
        check("2001:db8:1:2::1", "203.0.113.9", false);
        check("::1", "127.0.0.1", false);
    }

    #[test]
    fn a_place_is_free_again_once_it_is_left() {
        let callers = callers(&[], 2);
        let address = "203.0.113.9".parse().unwrap();
        let (first, second) = (callers.connection(address).unwrap(), callers.connection(address).unwrap());
        assert!(callers.connection(address).is_none());
        drop(first);
        let third = callers.connection(address).unwrap();
        assert!(callers.connection(address).is_none());
        drop((second, third));
        assert!(lock(&callers.open).is_empty(), "who has left is forgotten");
        assert!(callers.metrics.render().contains("tambour_callers_refused_total 2"));
    }

    #[test]
    fn behind_a_proxy_the_clients_are_counted() {
        let callers = callers(&[("10.0.0.0", 8)], 1);
        let proxy: SocketAddr = "10.0.0.1:5000".parse().unwrap();
        let of = |client: &str| HeaderMap::from_iter([("x-forwarded-for".parse().unwrap(), client.parse().unwrap())]);
        let _connections = [callers.connection(proxy.ip()).unwrap(), callers.connection(proxy.ip()).unwrap()];

        let (client, first) = callers.request(proxy, &of("203.0.113.9")).unwrap();
        assert_eq!(client.ip().to_string(), "203.0.113.9");
        assert!(callers.request(proxy, &of("203.0.113.9")).is_none());
        let _other = callers.request(proxy, &of("203.0.113.10")).unwrap();
        drop(first);
        assert!(callers.request(proxy, &of("203.0.113.9")).is_some());

        // Who is not trusted has a place for its connection, and its word is not taken.
        let direct: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let _connection = callers.connection(direct.ip()).unwrap();
        let (client, _place) = callers.request(direct, &of("203.0.113.10")).unwrap();
        assert_eq!(client, direct);
    }
}
