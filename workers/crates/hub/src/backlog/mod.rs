//! The backlog of sites in their feeds, counted in the hub's own logs, so that it is known for an absent site, too.
//!
//! A site lacks the numbers of a log that it did not settle, if its subscriptions match the product and the hub
//! still has it: its next session begins with those. A site that never received a feed begins at the log's head,
//! and lacks nothing of it except ordered resends. Products whose bytes left the log in between are lost for the
//! site.
mod census;
mod counts;
mod positions;
mod site;
#[cfg(test)]
mod testlog;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Lane, ProductInfo, Sequence, SiteName, WallMicros};
use downburst_session::{ResendLeft, ResendOrder};
use serde::Serialize;

use crate::sites::{ResendKind, ResendLine, SiteLine};

pub use counts::{Counts, Look};
pub use positions::{Position, Positions};
pub use site::{BacklogFacts, site_backlog};

/// The part of a feed's log that the counting of backlogs needs.
pub trait CountedLog {
    /// The error of a failed read.
    type Error;

    /// The feed.
    fn feed(&self) -> &FeedName;

    /// The life of the log.
    fn epoch(&self) -> Epoch;

    /// The last number.
    fn head(&self) -> Sequence;

    /// The first number whose bytes the log still has, or fetches when a site requests them.
    fn first_kept(&self) -> Sequence;

    /// The last number stored before a time; 0 if none.
    fn find_time(&self, time: WallMicros) -> Sequence;

    /// Visits products backwards, from below `before` to above `after`, up to `most` of them.
    fn look_back(
        &self,
        after: Sequence,
        before: Sequence,
        most: u64,
        visit: &mut dyn FnMut(&ProductInfo),
    ) -> Result<LookedBack, Self::Error>;
}

/// The extent of a look back.
#[derive(Clone, Copy, Debug)]
pub struct LookedBack {
    /// The number of visited products.
    pub shown: u64,
    /// True if all were visited.
    pub complete: bool,
    /// The lowest number that was reached.
    pub searched_to: Sequence,
}

/// The products that a site lacks of its feeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteBacklog {
    /// The site.
    pub site: SiteName,
    /// Each feed of the site that is open on this node.
    pub feeds: Vec<FeedBacklog>,
}

/// The products that a site lacks of a feed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedBacklog {
    /// The feed.
    pub feed: FeedName,
    /// False: the site's position is in another log, and the other fields are empty.
    pub known: bool,
    /// The number of products that it receives as soon as it connects.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time at which the oldest of them was stored.
    pub oldest_us: Option<WallMicros>,
    /// The number of products that left the hub's log before the site received them.
    pub lost_products: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// True while counting continues: the numbers are lower bounds.
    pub counting: bool,
}

impl FeedBacklog {
    /// The backlog of a site that lacks nothing.
    pub fn nothing(feed: FeedName) -> Self {
        let (products, bytes, oldest_us, lost_products, lost_bytes) = (0, 0, None, 0, 0);
        Self { feed, known: true, products, bytes, oldest_us, lost_products, lost_bytes, counting: false }
    }

    /// The backlog of a site whose position is in another log.
    pub fn not_known(feed: FeedName) -> Self {
        Self { known: false, ..Self::nothing(feed) }
    }
}

/// The counts for sites, and the last report about each.
#[derive(Default)]
pub struct Backlogs {
    counts: Counts,
    told: BTreeMap<SiteName, SiteBacklog>,
    number: u64,
}

impl Backlogs {
    /// The backlogs of sites that changed since the last report; each site's from time to time, in case a report
    /// was missed. `count` counts for one site, and leaves out a site that is not this node's.
    pub fn tell(
        &mut self,
        lines: impl IntoIterator<Item = SiteLine>,
        mut count: impl FnMut(SiteLine, &mut Counts) -> Option<SiteBacklog>,
    ) -> Vec<SiteBacklog> {
        self.number = self.number.wrapping_add(1);
        self.counts.begin();
        let (mut news, mut all) = (Vec::new(), BTreeMap::new());
        for (place, line) in (0_u64..).zip(lines) {
            let Some(backlog) = count(line, &mut self.counts) else { continue };
            if place % TURNS == self.number % TURNS || self.told.get(&backlog.site) != Some(&backlog) {
                news.push(backlog.clone());
            }
            all.insert(backlog.site.clone(), backlog);
        }
        self.told = all;
        self.counts.forget_unused();
        news
    }
}

/// The resend that a line orders, in the numbers of its feed's log at present.
pub fn resend_order<L: CountedLog>(log: &L, line: &ResendLine, left: Option<ResendLeft>) -> ResendOrder {
    ResendOrder {
        resend: line.resend,
        feed: line.feed.clone(),
        epoch: log.epoch(),
        after: log.find_time(line.from_us),
        to: log.find_time(line.to_us),
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

/// Each site is reported at least once in this number of reports.
const TURNS: u64 = 30;
