//! The ways to a hub: by relays, in the given order, or directly.
use std::io;
use std::time::Duration;

use downburst_site::Ended;
use tokio::net::TcpStream;

use super::sockets::{HANDSHAKE_PATIENCE, connect, within};
use crate::tunnel;

/// The relays by which a site reaches its hubs. Without any, it connects directly.
#[derive(Clone, Debug, Default)]
pub struct Via {
    /// Each is a chain: the first relay is the one that the site calls.
    chains: Vec<Chain>,
    /// True if the site may not connect directly.
    relays_only: bool,
}

/// Relays behind one another; an empty chain is the direct way.
pub(super) type Chain = Vec<String>;

impl Via {
    /// Reads chains as `HOST:PORT` or `HOST:PORT,HOST:PORT`; the error is a sentence.
    pub fn parse(chains: &[String], relays_only: bool) -> Result<Self, String> {
        if relays_only && chains.is_empty() {
            return Err("--via-only needs a relay; name one with --via".to_owned());
        }
        if chains.len() > MOST_CHAINS {
            return Err(format!("--via is given {} times; {MOST_CHAINS} are the most", chains.len()));
        }
        let chains = chains.iter().map(|given| chain(given)).collect::<Result<_, _>>()?;
        Ok(Self { chains, relays_only })
    }

    /// The ways in the order in which they are tried, each with its place, `first` before the others.
    pub(super) fn ways(&self, first: usize) -> Vec<(usize, Chain)> {
        let direct = (!self.relays_only).then(Chain::new);
        let mut ways: Vec<_> = self.chains.iter().cloned().chain(direct).enumerate().collect();
        let count = ways.len().max(1);
        ways.rotate_left(first % count);
        ways
    }

    /// The place of the first way for the next connection, after one by `taken` that lasted for `lasted`: a relay by
    /// which no session lasts is passed over, however well it answers.
    pub(super) fn next(taken: usize, lasted: Duration) -> usize {
        if lasted < SHORT { taken + 1 } else { 0 }
    }
}

/// A way as words.
pub(super) fn described(way: &Chain) -> String {
    if way.is_empty() { "directly".to_owned() } else { format!("by the relay {}", way.join(", ")) }
}

/// Connects to `hub` by a chain of relays: through each, the next one is asked. The error tells whether anything
/// answered.
pub(super) async fn connect_by(chain: &Chain, hub: &str) -> Result<TcpStream, (io::Error, Ended)> {
    let Some((first, behind)) = chain.split_first() else { return connect(hub).await };
    let mut stream = connect(first).await?;
    for target in behind.iter().map(String::as_str).chain([hub]) {
        let asked = within(HANDSHAKE_PATIENCE, tunnel::ask(&mut stream, target)).await;
        asked.map_err(|error| (error, Ended::Answered))?;
    }
    Ok(stream)
}

fn chain(given: &str) -> Result<Chain, String> {
    let relays: Chain = given.split(',').map(|relay| relay.trim().to_owned()).collect();
    if relays.len() > MOST_RELAYS {
        return Err(format!("--via {given} names {} relays; {MOST_RELAYS} are the most", relays.len()));
    }
    for (at, relay) in relays.iter().enumerate() {
        if !is_address(relay) {
            return Err(format!("--via {given}: {relay:?} is no address of a relay; write HOST:PORT"));
        }
        if relays.iter().take(at).any(|earlier| earlier.eq_ignore_ascii_case(relay)) {
            return Err(format!("--via {given} names {relay} twice: that is a circle; name each relay once"));
        }
    }
    Ok(relays)
}

fn is_address(text: &str) -> bool {
    let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let named = |host: &str| !host.is_empty() && host.chars().all(|one| one.is_ascii_graphic() && one != '/');
    text.rsplit_once(':').is_some_and(|(host, number)| port(number) && named(host))
}

/// A session that a relay spoils ends at its first products; one that is silent is given up after 9 s.
const SHORT: Duration = Duration::from_secs(60);
const MOST_CHAINS: usize = 8;
const MOST_RELAYS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn via(chains: &[&str], relays_only: bool) -> Result<Via, String> {
        let chains: Vec<String> = chains.iter().map(|&chain| chain.to_owned()).collect();
        Via::parse(&chains, relays_only)
    }

    #[test]
    fn a_chain_is_read_and_a_bad_one_is_refused_by_a_sentence() {
        assert_eq!(
            via(&["a:1, b:2", "[::1]:3"], false).unwrap().chains,
            [vec!["a:1", "b:2"], vec!["[::1]:3"]]
        );
        let (nine, five) = (["a:1"; 9], "a:1,b:1,c:1,d:1,e:1");
        for (chains, words) in [
            (&["a:1,b:2,A:1"][..], "names A:1 twice"),
            (&["a"], "is no address of a relay"),
            (&["a:0"], "is no address of a relay"),
            (&["a:1,"], "is no address of a relay"),
            (&["a b:1"], "is no address of a relay"),
            (&[five], "4 are the most"),
            (&nine, "8 are the most"),
        ] {
            let sentence = via(chains, false).unwrap_err();
            assert!(sentence.contains(words), "{sentence}");
        }
        assert!(via(&[], true).unwrap_err().contains("--via-only needs a relay"));
    }

    #[test]
    fn a_way_by_which_no_session_lasts_comes_last() {
        let places = |via: &Via, first| via.ways(first).iter().map(|(place, _)| *place).collect::<Vec<_>>();
        let both = via(&["a:1", "b:2"], false).unwrap();
        assert_eq!(places(&both, 0), [0, 1, 2]);
        assert_eq!(places(&both, Via::next(0, Duration::from_secs(59))), [1, 2, 0]);
        assert_eq!(places(&both, Via::next(2, Duration::ZERO)), [0, 1, 2]);
        assert_eq!(places(&both, Via::next(1, Duration::from_secs(61))), [0, 1, 2]);
        assert_eq!(places(&via(&["a:1"], true).unwrap(), 5), [0]);
        assert_eq!(places(&Via::default(), Via::next(0, Duration::ZERO)), [0]);
    }
}
