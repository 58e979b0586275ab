//! Reads of a log for sessions: stretches that many sites may share.
use downburst_model::{Content, ProductInfo, Sequence};
use downburst_session::stretch_end;

/// The part of a feed's log that the reads of sessions need.
pub trait StretchLog {
    /// An entry of the log.
    type Entry;
    /// The error of a failed read.
    type Error;

    /// Reads entries with `after < sequence <= to`, in order, until a limit is reached, but always at least one.
    ///
    /// # Errors
    ///
    /// The log can't be read.
    fn read(
        &self,
        after: Sequence,
        to: Sequence,
        limit_bytes: usize,
        limit_entries: usize,
    ) -> Result<LogRead<Self::Entry>, Self::Error>;

    /// The product of an entry.
    fn info(entry: &Self::Entry) -> &ProductInfo;

    /// The product and its bytes; `None`: the log does not have them.
    fn parts(entry: Self::Entry) -> (ProductInfo, Option<Content>);
}

/// The content of a part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRead<E> {
    /// In order of sequence.
    pub entries: Vec<E>,
    /// Every sequence up to this one is in `entries`, was never assigned, or is forgotten.
    pub read_to: Sequence,
    /// The part of the range for which the log can no longer list the products, both ends included.
    pub forgotten: Option<(Sequence, Sequence)>,
}

/// The content of the next stretch. Where the log assigned no sequence up to the stretch's usual end, the stretch
/// ends before the next product: a restored log skips a thousand million sequences, which are not walked through.
///
/// # Errors
///
/// The log can't be read.
pub fn read_stretch<L: StretchLog>(
    log: &L,
    after: Sequence,
    head: Sequence,
) -> Result<LogRead<L::Entry>, L::Error> {
    let batch = log.read(after, stretch_end(after, head), READ_BYTES, READ_ENTRIES)?;
    if !batch.entries.is_empty() || batch.read_to >= head {
        return Ok(batch);
    }
    let next = log.read(batch.read_to, head, 1, 1)?;
    let before = next.entries.first().map(|entry| L::info(entry).key.sequence.0.saturating_sub(1));
    let read_to = before.map_or(next.read_to, Sequence);
    let forgotten = joined(batch.forgotten, next.forgotten, read_to);
    Ok(LogRead { read_to, forgotten, ..batch })
}

type Range = (Sequence, Sequence);

/// The forgotten ranges of two consecutive reads as one, up to the end of the second read that is used.
fn joined(first: Option<Range>, next: Option<Range>, to: Sequence) -> Option<Range> {
    let next = next.filter(|(from, _)| *from <= to).map(|(from, last)| (from, last.min(to)));
    match (first, next) {
        (Some((from, _)), Some((_, last))) => Some((from, last)),
        (first, next) => first.or(next),
    }
}

/// The approximate size of one read: some milliseconds of a fast site's link.
const READ_BYTES: usize = 1 << 20;
const READ_ENTRIES: usize = 256;

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::product;

    /// Products by number, with a count of the reads; the numbers up to `forgotten` are listed no more.
    #[derive(Default)]
    pub(crate) struct TestLog {
        pub(crate) products: BTreeMap<u64, (ProductInfo, Option<Content>)>,
        pub(crate) forgotten: u64,
        pub(crate) reads: Cell<usize>,
    }

    impl TestLog {
        pub(crate) fn of(numbers: &[u64]) -> Self {
            let one = |number: &u64| {
                let info = product(*number, "SA", *number as i64);
                (*number, (info, Some(b"12345678".to_vec().into())))
            };
            Self { products: numbers.iter().map(one).collect(), ..Self::default() }
        }
    }

    impl StretchLog for TestLog {
        type Entry = (ProductInfo, Option<Content>);
        type Error = std::convert::Infallible;

        fn read(
            &self,
            after: Sequence,
            to: Sequence,
            _: usize,
            most: usize,
        ) -> Result<LogRead<Self::Entry>, Self::Error> {
            self.reads.set(self.reads.get() + 1);
            let from = after.0 + 1;
            let listed = self
                .products
                .iter()
                .filter(|(number, _)| **number >= from && **number > self.forgotten && **number <= to.0);
            let entries: Vec<Self::Entry> = listed.map(|(_, entry)| entry.clone()).take(most).collect();
            let is_cut = entries.len() == most;
            let last = entries.last().map(|(info, _)| info.key.sequence);
            let forgotten =
                (from <= self.forgotten).then(|| (Sequence(from), Sequence(self.forgotten.min(to.0))));
            Ok(LogRead { entries, read_to: last.filter(|_| is_cut).unwrap_or(to), forgotten })
        }

        fn info(entry: &Self::Entry) -> &ProductInfo {
            &entry.0
        }

        fn parts(entry: Self::Entry) -> (ProductInfo, Option<Content>) {
            entry
        }
    }

    fn numbers(read: &LogRead<(ProductInfo, Option<Content>)>) -> Vec<u64> {
        read.entries.iter().map(|(info, _)| info.key.sequence.0).collect()
    }

    #[test]
    fn numbers_that_were_passed_over_are_one_stretch() {
        let log = TestLog::of(&[1, 1_000_000_001]);
        let head = Sequence(1_000_000_001);
        let (mut after, mut found, mut stretches) = (Sequence(0), Vec::new(), 0);
        while after < head {
            let Ok(read) = read_stretch(&log, after, head);
            assert!(read.read_to > after, "each read goes on");
            found.extend(numbers(&read));
            (after, stretches) = (read.read_to, stretches + 1);
        }
        assert_eq!(found, [1, 1_000_000_001]);
        assert!(stretches <= 4 && log.reads.get() <= 6, "{stretches} stretches, {} reads", log.reads.get());
    }

    #[test]
    fn a_stretch_with_products_is_one_read() {
        let log = TestLog::of(&[3, 5, 300]);
        let Ok(read) = read_stretch(&log, Sequence(0), Sequence(300));
        assert_eq!((numbers(&read), read.forgotten, log.reads.get()), (vec![3, 5], None, 1));
        let Ok(end) = read_stretch(&log, Sequence(299), Sequence(299));
        assert_eq!((end.entries.len(), end.read_to), (0, Sequence(299)));
    }

    #[test]
    fn what_is_forgotten_is_told_up_to_the_next_product() {
        let log = TestLog { forgotten: 700, ..TestLog::of(&[800, 900]) };
        let Ok(read) = read_stretch(&log, Sequence(0), Sequence(900));
        assert_eq!((numbers(&read), read.read_to), (vec![], Sequence(799)));
        assert_eq!(read.forgotten, Some((Sequence(1), Sequence(700))));
    }

    #[test]
    fn forgotten_ranges_of_two_reads_are_one() {
        let range = |from, to| Some((Sequence(from), Sequence(to)));
        assert_eq!(joined(range(1, 5), range(6, 20), Sequence(9)), range(1, 9));
        assert_eq!(joined(range(1, 5), range(10, 20), Sequence(9)), range(1, 5), "behind the end");
        assert_eq!(joined(None, range(6, 8), Sequence(9)), range(6, 8));
        assert_eq!(joined(None, None, Sequence(9)), None);
    }
}
