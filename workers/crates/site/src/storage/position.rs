//! A site's position with a hub: checkpoints, and the products stored after them, found at a start.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{Epoch, FeedName, ProductKey, RangeSet, Sequence, WallMicros};
use downburst_session::{FeedPosition, SiteState};
use minicbor::{Decode, Encode};

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StoredPosition {
    /// The session's position.
    #[n(0)]
    pub position: FeedPosition,
    /// `position` covers the site's own log up to here.
    #[n(1)]
    pub log_head: Sequence,
    /// True if the hub's log had an earlier epoch.
    #[n(2)]
    pub guarded: bool,
    /// The stamp of storage at the hub up to which nothing is missing.
    #[n(3)]
    pub complete: Option<WallMicros>,
}

/// Checkpoints of a hub.
#[derive(Debug, Default)]
pub struct Positions {
    /// Readable checkpoints.
    pub whole: BTreeMap<FeedName, StoredPosition>,
    /// Feeds with an unreadable checkpoint.
    pub damaged: BTreeSet<FeedName>,
}

/// The contents of the site's own log of a feed.
pub trait HeldProducts {
    /// Its last place.
    fn head(&self) -> Sequence;

    /// Visits the hubs' products after a place, with the stamps at which the hubs stored them.
    ///
    /// # Errors
    ///
    /// The log can't be read, for this reason.
    fn visit(&self, after: Sequence, visit: &mut dyn FnMut(&ProductKey, WallMicros)) -> Result<(), String>;
}

/// A site's state when it stopped.
#[derive(Debug, Default)]
pub struct Recovered {
    /// For the session.
    pub state: SiteState,
    /// For the connection.
    pub feeds: Feeds,
    /// The stamp up to which each feed was complete from this hub, for [`Completeness`](crate::Completeness).
    pub reached: Vec<(FeedName, Epoch, WallMicros)>,
    /// Feeds whose log at the hub began a new epoch: repeats are recognised by id and content.
    pub guarded: Vec<FeedName>,
}

/// A connection's state of its feeds, in addition to the session's.
#[derive(Debug, Default)]
pub struct Feeds(BTreeMap<FeedName, Feed>);

/// The state of a feed in the site's own log, as known to the machine.
#[derive(Clone, Copy, Debug, Default)]
struct Feed {
    log_head: Sequence,
    complete: Option<WallMicros>,
    epoch: Option<Epoch>,
    guarded: bool,
}

/// The result of a checkpoint.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) stored: StoredPosition,
    /// True if this checkpoint is the first of a new epoch of the hub's log.
    pub(crate) begins_anew: bool,
}

/// Resumes from checkpoints, of `only` these feeds, and adds the products stored after them. `held` are the feeds
/// with stored products, with or without a checkpoint; `open` returns their logs, `None` if a feed is gone.
///
/// # Errors
///
/// A log can't be read, for this reason.
pub fn recover<H: HeldProducts>(
    positions: Positions,
    held: Vec<FeedName>,
    only: Option<&BTreeSet<FeedName>>,
    open: impl Fn(&FeedName) -> Result<Option<H>, String>,
) -> Result<Recovered, String> {
    let mut recovered = Recovered::default();
    let wanted = |feed: &FeedName| only.is_none_or(|only| only.contains(feed));
    let Positions { whole, damaged } = positions;
    let lacking = damaged.into_iter().chain(held).filter(|feed| !whole.contains_key(feed));
    let lacking: BTreeSet<FeedName> = lacking.filter(|feed| wanted(feed)).collect();
    for (feed, stored) in whole.into_iter().filter(|(feed, _)| wanted(feed)) {
        if let Some(log) = open(&feed)? {
            recovered.take_stored(feed, stored, &log)?;
        }
    }
    for feed in lacking {
        if let Some(log) = open(&feed)? {
            recovered.take_held(feed, &log)?;
        }
    }
    Ok(recovered)
}

impl Recovered {
    fn take_stored(
        &mut self,
        feed: FeedName,
        stored: StoredPosition,
        log: &impl HeldProducts,
    ) -> Result<(), String> {
        if stored.guarded {
            self.guarded.push(feed.clone());
        }
        let epoch = stored.position.epoch;
        let mut known =
            Feed { log_head: log.head(), epoch: Some(epoch), guarded: stored.guarded, complete: None };
        let position = if stored.log_head > log.head() {
            tracing::error!(
                feed = feed.as_str(),
                "the site's log ends at {}, but held products up to {} before: it lost its end; products that the \
                 hub still has are requested again",
                log.head().0,
                stored.log_head.0
            );
            position_by(log, Some(epoch))?
                .unwrap_or(FeedPosition { settled: RangeSet::new(), ..stored.position })
        } else {
            self.reached.extend(stored.complete.map(|to| (feed.clone(), epoch, to)));
            known.complete = stored.complete;
            let mut position = stored.position;
            add_held(&mut position, log, stored.log_head)?;
            position
        };
        self.put(feed, known, position);
        Ok(())
    }

