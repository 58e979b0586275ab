//! The offset of this node's clock from that of the node which ingests and stamps products.
use downburst_model::WallMicros;
use downburst_session::ClockOffset;
use serde::Deserialize;

/// The offset, known from the start if this node itself ingests; a sender receives it later.
#[derive(Clone, Copy, Debug)]
pub struct Reference(Option<ClockStanding>);

/// See [`Reference`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClockStanding {
    /// This node's clock minus the other node's, in microseconds.
    pub ahead_us: i64,
    /// The maximum error of the offset, in microseconds.
    pub bound_us: u64,
}

impl Reference {
    /// The reference at the start of a node.
    pub fn new(sends_for_another: bool) -> Self {
        Self((!sends_for_another).then(ClockStanding::default))
    }

    /// Takes a comparison of the clocks.
    pub fn is(&mut self, standing: ClockStanding) {
        self.0 = Some(standing);
    }

    /// The offset of a site's clock from the reference, computed from its offset from this node's clock. `None`:
    /// not known.
    pub fn of_site(&self, site: ClockOffset) -> Option<ClockOffset> {
        let ClockStanding { ahead_us, bound_us } = self.0?;
        Some(ClockOffset {
            offset_us: site.offset_us.saturating_add(ahead_us),
            bound_us: site.bound_us.saturating_add(bound_us),
            ..site
        })
    }

    /// Converts a time of this node's clock to the reference clock.
    pub fn moment(&self, at: WallMicros) -> Option<WallMicros> {
        self.0.map(|standing| WallMicros(at.0.saturating_sub(standing.ahead_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: ClockOffset = ClockOffset { offset_us: 40, bound_us: 5, round_trip_us: 10 };

    #[test]
    fn the_node_that_ingests_is_the_reference_itself() {
        let reference = Reference::new(false);
        assert_eq!(reference.of_site(SITE), Some(SITE));
        assert_eq!(reference.moment(WallMicros(7)), Some(WallMicros(7)));
    }

    #[test]
    fn what_a_sender_compared_is_not_known_until_it_was_compared_itself() {
        let mut reference = Reference::new(true);
        assert_eq!((reference.of_site(SITE), reference.moment(WallMicros(7))), (None, None));
        reference.is(ClockStanding { ahead_us: 1_000, bound_us: 300 });
        let site = ClockOffset { offset_us: 1_040, bound_us: 305, round_trip_us: 10 };
        assert_eq!(reference.of_site(SITE), Some(site), "both are ahead of it, and both errors add up");
        assert_eq!(reference.moment(WallMicros(1_007)), Some(WallMicros(7)));
    }

    #[test]
    fn no_number_that_a_site_or_an_agent_says_panics() {
        let mut reference = Reference::new(true);
        reference.is(ClockStanding { ahead_us: i64::MAX, bound_us: u64::MAX });
        let far = ClockOffset { offset_us: i64::MAX, bound_us: u64::MAX, round_trip_us: 0 };
        assert_eq!(reference.of_site(far), Some(far));
        assert_eq!(reference.moment(WallMicros(i64::MIN)), Some(WallMicros(i64::MIN)));
    }
}
