use std::collections::VecDeque;

use downburst_model::{Micros, Now, ProductId, RangeSet};

use crate::LIVENESS_LIMIT;

/// Products that are settled only because a leg announced them and the subscriptions, as the site knew them,
/// did not want them. The hub may have changed the subscriptions shortly before: then these products are
/// wanted.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    products: VecDeque<(Micros, u64, ProductId)>,
}

impl Skipped {
    pub(crate) fn push(&mut self, now: Now, number: u64, id: ProductId) {
        self.products.push_back((now.monotonic, number, id));
        if self.products.len() > PRODUCTS {
            self.products.pop_front();
        }
    }

    /// Clears the list; returns the numbers behind `head` that are wanted.
    pub(crate) fn take_wanted(&mut self, head: u64, wants: impl Fn(&str) -> bool) -> RangeSet {
        let passed = std::mem::take(&mut self.products).into_iter();
        passed
            .filter(|(_, number, id)| *number > head && wants(id.as_str()))
            .map(|(_, number, _)| (number, number))
            .collect()
    }

    /// Clears the list; returns the recent numbers for which the message of a change may have been lost with
    /// the connection.
    pub(crate) fn take_recent(&mut self, now: Now) -> RangeSet {
        let passed = std::mem::take(&mut self.products).into_iter();
        passed
            .filter(|(at, ..)| now.monotonic.since(*at) < LIVENESS_LIMIT)
            .map(|(_, number, _)| (number, number))
            .collect()
    }
}

/// The maximum number of products in the list: some seconds of the busiest feed.
const PRODUCTS: usize = 4_096;
