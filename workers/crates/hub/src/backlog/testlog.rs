//! A log for tests of counting.
use std::collections::BTreeMap;

use downburst_model::{
    Class, Digest, Epoch, FeedName, Origin, ProductId, ProductInfo, ProductKey, Sequence, WallMicros,
};

use super::{CountedLog, LookedBack};

/// Products by number.
pub(crate) struct TestLog {
    pub(crate) feed: FeedName,
    pub(crate) products: BTreeMap<u64, ProductInfo>,
    pub(crate) head: u64,
    pub(crate) first_kept: u64,
}

impl Default for TestLog {
    fn default() -> Self {
        let feed = FeedName::parse("TEST").unwrap();
        Self { feed, products: BTreeMap::new(), head: 0, first_kept: 0 }
    }
}

impl TestLog {
    /// Stores a product at the next number; its size is the length of its id.
    pub(crate) fn store(&mut self, id: &str) -> u64 {
        self.head += 1;
        let info = ProductInfo {
            key: ProductKey { feed: self.feed.clone(), epoch: Epoch(7), sequence: Sequence(self.head) },
            id: ProductId::parse(id).unwrap(),
            origin: Origin::parse("hub").unwrap(),
            created: WallMicros(7),
            stored: WallMicros(7),
            size: id.len() as u64,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        };
        self.products.insert(self.head, info);
        self.head
    }

    pub(crate) fn skip_to(&mut self, number: u64) {
        self.head = number;
    }
}

impl CountedLog for TestLog {
    type Error = std::convert::Infallible;

    fn feed(&self) -> &FeedName {
        &self.feed
    }

    fn epoch(&self) -> Epoch {
        Epoch(7)
    }

    fn head(&self) -> Sequence {
        Sequence(self.head)
    }

    fn first_kept(&self) -> Sequence {
        Sequence(self.first_kept)
    }

    fn find_time(&self, time: WallMicros) -> Sequence {
        let before = self.products.values().take_while(|info| info.stored < time).last();
        before.map_or(Sequence(0), |info| info.key.sequence)
    }

    fn look_back(
        &self,
        after: Sequence,
        before: Sequence,
        most: u64,
        visit: &mut dyn FnMut(&ProductInfo),
    ) -> Result<LookedBack, Self::Error> {
        let mut looked = LookedBack { shown: 0, complete: true, searched_to: Sequence(after.0 + 1) };
        for (number, info) in self.products.range(after.0 + 1..before.0).rev() {
            if looked.shown >= most {
                return Ok(LookedBack { complete: false, searched_to: Sequence(number + 1), ..looked });
            }
            visit(info);
            looked.shown += 1;
        }
        Ok(looked)
    }
}
