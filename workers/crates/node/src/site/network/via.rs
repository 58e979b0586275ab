//! The relays that a site's administrator chose, and the connection by a chain of relays.
use std::io;

use downburst_session::{MOST_CHAINS, RelayChain, relay_chain};
use downburst_site::{Ended, Ways};
use tokio::net::TcpStream;

use super::sockets::{HANDSHAKE_PATIENCE, connect, within};
use crate::tunnel;

/// The relays by which a site reaches its hubs. Without any, the hubs choose.
#[derive(Clone, Debug, Default)]
pub struct Via {
    /// Each is a chain: the first relay is the one that the site calls.
    chains: Vec<RelayChain>,
    /// True if the site may not connect directly.
    relays_only: bool,
}

impl Via {
    /// Reads chains as `HOST:PORT` or `HOST:PORT,HOST:PORT`; the error is a sentence.
    pub fn parse(chains: &[String], relays_only: bool) -> Result<Self, String> {
        if relays_only && chains.is_empty() {
            return Err("--via-only needs a relay; name one with --via".to_owned());
        }
        if chains.len() > MOST_CHAINS {
            return Err(format!("--via is given {} times; {MOST_CHAINS} are the most", chains.len()));
        }
        let chain = |given: &String| relay_chain(given).map_err(|sentence| format!("--via {sentence}"));
        let chains = chains.iter().map(chain).collect::<Result<_, _>>()?;
        Ok(Self { chains, relays_only })
    }

    /// The ways of a connection.
    pub(super) fn ways(self) -> Ways {
        Ways::chosen(self.chains, self.relays_only)
    }
}

/// Connects to `hub` by a chain of relays: through each, the next one is asked. The error tells whether anything
/// answered.
pub(super) async fn connect_by(chain: &RelayChain, hub: &str) -> Result<TcpStream, (io::Error, Ended)> {
    let Some((first, behind)) = chain.split_first() else { return connect(hub).await };
    let mut stream = connect(first).await?;
    for target in behind.iter().map(String::as_str).chain([hub]) {
        let asked = within(HANDSHAKE_PATIENCE, tunnel::ask(&mut stream, target)).await;
        asked.map_err(|error| (error, Ended::Answered))?;
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_administrator_gives_is_read_or_refused_by_a_sentence() {
        let via = |chains: &[&str], relays_only| {
            let chains: Vec<String> = chains.iter().map(|&chain| chain.to_owned()).collect();
            Via::parse(&chains, relays_only)
        };
        assert_eq!(
            via(&["a:1, b:2", "[::1]:3"], false).unwrap().chains,
            [vec!["a:1", "b:2"], vec!["[::1]:3"]]
        );
        for (chains, relays_only, words) in [
            (&["a"][..], false, "--via a: \"a\" is no address of a relay"),
            (&["a:1"; 9], false, "8 are the most"),
            (&[], true, "--via-only needs a relay"),
        ] {
            let sentence = via(chains, relays_only).unwrap_err();
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
