//! What is left of resends whose session ended, so that the next one goes on from there.
use std::collections::BTreeMap;

use downburst_log::ProductLog as _;
use downburst_model::{Lane, SiteName};
use downburst_session::{ResendLeft, ResendOrder};

use super::feeds::Feed;
use crate::lines::{ResendKind, ResendLine};

/// Kept in memory: a hub that was started again begins what is under way anew, and sites drop what they have of it.
#[derive(Debug, Default)]
pub(super) struct ResendsLeft(BTreeMap<SiteName, BTreeMap<u64, ResendLeft>>);

impl ResendsLeft {
    /// A session ended.
    pub(super) fn keep(&mut self, site: &SiteName, left: BTreeMap<u64, ResendLeft>) {
        if left.is_empty() {
            self.0.remove(site);
        } else {
            self.0.insert(site.clone(), left);
        }
    }

    /// Where a resend goes on; what is not asked of the site any more is forgotten.
    pub(super) fn of(&mut self, site: &SiteName, lines: &[ResendLine]) -> BTreeMap<u64, ResendLeft> {
        let Some(kept) = self.0.get_mut(site) else { return BTreeMap::new() };
        kept.retain(|resend, _| lines.iter().any(|line| line.resend == *resend));
        kept.clone()
    }
}

/// What a line asks for, in the numbers of its feed's log as they are now.
pub(super) fn order(feed: &Feed, line: &ResendLine, left: Option<ResendLeft>) -> ResendOrder {
    ResendOrder {
        resend: line.resend,
        feed: line.feed.clone(),
        epoch: feed.epoch(),
        after: feed.log.find_time(line.from_us),
        to: feed.log.find_time(line.to_us),
        lane: match line.kind {
            ResendKind::Resend => Lane::Resend,
            ResendKind::Backfill => Lane::Backfill,
        },
        wanted: line.wanted.clone(),
        had: line.had.clone(),
        within: line.within.clone(),
        left,
    }
}
