//! What local software is promised of feeds, and what it did with products.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros, ProductKey, WallMicros};
use downburst_session::{ActionFailed, FeedHandling, Missing, SiteInput};

/// What happened to products after the site's log.
#[derive(Debug)]
pub enum LocalNews {
    /// A product's file stands.
    Shown(Shown),
    /// What local software can't do with a feed; `None`: it can again.
    Acts {
        /// The feed.
        feed: FeedName,
        /// The newest failure.
        failed: Option<ActionFailed>,
    },
}

/// A file stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Of this product.
    pub key: ProductKey,
    /// Site's wall clock.
    pub at: WallMicros,
    /// A later product of its class went before it, against the order that was asked for.
    pub late: bool,
    /// It is a heartbeat: no file stands, but one could have been put there.
    pub heartbeat: bool,
}

/// What local software is to be shown in order.
#[derive(Debug, PartialEq, Eq)]
pub enum ShowOrder {
    /// These feeds, and of this connection's no others; with how long a missing product holds back later ones.
    Feeds {
        /// The feeds that this connection decides about; `None`: all.
        only: Option<BTreeSet<FeedName>>,
        /// Those with an order.
        holds: BTreeMap<FeedName, Micros>,
    },
    /// What a feed with an order lacks now.
    Missing(FeedName, Missing),
}

/// One connection's part in it.
#[derive(Debug)]
pub(crate) struct LocalSoftware {
    /// Products become files; without, the log is the end of the way.
    has_files: bool,
    /// The feeds that are shown in order, and what was reported of each.
    ordered: BTreeMap<FeedName, Missing>,
    /// Something happened since the last look at what is missing.
    is_stale: bool,
}

impl LocalSoftware {
    pub(crate) fn new(has_files: bool) -> Self {
        Self { has_files, ordered: BTreeMap::new(), is_stale: false }
    }

    pub(crate) fn has_files(&self) -> bool {
        self.has_files
    }

    /// Has local software see these feeds in order, and no others of this connection's. The hub that serves decides.
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

    /// What is missing of the feeds that are shown in order, where that changed.
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
    /// What the session is told of it.
    pub(crate) fn into_inputs(self) -> impl Iterator<Item = SiteInput> {
        let (first, second) = match self {
            Self::Acts { feed, failed } => (Some(SiteInput::Acts { feed, failed }), None),
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
