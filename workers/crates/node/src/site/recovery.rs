//! Where a site stood with a hub when it stopped: the checkpoints, and what the logs stored after them.
use std::collections::{BTreeMap, BTreeSet};

use downburst_log::{FeedLog, ProductLog as _, SourceStamp};
use downburst_model::{Epoch, FeedName, ProductKey, RangeSet, Sequence, WallMicros};
use downburst_session::{FeedPosition, SiteState};

use super::complete::Completeness;
use super::shelf::Shelf;
use super::state::{HubPlace, Positions, load_positions};

/// What the site's own log holds of a feed, as far as the machine knows it.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) log_head: Sequence,
    pub(super) complete: Option<WallMicros>,
    pub(super) epoch: Option<Epoch>,
    pub(super) guarded: bool,
}

/// Reads the checkpoints, of `only` these feeds, and adds what the logs stored after them.
pub(super) fn recover(
    hub: &HubPlace,
    only: Option<&BTreeSet<FeedName>>,
    shelf: &dyn Shelf,
    completeness: &Completeness,
) -> Result<(SiteState, BTreeMap<FeedName, Kept>), String> {
    let (mut state, mut feeds) = (SiteState::default(), BTreeMap::new());
    let wanted = |feed: &FeedName| only.is_none_or(|only| only.contains(feed));
    let Positions { whole, damaged } = load_positions(&hub.state);
    let lacking = damaged.into_iter().chain(shelf.held()).filter(|feed| !whole.contains_key(feed));
    let lacking: BTreeSet<FeedName> = lacking.filter(|feed| wanted(feed)).collect();
    for (feed, stored) in whole.into_iter().filter(|(feed, _)| wanted(feed)) {
        let Some(log) = shelf.log(&feed)? else { continue };
        if stored.guarded {
            shelf.guard(&feed);
        }
        let mut kept = Kept { log_head: log.head(), epoch: Some(stored.position.epoch), ..Kept::default() };
        kept.guarded = stored.guarded;
        let position = if stored.log_head > log.head() {
            tracing::error!(
                feed = feed.as_str(),
                "the site's log ends at {}, but held products up to {} before: it lost its end; products that the \
                 hub still has are requested again",
                log.head().0,
                stored.log_head.0
            );
            held(&log, Some(stored.position.epoch))?
                .unwrap_or(FeedPosition { settled: RangeSet::new(), ..stored.position })
        } else {
            if let Some(to) = stored.complete {
                completeness.reached(&feed, stored.position.epoch, to);
            }
            kept.complete = stored.complete;
            let mut position = stored.position;
            add_held(&mut position, &log, stored.log_head)?;
            position
        };
        feeds.insert(feed.clone(), kept);
        state.feeds.insert(feed, position);
    }
    for feed in lacking {
        let Some(log) = shelf.log(&feed)? else { continue };
        let Some(position) = held(&log, None)? else { continue };
        tracing::warn!(
            feed = feed.as_str(),
            "the feed has no checkpoint; its position is taken from the site's log"
        );
        let kept = Kept { log_head: log.head(), epoch: Some(position.epoch), ..Kept::default() };
        feeds.insert(feed.clone(), kept);
        state.feeds.insert(feed, position);
    }
    Ok((state, feeds))
}

/// A position within the log's contents, in an epoch of the hub or in the last one; `None` if it holds
/// nothing of that.
///
/// What came before the first product was not for this site, or has left the log: neither is asked for.
fn held(log: &FeedLog, epoch: Option<Epoch>) -> Result<Option<FeedPosition>, String> {
    let mut position = None::<FeedPosition>;
    each_source(log, Sequence(0), |source| {
        let ProductKey { feed, epoch: of, sequence } = &source.key;
        if epoch.is_some_and(|epoch| epoch != *of) {
            return;
        }
        if position.as_ref().is_none_or(|position| position.epoch != *of) {
            let (mut settled, newest_stored) = (RangeSet::new(), source.hub_stored);
            settled.insert(0, sequence.0.saturating_sub(1));
            position = Some(FeedPosition { feed: feed.clone(), epoch: *of, settled, newest_stored });
        }
        if let Some(position) = &mut position {
            settle(position, source);
        }
    })?;
    Ok(position)
}

