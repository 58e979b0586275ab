//! The number of wanted products in a log, by blocks of numbers: each product is matched once, regardless of the
//! number of callers and calls.
use std::collections::BTreeMap;
use std::ops::{AddAssign, RangeInclusive};
use std::sync::Arc;

use downburst_model::{Sequence, WallMicros, is_heartbeat};

use super::CountedLog;

/// True for wanted ids.
pub(crate) type Wants = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Products and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) products: u64,
    pub(crate) bytes: u64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.products = self.products.saturating_add(other.products);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The wanted products in the counted part of one log: a range of numbers that grows at both ends.
pub(crate) struct Census {
    wants: Wants,
    /// The sums of the numbers `low + 1..=high`; blocks without wanted products are left out.
    blocks: BTreeMap<u64, Sum>,
    low: u64,
    high: u64,
    /// Requested parts of blocks, with the storing time of the oldest wanted product in them.
    parts: BTreeMap<(u64, u64), (Sum, Option<WallMicros>)>,
}

impl Census {
    /// An empty census that begins at the log's head.
    pub(crate) fn new(wants: Wants, head: u64) -> Self {
        Self { wants, blocks: BTreeMap::new(), low: head, high: head, parts: BTreeMap::new() }
    }

    /// Counts the products after `after` and up to `head`, as far as the budget of products allows. Returns true if
    /// all of them are counted.
    pub(crate) fn extend<L: CountedLog>(
        &mut self,
        log: &L,
        after: u64,
        head: u64,
        budget: &mut u64,
    ) -> Result<bool, L::Error> {
        while self.high < head && *budget > 0 {
            let to = head.min(self.high.saturating_add(SPAN));
            self.add(log, self.high, to, u64::MAX, budget)?;
            self.high = to;
        }
        if self.low > after && *budget > 0 {
            self.low = self.add(log, after, self.low, *budget, budget)?;
        }
        Ok(self.high >= head && self.low <= after)
    }

    /// The sum of the wanted products of these numbers, as far as they are counted.
    pub(crate) fn sum<L: CountedLog>(
        &mut self,
        log: &L,
        numbers: RangeInclusive<u64>,
    ) -> Result<Sum, L::Error> {
        let Some((first, last)) = self.counted(numbers) else { return Ok(Sum::default()) };
        let (from, to) = (whole_from(first, self.low), whole_to(last, self.high));
        let mut sum = Sum::default();
        if from >= to {
            return Ok(self.part(log, first, last)?.0);
        }
        for (_, block) in self.blocks.range(from..to) {
            sum += *block;
        }
        if first < from.saturating_mul(BLOCK) {
            sum += self.part(log, first, from.saturating_mul(BLOCK) - 1)?.0;
        }
        if last >= to.saturating_mul(BLOCK) {
            sum += self.part(log, to.saturating_mul(BLOCK), last)?.0;
        }
        Ok(sum)
    }

    /// The time at which the oldest wanted product of these numbers was stored.
    pub(crate) fn oldest<L: CountedLog>(
        &mut self,
        log: &L,
        numbers: RangeInclusive<u64>,
    ) -> Result<Option<WallMicros>, L::Error> {
        let Some((first, last)) = self.counted(numbers) else { return Ok(None) };
        let blocks: Vec<u64> =
            self.blocks.range(first / BLOCK..=last / BLOCK).map(|(block, _)| *block).take(3).collect();
        for block in blocks {
            let (from, to) =
                (block.saturating_mul(BLOCK), block.saturating_mul(BLOCK).saturating_add(BLOCK - 1));
            let (_, oldest) = self.part(log, from.max(first), to.min(last))?;
            if oldest.is_some() {
                return Ok(oldest);
            }
        }
        Ok(None)
    }

    fn counted(&self, numbers: RangeInclusive<u64>) -> Option<(u64, u64)> {
        let (first, last) =
            ((*numbers.start()).max(self.low.saturating_add(1)), (*numbers.end()).min(self.high));
        (first <= last).then_some((first, last))
    }

    /// Counts backwards from `to`; returns the number after which all are counted.
    fn add<L: CountedLog>(
        &mut self,
        log: &L,
        after: u64,
        to: u64,
        most: u64,
        budget: &mut u64,
    ) -> Result<u64, L::Error> {
        let (wants, blocks) = (&self.wants, &mut self.blocks);
        let looked = log.look_back(Sequence(after), Sequence(to.saturating_add(1)), most, &mut |info| {
            if !is_heartbeat(info.id.as_str()) && wants(info.id.as_str()) {
                *blocks.entry(info.key.sequence.0 / BLOCK).or_default() +=
                    Sum { products: 1, bytes: info.size };
            }
        })?;
        // A span without products has a cost, too.
        *budget = budget.saturating_sub(looked.shown.max(LEAST_COST));
        Ok(if looked.complete { after } else { looked.searched_to.0.saturating_sub(1) })
    }

