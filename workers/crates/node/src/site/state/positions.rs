//! The last position of a site with a hub: the checkpoints, and the products that the logs stored after them.
use std::collections::BTreeSet;
use std::sync::Arc;

use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{FeedName, ProductKey, Sequence, WallMicros};
use downburst_site::{HeldProducts, Recovered};

use super::{HubPlace, load_positions};
use crate::site::destination::Destination;
use crate::site::parts::SharedCompleteness;

/// The contents of a log of the site, for the machine.
struct Held(Arc<FeedLog>);

/// Reads the checkpoints, of the feeds in `only`, and adds the products that the logs stored after them.
pub(in crate::site) fn recover(
    hub: &HubPlace,
    only: Option<&BTreeSet<FeedName>>,
    destination: &dyn Destination,
    completeness: &SharedCompleteness,
) -> Result<Recovered, String> {
    let open = |feed: &FeedName| destination.log(feed).map(|log| log.map(Held));
    let recovered = downburst_site::recover(load_positions(&hub.state), destination.held(), only, open)?;
    recovered.guarded.iter().for_each(|feed| destination.guard(feed));
    for (feed, epoch, to) in &recovered.reached {
        completeness.reached(feed, *epoch, *to);
    }
    Ok(recovered)
}

impl HeldProducts for Held {
    fn head(&self) -> Sequence {
        self.0.head()
    }

    fn visit(&self, after: Sequence, visit: &mut dyn FnMut(&ProductKey, WallMicros)) -> Result<(), String> {
        let (log, mut cursor) = (&self.0, after);
        while cursor < log.head() {
            let batch = log
                .read(cursor, log.head(), usize::MAX, RECOVERY_ENTRIES)
                .map_err(|error| error.to_string())?;
            let sources = batch.entries.iter().filter_map(|entry| entry.source.as_ref());
            sources.for_each(|source| visit(&source.key, source.hub_stored));
            cursor = batch.read_to;
        }
        Ok(())
    }
}

const RECOVERY_ENTRIES: usize = 4_096;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_log::{NewProduct, Retention, SourceStamp, contract};
    use downburst_model::Epoch;
    use downburst_session::FeedPosition;
    use downburst_site::StoredPosition;

    use super::super::keep_one;
    use super::*;
    use crate::site::store::Logs;

    const HUB: Epoch = Epoch(7);

    fn feed() -> FeedName {
        FeedName::parse("IDS|DDPLUS").unwrap()
    }

    /// The position that a site recovers at its next start, from these stored products and their checkpoint.
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
        let known = recover(&place, None, &logs, &SharedCompleteness::default()).unwrap().state.feeds;
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
