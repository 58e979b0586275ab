//! Where a site stood with a hub when it stopped: the checkpoints, and what the logs stored after them.
use std::collections::{BTreeMap, BTreeSet};

use downburst_log::ProductLog as _;
use downburst_model::{FeedName, Sequence, WallMicros};
use downburst_session::SiteState;

use super::complete::Completeness;
use super::shelf::Shelf;
use super::state::{HubPlace, load_positions};

/// What the site's own log holds of a feed, as far as the machine knows it.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) log_head: Sequence,
    pub(super) complete: Option<WallMicros>,
    pub(super) epoch: Option<downburst_model::Epoch>,
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
    let positions = load_positions(&hub.state).into_iter();
    for (feed, stored) in positions.filter(|(feed, _)| only.is_none_or(|only| only.contains(feed))) {
        let Some(log) = shelf.log(&feed)? else { continue };
        if stored.guarded {
            shelf.guard(&feed);
        }
        if let Some(to) = stored.complete {
            completeness.reached(&feed, stored.position.epoch, to);
        }
        let mut position = stored.position;
        let mut cursor = stored.log_head;
        while cursor < log.head() {
            let batch = log
                .read(cursor, log.head(), usize::MAX, RECOVERY_ENTRIES)
                .map_err(|error| error.to_string())?;
            for source in batch.entries.into_iter().filter_map(|entry| entry.source) {
                if source.key.epoch == position.epoch {
                    position.settled.insert(source.key.sequence.0, source.key.sequence.0);
                    position.newest_stored = WallMicros(position.newest_stored.0.max(source.hub_stored.0));
                }
            }
            cursor = batch.read_to;
        }
        let epoch = Some(position.epoch);
        let kept = Kept { log_head: log.head(), epoch, guarded: stored.guarded, complete: stored.complete };
        feeds.insert(feed.clone(), kept);
        state.feeds.insert(feed, position);
    }
    Ok((state, feeds))
}

const RECOVERY_ENTRIES: usize = 4_096;
