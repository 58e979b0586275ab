//! Feeds with a deadline at a site: products that arrive behind it are dropped and counted.
use downburst_model::WallMicros;

use super::assembly::Assembly;
use crate::{Outcome, Receipt};

/// A feed's deadline, with the products that missed it.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    /// From the hub's stored stamp, microseconds; `None`: an ordinary feed.
    pub(super) after_us: Option<u64>,
    /// The site's clock minus the hub's, microseconds; `None`: not known, so no product is known to be late.
    pub(super) offset_us: Option<i64>,
    /// The receipts of dropped products.
    missed: Vec<Receipt>,
}

impl Deadline {
    /// True if a complete product arrived too late. A heartbeat and a product of a resend never do: the first
    /// carries no data, and an operator ordered the second.
    pub(crate) fn is_missed_by(&self, assembly: &Assembly) -> bool {
        assembly.resend.is_none()
            && !assembly.info.id.is_heartbeat()
            && self.is_over(assembly.info.stored, assembly.last_byte)
    }

    /// True if the deadline of a product that the hub stored at `stored` is over at `at`, by the site's clock.
    pub(crate) fn is_over(&self, stored: WallMicros, at: WallMicros) -> bool {
        let (Some(after_us), Some(offset_us)) = (self.after_us, self.offset_us) else { return false };
        let age_us = at.0.saturating_sub(offset_us).saturating_sub(stored.0);
        age_us > i64::try_from(after_us).unwrap_or(i64::MAX)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.after_us.is_some() && self.offset_us.is_some()
    }

    pub(crate) fn miss(&mut self, receipt: Receipt) {
        self.missed.push(receipt);
    }

    pub(crate) fn take_missed(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.missed)
    }
}

/// The receipt of a product that was dropped.
pub(crate) fn receipt_of(assembly: &Assembly) -> Receipt {
    assembly.receipt(Outcome::LateAtSite, assembly.last_byte)
}
