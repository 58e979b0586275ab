//! The number of requests that one source may make.
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::Micros;

/// A budget per source: an IPv4 address, or a /64 of IPv6. It fills at `per_second`, up to one second's worth.
#[derive(Debug)]
pub struct SourceBudget {
    per_second: u32,
    most_sources: usize,
    sources: BTreeMap<IpAddr, Account>,
    swept: Micros,
}

/// The requests left to a source, in millionths.
#[derive(Debug)]
struct Account {
    left: u64,
    seen: Micros,
}

impl SourceBudget {
    /// A budget of this many requests per second for each of at most so many sources.
    pub fn new(per_second: u32, most_sources: usize) -> Self {
        Self { per_second, most_sources, sources: BTreeMap::new(), swept: Micros(0) }
    }

    /// Takes one request from the source's budget; false: there is none, or no room for a further source.
    pub fn take(&mut self, source: IpAddr, at: Micros) -> bool {
        let source = network(source);
        self.sweep(at);
        if !self.sources.contains_key(&source) && self.sources.len() >= self.most_sources {
            return false;
        }
        let full = u64::from(self.per_second).saturating_mul(ONE);
        let account = self.sources.entry(source).or_insert(Account { left: full, seen: at });
        let grown = at.0.saturating_sub(account.seen.0).saturating_mul(u64::from(self.per_second));
        account.left = account.left.saturating_add(grown).min(full);
        account.seen = account.seen.max(at);
        let left = account.left.checked_sub(ONE);
        account.left = left.unwrap_or(account.left);
        left.is_some()
    }

    /// A source whose budget is full again is as good as unknown. At most one sweep per second.
    fn sweep(&mut self, at: Micros) {
        if at.0.saturating_sub(self.swept.0) >= SECOND.0 {
            self.swept = at;
            self.sources.retain(|_, account| at.0.saturating_sub(account.seen.0) < SECOND.0);
        }
    }
}

/// The addresses that count as one source: an IPv4 address itself, or a /64 of IPv6.
pub fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
    }
}

/// One request, in the units of an account: microseconds times requests per second.
const ONE: u64 = 1_000_000;
const SECOND: Micros = Micros(1_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_has_its_requests_each_second_and_others_have_theirs() {
        let mut budget = SourceBudget::new(3, 2);
        let taken = |budget: &mut SourceBudget, source: &str, at| {
            (0..9).filter(|_| budget.take(address(source), at)).count()
        };
        assert_eq!(taken(&mut budget, "192.0.2.1", SECOND), 3);
        assert_eq!(taken(&mut budget, "192.0.2.2", SECOND), 3);
        assert_eq!(taken(&mut budget, "192.0.2.3", SECOND), 0, "no room");
        assert_eq!(taken(&mut budget, "192.0.2.1", Micros(1_400_000)), 1);
        assert_eq!(
            taken(&mut budget, "192.0.2.3", Micros(9_000_000)),
            3,
            "the others are as good as unknown"
        );
    }

    #[test]
    fn the_addresses_of_a_network_are_one_source() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:2")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
        assert_eq!(network(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }
}
