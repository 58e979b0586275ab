//! Ways by relays, and the reports of relays (decision 55).
use downburst_model::LegId;
use minicbor::{Decode, Encode};

/// Hub to site: the chains of relays by which the site is to reach the hub, best first, as a whole set; none: the
/// direct way. Each is `HOST:PORT`, or `HOST:PORT,HOST:PORT` for relays behind one another. Sent between the
/// [`Welcome`](crate::Welcome) and the first [`Subscriptions`](crate::Subscriptions) unless there is none, and at
/// each change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Ways {
    /// At most [`MOST_CHAINS`].
    #[n(0)]
    pub chains: Vec<String>,
}

/// Relay to hub: its tunnels and legs at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct RelayReport {
    /// Its tunnels, at most [`MOST_TUNNELS_TOLD`]. Each that ended is reported once more.
    #[n(0)]
    pub tunnels: Vec<TunnelFacts>,
    /// The legs that it sends into its local network, at most [`MOST_LEGS_TOLD`].
    #[n(1)]
    pub legs: Vec<RelayedLeg>,
    /// Refused requests for tunnels since its start.
    #[n(2)]
    pub refused: u64,
}

/// One tunnel of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct TunnelFacts {
    /// The address of the site, or of the relay before this one, as the relay sees it.
    #[n(0)]
    pub site_side: String,
    /// The relay's own address towards the hub, which the hub sees as the peer of the session.
    #[n(1)]
    pub hub_side: String,
    /// The requested target, `HOST:PORT`.
    #[n(2)]
    pub target: String,
    /// Its age in seconds.
    #[n(3)]
    pub seconds: u64,
    /// Bytes carried to the site since its beginning.
    #[n(4)]
    pub bytes_from_hub: u64,
    /// Bytes carried to the hub since its beginning.
    #[n(5)]
    pub bytes_from_site: u64,
    /// The rate to the site since the last report, bits per second.
    #[n(6)]
    pub rate_from_hub_bps: u64,
    /// The segment to the site.
    #[n(7)]
    pub near: Segment,
    /// The segment to the hub.
    #[n(8)]
    pub onward: Segment,
    /// True if it has ended.
    #[n(9)]
    pub ended: bool,
}

/// The kernel's figures of one TCP connection of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Segment {
    /// The least round trip of the last minutes, microseconds.
    #[n(0)]
    pub round_trip_us: Option<u64>,
    /// Segments that the relay sent again, per million sent; none: it sent nothing.
    #[n(1)]
    pub loss_ppm: Option<u64>,
    /// The name of the congestion control.
    #[n(2)]
    pub congestion: String,
    /// The rate at which the other end recently acknowledged bytes, bits per second.
    #[n(3)]
    pub rate_bps: u64,
}

/// A multicast leg that a relay sends into its local network.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RelayedLeg {
    /// The leg.
    #[n(0)]
    pub leg: LegId,
    /// Datagrams sent.
    #[n(1)]
    pub datagrams: u64,
    /// Their bytes.
    #[n(2)]
    pub bytes: u64,
    /// Datagrams that were dropped.
    #[n(3)]
    pub dropped: u64,
}

/// Relays behind one another, the first called by the site; an empty chain is the direct way.
pub type RelayChain = Vec<String>;

/// Reads a chain of relays from `HOST:PORT` or `HOST:PORT,HOST:PORT`.
///
/// # Errors
///
/// One sentence with the fault and the remedy.
pub fn relay_chain(given: &str) -> Result<RelayChain, String> {
    if given.len() > MOST_CHAIN_BYTES {
        let bytes = given.len();
        return Err(format!("a chain of relays has {bytes} bytes; {MOST_CHAIN_BYTES} are the most"));
    }
    let relays: RelayChain = given.split(',').map(|relay| relay.trim().to_owned()).collect();
    if relays.len() > MOST_RELAYS {
        return Err(format!("{given} names {} relays; {MOST_RELAYS} are the most", relays.len()));
    }
    for (at, relay) in relays.iter().enumerate() {
        if !is_address(relay) {
            return Err(format!("{given}: {relay:?} is no address of a relay; write HOST:PORT"));
        }
        if relays.iter().take(at).any(|earlier| earlier.eq_ignore_ascii_case(relay)) {
            return Err(format!("{given} names {relay} twice: that is a circle; name each relay once"));
        }
    }
    Ok(relays)
}

fn is_address(text: &str) -> bool {
    let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let named = |host: &str| !host.is_empty() && host.chars().all(|one| one.is_ascii_graphic() && one != '/');
    text.rsplit_once(':').is_some_and(|(host, number)| port(number) && named(host))
}

/// The most chains of a site.
pub const MOST_CHAINS: usize = 8;
/// The most relays behind one another.
pub const MOST_RELAYS: usize = 4;
/// The most tunnels in a report.
pub const MOST_TUNNELS_TOLD: usize = 256;
/// The most legs in a report.
pub const MOST_LEGS_TOLD: usize = 256;

/// Four names of DNS with their ports.
const MOST_CHAIN_BYTES: usize = 1_100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_and_a_bad_one_is_refused_by_a_sentence() {
        assert_eq!(relay_chain("a:1, b:2").unwrap(), ["a:1", "b:2"]);
        assert_eq!(relay_chain("[::1]:3").unwrap(), ["[::1]:3"]);
        let long = format!("{}:1", "a".repeat(2_000));
        for (given, words) in [
            ("a:1,b:2,A:1", "names A:1 twice"),
            ("a", "is no address of a relay"),
            ("", "is no address of a relay"),
            ("a:0", "is no address of a relay"),
            ("a:1,", "is no address of a relay"),
            ("a b:1", "is no address of a relay"),
            ("a:1,b:1,c:1,d:1,e:1", "4 are the most"),
            (&long, "1100 are the most"),
        ] {
            let sentence = relay_chain(given).unwrap_err();
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