    fn part<L: CountedLog>(
        &mut self,
        log: &L,
        first: u64,
        last: u64,
    ) -> Result<(Sum, Option<WallMicros>), L::Error> {
        if let Some(known) = self.parts.get(&(first, last)) {
            return Ok(*known);
        }
        let (mut sum, mut oldest) = (Sum::default(), None);
        let (after, before) = (Sequence(first.saturating_sub(1)), Sequence(last.saturating_add(1)));
        log.look_back(after, before, u64::MAX, &mut |info| {
            if !is_heartbeat(info.id.as_str()) && (self.wants)(info.id.as_str()) {
                sum += Sum { products: 1, bytes: info.size };
                oldest = Some(info.stored);
            }
        })?;
        if self.parts.len() >= PARTS {
            self.parts.clear();
        }
        self.parts.insert((first, last), (sum, oldest));
        Ok((sum, oldest))
    }
}

/// The first block that lies wholly at or above `first`; nothing below `low` was counted.
fn whole_from(first: u64, low: u64) -> u64 {
    if first.is_multiple_of(BLOCK) || first == low.saturating_add(1) {
        first / BLOCK
    } else {
        first / BLOCK + 1
    }
}

/// The first block that does not lie wholly at or below `last`; nothing above `high` was counted.
fn whole_to(last: u64, high: u64) -> u64 {
    if last == high || last % BLOCK == BLOCK - 1 { last / BLOCK + 1 } else { last / BLOCK }
}

/// A site's frontier falls into one block, which is scanned once: a millisecond's work.
const BLOCK: u64 = 1_024;

/// The number of sequences by which the count advances in one step.
const SPAN: u64 = 16_384;

const LEAST_COST: u64 = 64;

const PARTS: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::super::testlog::TestLog;
    use super::*;

    fn odd() -> Wants {
        Arc::new(|id: &str| id.ends_with(['1', '3', '5', '7', '9']))
    }

    /// Products `p1` to `p3000`, counted a few at a time.
    fn counted(log: &mut TestLog, step: u64) -> Census {
        for number in 1..=3_000 {
            log.store(&format!("p{number}"));
        }
        let mut census = Census::new(odd(), log.head().0);
        let mut looks = 0;
        while !census.extend(log, 0, log.head().0, &mut step.clone()).unwrap() {
            looks += 1;
            assert!(looks < 10_000);
        }
        census
    }

    #[test]
    fn any_stretch_of_numbers_has_what_a_walk_through_the_log_finds_there() {
        let mut log = TestLog::default();
        let mut census = counted(&mut log, 700);
        let cases = [
            (1, 3_000),
            (1, 1),
            (2, 2),
            (1_023, 1_024),
            (5, 900),
            (1_024, 2_047),
            (900, 2_999),
            (2_999, 9_000),
        ];
        for (first, last) in cases {
            let numbers = (first..=last.min(3_000)).filter(|number| number % 2 == 1);
            let (products, bytes) = numbers.fold((0, 0), |(count, bytes), number| {
                (count + 1, bytes + format!("p{number}").len() as u64)
            });
            assert_eq!(census.sum(&log, first..=last).unwrap(), Sum { products, bytes }, "{first}..={last}");
        }
        assert_eq!(census.oldest(&log, 2..=2).unwrap(), None);
        assert_eq!(census.oldest(&log, 2..=3_000).unwrap(), Some(WallMicros(7)));
    }

    #[test]
    fn what_is_appended_is_added_and_a_gap_of_numbers_costs_no_walk() {
        let mut log = TestLog::default();
        let mut census = counted(&mut log, 3_000);
        log.skip_to(40_000_000);
        let last = log.store("x1");
        let mut looks = 0;
        while !census.extend(&log, 0, log.head().0, &mut 50_000).unwrap() {
            looks += 1;
        }
        assert!(looks < 10, "{looks} looks");
        assert_eq!(census.sum(&log, 2_998..=last).unwrap().products, 2);
        assert_eq!(census.blocks.len(), 4, "blocks without products take no memory");
    }
}