/// Adds what the log stored after a place.
fn add_held(position: &mut FeedPosition, log: &FeedLog, after: Sequence) -> Result<(), String> {
    each_source(log, after, |source| {
        if source.key.epoch == position.epoch {
            settle(position, source);
        }
    })
}

fn settle(position: &mut FeedPosition, source: &SourceStamp) {
    position.settled.insert(source.key.sequence.0, source.key.sequence.0);
    position.newest_stored = WallMicros(position.newest_stored.0.max(source.hub_stored.0));
}

fn each_source(log: &FeedLog, after: Sequence, mut visit: impl FnMut(&SourceStamp)) -> Result<(), String> {
    let mut cursor = after;
    while cursor < log.head() {
        let batch =
            log.read(cursor, log.head(), usize::MAX, RECOVERY_ENTRIES).map_err(|error| error.to_string())?;
        batch.entries.iter().filter_map(|entry| entry.source.as_ref()).for_each(&mut visit);
        cursor = batch.read_to;
    }
    Ok(())
}

const RECOVERY_ENTRIES: usize = 4_096;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_log::{NewProduct, Retention, contract};

    use super::super::state::{StoredPosition, keep_one};
    use super::super::store::Logs;
    use super::*;

    const HUB: Epoch = Epoch(7);

    fn feed() -> FeedName {
        FeedName::parse("IDS|DDPLUS").unwrap()
    }

    /// A site that stored these products of the hub, and its checkpoint of them; what it knows at the next start.
    fn recovered(dir: &std::path::Path, stored: &[u64], log_head: u64) -> Option<Vec<(u64, u64)>> {
        let retention = Retention { hours: 24.0, bytes: 1 << 20 };
        let logs = Logs::new(&dir.join("log"), retention, false);
        let log = logs.of(&feed()).unwrap();
        for number in stored {
            let key = ProductKey { feed: feed(), epoch: HUB, sequence: Sequence(*number) };
            let source = Some(SourceStamp::live(key, WallMicros(5), None));
            let product = NewProduct { source, ..contract::product(&number.to_string()).unwrap() };
            log.append_all(vec![(product, Bytes::from(number.to_string()))], &|| WallMicros(0))
                .remove(0)
                .unwrap();
        }
        let place =
            HubPlace { address: "a:1".to_owned(), state: dir.join("state"), spool: dir.join("spool") };
        let settled = [(0, 40)].into_iter().collect();
        let position = FeedPosition { feed: feed(), epoch: HUB, settled, newest_stored: WallMicros(5) };
        let stored =
            StoredPosition { position, log_head: Sequence(log_head), guarded: false, complete: None };
        keep_one(&place.state, &stored, Some(&log)).unwrap();
        if log_head == 0 {
            std::fs::remove_file(place.state.join("positions/IDS%7CDDPLUS.cbor")).unwrap();
        }
        let known = recover(&place, None, &logs, &Completeness::default()).unwrap().0.feeds;
        known.get(&feed()).map(|position| position.settled.iter().collect())
    }

    #[test]
    fn without_its_checkpoint_a_feed_goes_by_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let known = recovered(dir.path(), &[11, 12, 14], 0);
        assert_eq!(known.unwrap(), [(0, 12), (14, 14)], "what lies behind and in between is asked for");
        let fresh = tempfile::tempdir().unwrap();
        assert_eq!(recovered(fresh.path(), &[], 0), None, "a feed that never came is a new one");
    }

    #[test]
    fn what_a_log_lost_is_asked_for_again_whatever_its_checkpoint_says() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(recovered(dir.path(), &[11, 12], 9).unwrap(), [(0, 12)]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(recovered(empty.path(), &[], 9).unwrap(), [], "all that the hub has");
    }

    #[test]
    fn a_checkpoint_that_agrees_with_the_log_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(recovered(dir.path(), &[41, 43], 1).unwrap(), [(0, 40), (43, 43)]);
    }
}
