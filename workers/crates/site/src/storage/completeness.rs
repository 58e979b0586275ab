//! The time up to which each feed is complete, from any hub: where to resume at another hub.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, RangeSet, WallMicros};
use downburst_session::FeedPosition;

/// The completeness of all feeds, common to the connections to all hubs; their driver passes it on.
#[derive(Clone, Debug, Default)]
pub struct Completeness(BTreeMap<FeedName, Reached>);

/// All products of a feed that a hub had stored up to a stamp of its clock are settled here.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// The epoch of that hub's log.
    epoch: Epoch,
    to: WallMicros,
}

impl Completeness {
    /// Records that a feed is complete up to this stamp of a hub.
    pub fn reached(&mut self, feed: &FeedName, epoch: Epoch, to: WallMicros) {
        let known = self.0.entry(feed.clone()).or_insert(Reached { epoch, to });
        if to > known.to {
            *known = Reached { epoch, to };
        }
    }

    /// The entries of a hello for feeds in which another hub was ahead: resume by time. `own` returns the epoch and
    /// the stamp up to which the feed is complete from this hub; if that is within the allowed difference between
    /// hubs, the hub's own cursor is exact and better.
    pub fn resume(
        &self,
        own: impl Fn(&FeedName) -> Option<(Epoch, Option<WallMicros>)>,
    ) -> Vec<FeedPosition> {
        let further = self.0.iter().filter(|(feed, reached)| match own(feed) {
            Some((epoch, _)) if epoch == reached.epoch => false,
            Some((_, Some(to))) => to.0.saturating_add(OVERLAP_US) < reached.to.0,
            Some((_, None)) | None => true,
        });
        further
            .map(|(feed, reached)| FeedPosition {
                feed: feed.clone(),
                epoch: reached.epoch,
                settled: RangeSet::new(),
                newest_stored: reached.to,
            })
            .collect()
    }
}

/// The session goes back by this much when a site resumes by time.
const OVERLAP_US: i64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn feed() -> FeedName {
        FeedName::parse("F").unwrap()
    }

    fn minute(minute: i64) -> WallMicros {
        WallMicros(minute * MINUTE)
    }

    #[test]
    fn a_hub_that_is_behind_resumes_by_the_time_of_the_one_that_is_ahead() {
        let mut complete = Completeness::default();
        complete.reached(&feed(), Epoch(1), minute(100));
        let said = |own: Option<(Epoch, Option<WallMicros>)>| complete.resume(|_| own);
        for own in [None, Some((Epoch(2), None)), Some((Epoch(2), Some(minute(89))))] {
            let said = said(own);
            assert_eq!((said[0].epoch, said[0].newest_stored), (Epoch(1), minute(100)), "{own:?}");
            assert!(said[0].settled.is_empty());
        }
        for own in [(Epoch(1), None), (Epoch(2), Some(minute(90))), (Epoch(2), Some(minute(300)))] {
            assert_eq!(said(Some(own)), [], "{own:?}");
        }
    }

    #[test]
    fn what_was_reached_never_goes_back() {
        let mut complete = Completeness::default();
        complete.reached(&feed(), Epoch(1), minute(100));
        complete.reached(&feed(), Epoch(2), minute(80));
        assert_eq!(complete.resume(|_| None)[0].newest_stored, minute(100));
        complete.reached(&feed(), Epoch(2), minute(101));
        assert_eq!(complete.resume(|_| None)[0].epoch, Epoch(2));
    }
}
