//! A network: an address and how many of its first bits count.

use std::fmt;
use std::net::IpAddr;

/// A network, such as `10.0.0.0/8`, or one address.
///
/// IPv4 in IPv6 clothes (`::ffff:10.0.0.1`) is IPv4; the bits after the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// The network of `address` with a prefix of so many bits; more than it has are all of them.
    pub fn of(address: IpAddr, prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let prefix = prefix.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Self { first: IpAddr::V4((v4.to_bits() & mask).into()), prefix }
            }
            IpAddr::V6(v6) => {
                let prefix = prefix.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self { first: IpAddr::V6((v6.to_bits() & mask).into()), prefix }
            }
        }
    }

    /// Whether the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && Self::of(address, self.prefix) == *self
    }

    /// Reads `10.0.0.0/8` or `127.0.0.1`; refused with a fragment that says why.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "must be an IP address or a network, such as \"127.0.0.1\" or \"10.0.0.0/8\"";
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| WANTED)?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits_max,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|bits| *bits <= bits_max).ok_or(WANTED)?
            }
            Some(_) => return Err(WANTED.to_owned()),
        };
        // Its IPv6 prefix would count other bits than those of the IPv4 address.
        if address.to_canonical() != address {
            return Err(format!("is IPv4; write \"{}\"", address.to_canonical()));
        }
        let network = Self::of(address, prefix);
        if network.first == address {
            Ok(network)
        } else {
            Err(format!("has bits after its prefix; write \"{network}\""))
        }
    }
}

impl fmt::Display for Network {
    /// As it is written in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, prefix } = self;
        let is_whole = *prefix == if first.is_ipv4() { 32 } else { 128 };
        if is_whole { write!(f, "{first}") } else { write!(f, "{first}/{prefix}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_they_print() {
        for text in ["127.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "fc00::/7", "2001:db8:1:2::/64", "::/0"] {
            assert_eq!(Network::parse(text).unwrap().to_string(), text);
        }
        let check = |text, expected: &str| {
            let error = Network::parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        };
        let junk = ["", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "::/129", "10/8", "localhost", "10.0.0.1:80"];
        for text in junk {
            check(text, "must be an IP address or a network");
        }
        check("10.0.0.1/8", "has bits after its prefix; write \"10.0.0.0/8\"");
        check("2001:db8::1/64", "has bits after its prefix; write \"2001:db8::/64\"");
        check("::ffff:10.0.0.0/104", "is IPv4; write \"10.0.0.0\"");
    }

    #[test]
    fn a_network_contains_what_its_prefix_says() {
        let check = |network, address: &str, expected| {
            let contains = Network::parse(network).unwrap().contains(address.parse().unwrap());
            assert_eq!(contains, expected, "{address} in {network}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.1.2.3", true);
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("127.0.0.1", "::1", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("::/0", "2001:db8::1", true);
        check("::/0", "203.0.113.9", false);
        check("2001:db8:1:2::/64", "2001:db8:1:2:ffff::1", true);
        check("2001:db8:1:2::/64", "2001:db8:1:3::1", false);
    }
}
