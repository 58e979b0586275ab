//! Checks of the state that survives an end of the writer, eviction and forgetting.

use std::sync::Arc;

use downburst_model::{Epoch, FeedName, ProductKey, Sequence, WallMicros};

use super::{EVERYTHING, Failure, append, digest, product, stored};
use crate::{Appended, NewProduct, ProductLog, SourceStamp};

/// Checks the contents after reopening. `open` always opens the same log, which is new at first and keeps bytes
/// for 24 h and its memory for 168 h; the previous handle is dropped by then. Each opening offers another epoch,
/// which takes effect until a product is stored.
pub fn reopening(open: &dyn Fn() -> Arc<dyn ProductLog>) -> Result<(), Failure> {
    drop(open());
    let (log, key) = (open(), upstream_key()?);
    let small = stored(&*log, "small", b"small", 0)?;
    let large = stored(&*log, "large", &LARGE, 0)?;
    let source = Some(SourceStamp::live(key.clone(), WallMicros(77), None));
    let relayed = NewProduct { source, ..product("relayed")? };
    log.append(relayed, &mut &b"relayed"[..], &|| WallMicros(0))?;
    let before = log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?.entries;
    let life = Life::of(&*log, log.head());
    drop(log);

    let log = life.go_on(open);
    assert_eq!(log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?.entries, before);
    assert_eq!(append(&*log, "large", &LARGE, 0)?, Appended::Duplicate { of: large });
    assert_eq!(log.find_source(&key)?, Some(Sequence(life.head.0)));
    let newest = stored(&*log, "newest", b"newest", 0)?;
    assert!(newest > life.head, "no sequence is given twice");

    let evicted = log.retain(WallMicros(48 * HOUR_MICROS))?;
    assert_eq!((evicted.products, evicted.forgotten_to), (4, None));
    let ends = (evicted.evicted.first().map(|run| run.0), evicted.evicted.last().map(|run| run.1));
    assert_eq!((ends, log.stat().products), ((Some(small), Some(newest)), 0));
    let life = Life::of(&*log, newest);
    drop(log);

    let log = life.go_on(open);
    check_evicted(&*log, &[small, large, life.head])?;
    assert_eq!(append(&*log, "large", &LARGE, 0)?, Appended::Duplicate { of: large }, "the memory is longer");
    let forgotten = log.retain(WallMicros(400 * HOUR_MICROS))?;
    assert!(forgotten.forgotten_to.is_some_and(|to| to >= large), "{forgotten:?}");
    drop(log);

    let log = life.go_on(open);
    check_forgotten(&*log, &[small, large])?;
    let again = stored(&*log, "large", &LARGE, 400 * HOUR_MICROS)?;
    assert!(again > life.head, "not even when all is forgotten");
    let bytes = log.entry(again)?.and_then(|entry| entry.whole());
    assert_eq!(bytes.as_deref(), Some(&LARGE[..]));
    Ok(())
}

/// Values that never change and values that never decrease.
struct Life {
    epoch: Epoch,
    head: Sequence,
}

impl Life {
    fn of(log: &dyn ProductLog, head: Sequence) -> Self {
        assert_eq!(log.head(), head);
        Self { epoch: log.epoch(), head }
    }

    fn go_on(&self, open: &dyn Fn() -> Arc<dyn ProductLog>) -> Arc<dyn ProductLog> {
        let log = open();
        assert_eq!((log.epoch(), log.head()), (self.epoch, self.head));
        log
    }
}

fn check_evicted(log: &dyn ProductLog, sequences: &[Sequence]) -> Result<(), Failure> {
    assert!(log.first() > log.head());
    let batch = log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?;
    assert_eq!((batch.entries.len(), batch.forgotten), (4, None));
    assert!(batch.entries.iter().all(|entry| entry.bytes.is_none()));
    for sequence in sequences {
        let entry = log.entry(*sequence)?.ok_or("remembered")?;
        assert_eq!((entry.bytes, entry.info.key.sequence), (None, *sequence));
    }
    Ok(())
}

fn check_forgotten(log: &dyn ProductLog, sequences: &[Sequence]) -> Result<(), Failure> {
    let batch = log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?;
    let forgotten = batch.forgotten.ok_or("the read reports no forgotten products")?;
    for sequence in sequences {
        assert!((forgotten.from..=forgotten.to).contains(sequence), "{forgotten:?}");
        assert_eq!(log.entry(*sequence)?, None);
    }
    assert_eq!(log.find_duplicate(&product("large")?.id, LARGE.len() as u64, &digest(&LARGE))?, None);
    Ok(())
}

fn upstream_key() -> Result<ProductKey, Failure> {
    Ok(ProductKey { feed: FeedName::parse("UP")?, epoch: Epoch(9), sequence: Sequence(5) })
}

const HOUR_MICROS: i64 = 3_600_000_000;
static LARGE: [u8; 700_000] = [3; 700_000];
