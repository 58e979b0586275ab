//! What is left of resends whose session ended, so that the next one goes on from there.
use std::collections::BTreeMap;

use downburst_model::SiteName;
use downburst_session::ResendLeft;

use crate::lines::ResendLine;

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