    fn take_held(&mut self, feed: FeedName, log: &impl HeldProducts) -> Result<(), String> {
        let Some(position) = position_by(log, None)? else { return Ok(()) };
        tracing::warn!(
            feed = feed.as_str(),
            "the feed has no checkpoint; its position is taken from the site's log"
        );
        let known = Feed { log_head: log.head(), epoch: Some(position.epoch), ..Feed::default() };
        self.put(feed, known, position);
        Ok(())
    }

    fn put(&mut self, feed: FeedName, known: Feed, position: FeedPosition) {
        self.feeds.0.insert(feed.clone(), known);
        self.state.feeds.insert(feed, position);
    }
}

impl Feeds {
    /// The epoch of the hub's log, and the stamp up to which the feed is complete from it, for
    /// [`Completeness`](crate::Completeness).
    pub fn brought(&self, feed: &FeedName) -> Option<(Epoch, Option<WallMicros>)> {
        self.0.get(feed).and_then(|known| Some((known.epoch?, known.complete)))
    }

    /// Notes the new head of the site's log of a feed.
    pub(crate) fn grew(&mut self, feed: &FeedName, head: Sequence) {
        self.0.entry(feed.clone()).or_default().log_head = head;
    }

    /// Takes a checkpoint of the session, and the stamp up to which the feed is complete.
    pub(crate) fn note(&mut self, position: FeedPosition, complete: Option<WallMicros>) -> Noted {
        let known = self.0.entry(position.feed.clone()).or_default();
        let begins_anew = known.epoch.is_some_and(|known| known != position.epoch) && !known.guarded;
        known.guarded |= begins_anew;
        known.epoch = Some(position.epoch);
        known.complete = complete.or(known.complete);
        let Feed { log_head, complete, guarded, .. } = *known;
        Noted { stored: StoredPosition { position, log_head, guarded, complete }, begins_anew }
    }
}

/// A position from the log's contents, in the given epoch of the hub or in the last one; `None` if the log holds no
/// product of it.
///
/// Products before the first one were not for this site, or have left the log: neither are requested.
fn position_by(log: &impl HeldProducts, epoch: Option<Epoch>) -> Result<Option<FeedPosition>, String> {
    let mut position = None::<FeedPosition>;
    log.visit(Sequence(0), &mut |key, stored| {
        let ProductKey { feed, epoch: of, sequence } = key;
        if epoch.is_some_and(|epoch| epoch != *of) {
            return;
        }
        if position.as_ref().is_none_or(|position| position.epoch != *of) {
            let mut settled = RangeSet::new();
            settled.insert(0, sequence.0.saturating_sub(1));
            let feed = feed.clone();
            position = Some(FeedPosition { feed, epoch: *of, settled, newest_stored: stored });
        }
        if let Some(position) = &mut position {
            settle(position, key, stored);
        }
    })?;
    Ok(position)
}

/// Adds the products that the log stored after a place.
fn add_held(position: &mut FeedPosition, log: &impl HeldProducts, after: Sequence) -> Result<(), String> {
    log.visit(after, &mut |key, stored| {
        if key.epoch == position.epoch {
            settle(position, key, stored);
        }
    })
}

