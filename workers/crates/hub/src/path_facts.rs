//! The kernel's facts about the path to a site.
use serde::Serialize;

/// Facts of one connection, or of all connections of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathFacts {
    /// The minimum of the last minutes.
    pub least_round_trip_us: Option<u64>,
    /// Segments with data sent so far, including retransmissions.
    pub sent_segments: u64,
    /// The number of retransmitted segments.
    pub resent_segments: u64,
    /// The rate at which the site recently accepted bytes.
    pub rate_bps: u64,
    /// The queue was empty: the path may carry more.
    pub is_lower_bound: bool,
    /// The name of the congestion control.
    pub congestion: String,
    /// The path MTU of the session's first connection.
    pub path_mtu_bytes: Option<u64>,
}

impl PathFacts {
    /// Adds another connection of the same session.
    pub fn with(self, other: Self) -> Self {
        let round_trips = [self.least_round_trip_us, other.least_round_trip_us];
        Self {
            least_round_trip_us: round_trips.into_iter().flatten().min(),
            sent_segments: self.sent_segments.saturating_add(other.sent_segments),
            resent_segments: self.resent_segments.saturating_add(other.resent_segments),
            rate_bps: self.rate_bps.saturating_add(other.rate_bps),
            is_lower_bound: self.is_lower_bound || other.is_lower_bound,
            congestion: self.congestion,
            path_mtu_bytes: self.path_mtu_bytes,
        }
    }
}
