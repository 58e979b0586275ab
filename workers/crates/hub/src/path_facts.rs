//! What the kernel knows of the path to a site.
use serde::Serialize;

/// Of one connection, or of all that a session has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathFacts {
    /// Of the last minutes.
    pub least_round_trip_us: Option<u64>,
    /// Segments with data sent so far, what was sent again included.
    pub sent_segments: u64,
    /// Those of them that were sent again.
    pub resent_segments: u64,
    /// How fast the site took bytes of late.
    pub rate_bps: u64,
    /// Nothing more was there to be sent, so that the path may carry more.
    pub is_lower_bound: bool,
    /// The name of the congestion control.
    pub congestion: String,
    /// Of the session's first connection.
    pub path_mtu_bytes: Option<u64>,
}

impl PathFacts {
    /// Together with another connection of the same session.
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