fn settle(position: &mut FeedPosition, key: &ProductKey, stored: WallMicros) {
    position.settled.insert(key.sequence.0, key.sequence.0);
    position.newest_stored = position.newest_stored.max(stored);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HUB: Epoch = Epoch(7);

    /// The contents of a log: numbers of the hub, in order of storage.
    struct Log(Vec<u64>);

    impl HeldProducts for Log {
        fn head(&self) -> Sequence {
            Sequence(self.0.len() as u64)
        }

        fn visit(
            &self,
            after: Sequence,
            visit: &mut dyn FnMut(&ProductKey, WallMicros),
        ) -> Result<(), String> {
            for number in self.0.iter().skip(after.0 as usize) {
                let key = ProductKey { feed: feed(), epoch: HUB, sequence: Sequence(*number) };
                visit(&key, WallMicros(5 + *number as i64));
            }
            Ok(())
        }
    }

    fn feed() -> FeedName {
        FeedName::parse("IDS|DDPLUS").unwrap()
    }

    fn position(settled: &[(u64, u64)]) -> FeedPosition {
        let settled = settled.iter().copied().collect();
        FeedPosition { feed: feed(), epoch: HUB, settled, newest_stored: WallMicros(5) }
    }

    fn stored(log_head: u64, complete: Option<WallMicros>) -> StoredPosition {
        let position = position(&[(0, 40)]);
        StoredPosition { position, log_head: Sequence(log_head), guarded: false, complete }
    }

    /// The settled ranges at the next start of a site that stored these products of the hub and this checkpoint.
    fn recovered(numbers: &[u64], log_head: Option<u64>) -> Option<Vec<(u64, u64)>> {
        let mut positions = Positions::default();
        positions.whole.extend(log_head.map(|head| (feed(), stored(head, None))));
        let known = recover(positions, vec![feed()], None, |_| Ok(Some(Log(numbers.to_vec())))).unwrap();
        known.state.feeds.get(&feed()).map(|position| position.settled.iter().collect())
    }

    #[test]
    fn without_its_checkpoint_a_feed_goes_by_the_log() {
        let known = recovered(&[11, 12, 14], None);
        assert_eq!(known.unwrap(), [(0, 12), (14, 14)], "what lies behind and in between is asked for");
        assert_eq!(recovered(&[], None), None, "a feed that never came is a new one");
    }

    #[test]
    fn what_a_log_lost_is_asked_for_again_whatever_its_checkpoint_says() {
        assert_eq!(recovered(&[11, 12], Some(9)).unwrap(), [(0, 12)]);
        assert_eq!(recovered(&[], Some(9)).unwrap(), [], "all that the hub has");
    }

    #[test]
    fn a_checkpoint_that_agrees_with_the_log_counts() {
        assert_eq!(recovered(&[41, 43], Some(1)).unwrap(), [(0, 40), (43, 43)]);
    }

    #[test]
    fn a_feed_that_is_gone_or_of_another_node_is_left_out() {
        let positions = || Positions { whole: [(feed(), stored(0, None))].into(), ..Positions::default() };
        let gone = recover(positions(), vec![], None, |_| Ok(None::<Log>)).unwrap();
        let others = recover(positions(), vec![feed()], Some(&BTreeSet::new()), |_| Ok(Some(Log(vec![1]))));
        for known in [gone, others.unwrap()] {
            assert!(known.state.feeds.is_empty() && known.feeds.brought(&feed()).is_none());
        }
        let failed = recover(positions(), vec![], None, |_| Err::<Option<Log>, _>("no".to_owned()));
        assert_eq!(failed.unwrap_err(), "no");
    }

    #[test]
    fn how_far_a_feed_was_complete_counts_unless_its_log_lost_its_end() {
        let known = |head| {
            let stored = StoredPosition { guarded: true, ..stored(head, Some(WallMicros(9))) };
            let positions = Positions { whole: [(feed(), stored)].into(), ..Positions::default() };
            recover(positions, vec![], None, |_| Ok(Some(Log(vec![40])))).unwrap()
        };
        let (whole, lost) = (known(1), known(2));
        assert_eq!(whole.reached, [(feed(), HUB, WallMicros(9))]);
        assert_eq!(whole.feeds.brought(&feed()), Some((HUB, Some(WallMicros(9)))));
        assert_eq!((lost.reached, lost.feeds.brought(&feed())), (vec![], Some((HUB, None))));
        assert_eq!((whole.guarded, lost.guarded), (vec![feed()], vec![feed()]));
    }

    #[test]
    fn another_life_of_the_hubs_log_is_noted_once_and_kept() {
        let mut feeds = Feeds::default();
        let in_epoch = |epoch| FeedPosition { epoch: Epoch(epoch), ..position(&[(0, 1)]) };
        let anew = [7, 7, 8, 8, 9].map(|epoch| feeds.note(in_epoch(epoch), None).begins_anew);
        assert_eq!(anew, [false, false, true, false, false]);
        feeds.grew(&feed(), Sequence(12));
        let noted = feeds.note(in_epoch(9), Some(WallMicros(3))).stored;
        assert_eq!(
            (noted.log_head, noted.guarded, noted.complete),
            (Sequence(12), true, Some(WallMicros(3)))
        );
        assert_eq!(feeds.note(in_epoch(9), None).stored.complete, Some(WallMicros(3)), "it does not go back");
    }

    proptest! {
        #[test]
        fn whatever_a_checkpoint_missed_of_the_log_is_settled_and_nothing_else(
            numbers in proptest::sample::subsequence((41u64..120).collect::<Vec<_>>(), 0..40).prop_shuffle(),
            said in 0usize..40,
        ) {
            let said = said.min(numbers.len());
            let known: RangeSet = recovered(&numbers, Some(said as u64)).unwrap().into_iter().collect();
            for number in 1..200 {
                prop_assert_eq!(known.contains(number), number <= 40 || numbers[said..].contains(&number));
            }
        }
    }
}
