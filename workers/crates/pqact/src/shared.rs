//! The state that all lines of actions share.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use downburst_actions::Rules;
use downburst_clock::Clock;
use downburst_ldm6::FeedType;
use downburst_log::{LogEntry, ProductLog as _};
use downburst_model::{FeedName, Sequence};

use super::active_rules::{ActiveRules, FILE_LINE};
use super::failed_products::FailedProducts;
use super::lag::Lag;
use super::notifier::Notifier;
use super::positions::Positions;
use super::site::Site;
use super::stop::Stop;
use super::task::{About, Defaults};

/// The shared state of all lines.
pub(super) struct Shared {
    pub(super) site: Arc<dyn Site>,
    pub(super) clock: Clock,
    pub(super) notifier: Arc<Notifier>,
    pub(super) stop: Stop,
    pub(super) active_rules: RwLock<Arc<ActiveRules>>,
    /// The base of relative paths and the working directory of programs.
    pub(super) directory: PathBuf,
    pub(super) feed_types: BTreeMap<FeedName, FeedType>,
    pub(super) defaults: Defaults,
    pub(super) positions: Positions,
    /// The sequence in each feed up to which products are written to files.
    pub(super) filed: Mutex<BTreeMap<FeedName, Sequence>>,
    pub(super) failed: FailedProducts,
    pub(super) lag: Lag,
    pub(super) lag_patience: Duration,
}

impl Shared {
    pub(super) fn active_rules(&self) -> Arc<ActiveRules> {
        Arc::clone(&self.active_rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn rules_of(&self, line: &str) -> Option<Arc<Vec<Rules>>> {
        self.active_rules().lines.get(line).cloned()
    }

    pub(super) fn types_of(&self, feed: &FeedName) -> FeedType {
        types_of(&self.feed_types, feed)
    }

    /// The sequence up to which programs may read a feed with this head: files are written first.
    pub(super) fn files_done(&self, feed: &FeedName, head: Sequence) -> Sequence {
        if !self.active_rules().has_files {
            return head;
        }
        let filed = self.filed.lock().unwrap_or_else(PoisonError::into_inner);
        filed.get(feed).copied().unwrap_or_default().min(head)
    }

    /// Logs lines that have begun to lag behind the site's log, and reports all lagging lines to the hub.
    pub(super) fn tell_of_lag(&self) {
        let active_rules = self.active_rules();
        self.lag.retain(|line| active_rules.lines.contains_key(line));
        let logs: BTreeMap<FeedName, _> = self.site.logs().into_iter().collect();
        let heads = logs.iter().map(|(feed, log)| (feed.clone(), log.head())).collect();
        let late = self.lag.late(&heads, Instant::now(), self.lag_patience);
        let mut behind = Vec::new();
        for late in late {
            let Some(log) = logs.get(&late.feed) else { continue };
            let about = |next: &LogEntry| About::new(next, self.types_of(&late.feed));
            let Some(found) = late.behind(log, about) else { continue };
            if late.is_new {
                tracing::warn!(rule = found.rule, feed = late.feed.as_str(), "{}", found.sentence);
            }
            behind.push(found);
        }
        self.failed.reports.lag(&behind);
    }

    /// Records a line's progress in a feed; progress of the file line lets programs read on.
    pub(super) fn has_done(&self, line: &str, feed: &FeedName, done: Sequence) {
        self.lag.note(line, feed, done);
        if line != FILE_LINE {
            return;
        }
        let mut filed = self.filed.lock().unwrap_or_else(PoisonError::into_inner);
        if filed.insert(feed.clone(), done) != Some(done) {
            drop(filed);
            self.notifier.notify();
        }
    }
}

/// LDM's feed type of a feed: as configured, or else by its name.
pub(super) fn types_of(said: &BTreeMap<FeedName, FeedType>, feed: &FeedName) -> FeedType {
    said.get(feed).copied().or_else(|| feed.as_str().parse().ok()).unwrap_or_default()
}
