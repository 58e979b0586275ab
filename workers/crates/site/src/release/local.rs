//! The order of feeds promised to local software, and its results with products.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros, ProductKey, WallMicros};
use downburst_session::{ActionFailed, FeedHandling, LinkedSpace, Missing, SiteInput};

/// News of products after the site's log.
#[derive(Debug)]
pub enum LocalNews {
    /// A product's file is shown.
    Shown(Shown),
    /// Local software failed with a feed, or works again.
    Acts {
        /// The feed.
        feed: FeedName,
        /// The newest failure; `None`: it works again.
        failed: Option<ActionFailed>,
    },
    /// The space that products of a feed take after they left the site's log.
    LinkedFiles {
        /// The feed.
        feed: FeedName,
        /// The space; `None`: none.
        space: Option<LinkedSpace>,
    },
    /// The site's log no longer serves a product, because its bytes are damaged.
    Damaged(ProductKey),
}

/// A file is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its product.
    pub key: ProductKey,
    /// Site's wall clock.
    pub at: WallMicros,
    /// True if a later product of its class was shown before it, against the requested order.
    pub late: bool,
    /// True for a heartbeat: there is no file, but one could have been moved there.
    pub heartbeat: bool,
}

/// A request to show feeds in order.
#[derive(Debug, PartialEq, Eq)]
pub enum ShowOrder {
    /// Show these feeds in order, and no other feeds of this connection; a missing product holds back later
    /// ones for the given time.
    Feeds {
        /// The feeds of this connection; `None`: all.
        only: Option<BTreeSet<FeedName>>,
        /// The feeds with an order, with the time for each.
        holds: BTreeMap<FeedName, Micros>,
    },
    /// The products that a feed with an order lacks now.
    Missing(FeedName, Missing),
}

/// One connection's requests for local software.
#[derive(Debug)]
pub(crate) struct LocalSoftware {
    /// True if products become files; otherwise the log is the last stage.
    has_files: bool,
    /// The feeds shown in order, with the last report of each.
    ordered: BTreeMap<FeedName, Missing>,
    /// True if something happened since the last look at the missing products.
    is_stale: bool,
}

impl LocalSoftware {
    pub(crate) fn new(has_files: bool) -> Self {
        Self { has_files, ordered: BTreeMap::new(), is_stale: false }
    }

    pub(crate) fn has_files(&self) -> bool {
        self.has_files
    }

    /// Requests order for these feeds, and for no other feeds of this connection. Only the hub that serves decides.
    pub(crate) fn order(
        &mut self,
        serves: bool,
        only: Option<&BTreeSet<FeedName>>,
        items: &[FeedHandling],
    ) -> Option<ShowOrder> {
        if !serves {
            self.ordered.clear();
            return None;
        }
        let is_ours = |feed: &FeedName| only.is_none_or(|only| only.contains(feed));
        let holds: BTreeMap<FeedName, Micros> = items
            .iter()
            .filter(|item| is_ours(&item.feed))
            .filter_map(|item| Some((item.feed.clone(), Micros(item.hold_us?))))
            .collect();
        self.ordered = holds.keys().map(|feed| (feed.clone(), Missing::default())).collect();
        self.has_files.then(|| ShowOrder::Feeds { only: only.cloned(), holds })
    }

    pub(crate) fn may_have_changed(&mut self) {
        self.is_stale = true;
    }

    /// The missing products of feeds shown in order, if they changed.
    pub(crate) fn changes(&mut self, missing: impl Fn(&FeedName) -> Missing) -> Vec<ShowOrder> {
        if !std::mem::take(&mut self.is_stale) || !self.has_files {
            return Vec::new();
        }
        let changed = self.ordered.iter_mut().filter_map(|(feed, reported)| {
            let missing = missing(feed);
            (*reported != missing).then(|| {
                reported.clone_from(&missing);
                ShowOrder::Missing(feed.clone(), missing)
            })
        });
        changed.collect()
    }
}

impl LocalNews {
    /// The session's inputs for it.
    pub(crate) fn into_inputs(self) -> impl Iterator<Item = SiteInput> {
        let (first, second) = match self {
            Self::Acts { feed, failed } => (Some(SiteInput::Acts { feed, failed }), None),
            Self::LinkedFiles { feed, space } => (Some(SiteInput::LinkedFiles { feed, space }), None),
            Self::Damaged(key) => (Some(SiteInput::Damaged(key)), None),
            Self::Shown(Shown { key, at, heartbeat: true, .. }) => {
                (Some(SiteInput::HeartbeatOut { key, at }), None)
            }
            Self::Shown(Shown { key, at, late, .. }) => {
                let was_late = late.then(|| SiteInput::Late(key.feed.clone()));
                (was_late, Some(SiteInput::ActionDone { key, at }))
            }
        };
        first.into_iter().chain(second)
    }
}
