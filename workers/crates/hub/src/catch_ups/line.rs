//! The agent's settings of catch-up by group, in the line of a leg.
use downburst_model::LegId;
use serde::Deserialize;

use crate::plans::LegLine;

/// How sites of a leg catch up together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CatchUpLine {
    /// The number of the stream, as of a leg.
    pub leg: LegId,
    /// The address of its group.
    pub group: String,
    /// The port of its group.
    pub port: u16,
    /// The least number of bytes that two sites must lack of the same.
    pub least_bytes: u64,
    /// The longest wait of a site for others, in milliseconds.
    pub wait_ms: u64,
    /// The most streams of this hub at a time.
    pub streams: usize,
}

impl CatchUpLine {
    /// The line of the stream's leg: it leaves as the live leg does, to a group of its own.
    pub fn leg_line(&self, live: &LegLine) -> LegLine {
        let mut line = live.clone();
        (line.leg, line.group, line.port) = (self.leg, self.group.clone(), self.port);
        line.losses.catch_up = None;
        line.sites = Vec::new();
        line
    }
}
