//! The remaining parts of resends whose session ended, so that the next session continues there.
use std::collections::BTreeMap;

use downburst_model::SiteName;
use downburst_session::ResendLeft;

use crate::sites::ResendLine;

/// The remaining parts, in memory only: after a restart, a hub begins unfinished resends again, and sites drop the
/// products that they have already.
#[derive(Debug, Default)]
pub struct ResendsLeft(BTreeMap<SiteName, BTreeMap<u64, ResendLeft>>);

impl ResendsLeft {
    /// Keeps the remaining parts at the end of a session.
    pub fn keep(&mut self, site: &SiteName, left: BTreeMap<u64, ResendLeft>) {
        if left.is_empty() {
            self.0.remove(site);
        } else {
            self.0.insert(site.clone(), left);
        }
    }

    /// The remaining parts of a site's resends; forgets those of resends that are not ordered any more.
    pub fn of(&mut self, site: &SiteName, lines: &[ResendLine]) -> BTreeMap<u64, ResendLeft> {
        let Some(kept) = self.0.get_mut(site) else { return BTreeMap::new() };
        kept.retain(|resend, _| lines.iter().any(|line| line.resend == *resend));
        kept.clone()
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, RangeSet};
    use downburst_session::ResendEnd;

    use super::*;

    fn site() -> SiteName {
        SiteName::parse("unl.edu").unwrap()
    }

    fn line(resend: u64) -> ResendLine {
        serde_json::from_value(serde_json::json!({
            "resend": resend, "feed": "NGRID", "kind": "resend", "from_us": 0, "to_us": 9,
            "wanted": {"pattern": ".*", "not_pattern": null}, "had": [],
        }))
        .unwrap()
    }

    #[test]
    fn what_is_left_is_kept_until_nobody_asks_for_it() {
        let mut all = ResendsLeft::default();
        let one = |resend| {
            let end = ResendEnd { resend, products: 0, bytes: 0, expired: 0 };
            (resend, ResendLeft { epoch: Epoch(1), numbers: RangeSet::new(), end })
        };
        let left = |resends: &[u64]| resends.iter().map(|it| one(*it)).collect::<BTreeMap<_, _>>();
        assert!(all.of(&site(), &[line(1)]).is_empty());
        all.keep(&site(), left(&[1, 2]));
        assert_eq!(all.of(&site(), &[line(1), line(2), line(3)]), left(&[1, 2]));
        assert_eq!(all.of(&site(), &[line(2)]), left(&[2]));
        assert_eq!(all.of(&site(), &[line(1), line(2)]), left(&[2]), "the first was forgotten");
        all.keep(&site(), left(&[]));
        assert!(all.of(&site(), &[line(2)]).is_empty());
    }
}
