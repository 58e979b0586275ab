//! The pace that live products leave to a stream.

/// The rate of a stream beside a live leg of this rate, both in Ethernet-frame bits per second. `waits`: products of
/// the live leg wait for their turn.
///
/// The two take turns: the live leg sends at its whole rate while it has products, and the stream for the rest of the
/// time, so that their sum stays near the rate that the plan found for the group.
pub fn catch_up_bps(live_bps: u64, waits: bool) -> u64 {
    let part = if waits { BESIDE_LIVE } else { ALONE };
    (live_bps / 100 * part).max(1)
}

/// Per cent of the live leg's rate while its products wait: enough for repairs and heads of the stream.
const BESIDE_LIVE: u64 = 4;

/// Per cent at other times: a burst of live products finds short queues.
const ALONE: u64 = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_products_leave_little_while_they_wait_and_most_at_other_times() {
        assert_eq!((catch_up_bps(20_000_000, true), catch_up_bps(20_000_000, false)), (800_000, 18_000_000));
        assert_eq!(catch_up_bps(0, true), 1);
    }
}
