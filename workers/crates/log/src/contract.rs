//! The requirements on every [`ProductLog`], as two suites that any implementation can run: [`suite`] and
//! [`reopening`].
//!
//! They assert; call them from a test. [`suite`] needs logs with the default duplicate rule (id and content)
//! and with room for a few thousand small products.

mod reopening;

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use bytes::Bytes;
use downburst_model::{
    Class, Digest, Epoch, FeedName, Lane, NameError, Origin, ProductId, ProductKey, Sequence, WallMicros,
};

use crate::{Appended, LogEntry, LogError, NewProduct, ProductLog, SourceStamp};

pub use reopening::reopening;

/// The reason why the suite could not run. A fault of the log is a failed assertion instead.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs every check, each on a log of its own that `fresh` makes.
pub fn suite(fresh: &dyn Fn() -> Arc<dyn ProductLog>) -> Result<(), Failure> {
    an_empty_log_answers(&*fresh())?;
    products_come_back_in_order(&*fresh())?;
    limits_stop_a_read(&*fresh())?;
    equal_products_are_stored_once(&*fresh())?;
    empty_products_are_never_duplicates(&*fresh())?;
    upstream_keys_are_stored_once(&*fresh())?;
    refused_products_leave_no_trace(&*fresh())?;
    the_stamp_is_taken_when_the_product_is_complete(&*fresh())?;
    time_finds_a_cursor(&*fresh())?;
    listeners_hear_every_append(&*fresh())?;
    a_group_is_appended_in_order(&*fresh())?;
    each_product_of_a_group_has_its_own_result(&*fresh())?;
    a_resend_is_stored_once_more_and_once_only(&*fresh())?;
    readers_run_beside_the_writer(fresh())
}

/// A product for tests, without announced size or digest.
pub fn product(id: &str) -> Result<NewProduct, NameError> {
    Ok(NewProduct {
        id: ProductId::parse(id)?,
        origin: Origin::parse("origin.example")?,
        created: WallMicros(1_000),
        class: Class::Observation,
        source: None,
        hops: None,
        ldm: None,
        properties: None,
        expected_size: None,
        expected_digest: None,
    })
}

/// The digest of some bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest(*blake3::hash(bytes).as_bytes())
}

fn an_empty_log_answers(log: &dyn ProductLog) -> Result<(), Failure> {
    assert_eq!(log.head(), Sequence(0));
    assert!(log.first() > log.head());
    let batch = log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?;
    assert!(batch.entries.is_empty());
    assert_eq!((batch.read_to, batch.forgotten), (Sequence(0), None));
    assert_eq!(log.entry(Sequence(1))?, None);
    assert_eq!(log.find_time(WallMicros(0)), Sequence(0));
    assert_eq!(log.stat().products, 0);
    Ok(())
}

fn products_come_back_in_order(log: &dyn ProductLog) -> Result<(), Failure> {
    let sizes = [0_usize, 1, 7, 8, 9, 4_096, 300_000];
    let contents: Vec<Vec<u8>> = sizes.iter().map(|size| vec![*size as u8; *size]).collect();
    let mut given = Vec::new();
    for (n, content) in contents.iter().enumerate() {
        given.push(stored(log, &format!("product {n}"), content, n as i64)?);
    }
    assert!(given.is_sorted_by(|a, b| a < b) && given.first().is_some_and(|first| *first >= Sequence(1)));
    assert_eq!(Some(&log.head()), given.last());
    let batch = log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?;
    assert_eq!(batch.read_to, log.head());
    assert_eq!(batch.entries.len(), contents.len());
    for (n, (entry, content)) in batch.entries.iter().zip(&contents).enumerate() {
        check_entry(log, entry, n, content)?;
        assert_eq!(log.entry(entry.info.key.sequence)?.as_ref(), Some(entry));
    }
    Ok(())
}

fn check_entry(log: &dyn ProductLog, entry: &LogEntry, n: usize, content: &[u8]) -> Result<(), Failure> {
    assert_eq!(entry.whole().as_deref(), Some(content));
    assert_eq!(entry.info.id.as_str(), format!("product {n}"));
    assert_eq!((&entry.info.key.feed, entry.info.key.epoch), (log.feed(), log.epoch()));
    assert_eq!((entry.info.size, entry.info.digest), (content.len() as u64, digest(content)));
    assert_eq!((entry.info.created, entry.info.stored), (WallMicros(1_000), WallMicros(n as i64)));
    assert_eq!((entry.info.class, &entry.source), (Class::Observation, &None));
    Ok(())
}

fn limits_stop_a_read(log: &dyn ProductLog) -> Result<(), Failure> {
    let given = (0..5).map(|n| stored(log, &format!("{n}"), &[n; 100], 0)).collect::<Result<Vec<_>, _>>()?;
    let head = log.head();
    let read = |after, to, bytes, entries| -> Result<(Vec<Sequence>, Sequence), LogError> {
        let batch = log.read(after, to, bytes, entries)?;
        Ok((batch.entries.iter().map(|entry| entry.info.key.sequence).collect(), batch.read_to))
    };
    let first = given.first().copied().unwrap_or_default();
    let third = given.get(2).copied().unwrap_or_default();
    assert_eq!(read(Sequence(0), EVERYTHING, 250, 100)?.0, given.iter().take(2).copied().collect::<Vec<_>>());
    assert_eq!(read(Sequence(0), EVERYTHING, 1, 100)?, (vec![first], first), "at least one");
    assert_eq!(read(Sequence(0), EVERYTHING, usize::MAX, 3)?.1, third);
    assert_eq!(read(third, EVERYTHING, usize::MAX, 100)?, (given.iter().skip(3).copied().collect(), head));
    assert_eq!(read(Sequence(0), third, usize::MAX, 100)?.1, third);
    assert_eq!(read(head, EVERYTHING, 1, 1)?, (Vec::new(), head));
    let large = stored(log, "large", &[1; 100], 0)?;
    stored(log, "empty", b"", 0)?;
    assert_eq!(read(head, EVERYTHING, 50, 100)?.1, large, "nothing follows a product beyond the limit");
    let head = log.head();
    let beyond = Sequence(head.0 + 10);
    assert_eq!(read(beyond, EVERYTHING, 1, 1)?, (Vec::new(), beyond), "a cursor never goes back");
    Ok(())
}

fn equal_products_are_stored_once(log: &dyn ProductLog) -> Result<(), Failure> {
    let of = stored(log, "a", b"content", 0)?;
    assert_eq!(append(log, "a", b"content", 0)?, Appended::Duplicate { of });
    let id = ProductId::parse("a")?;
    assert_eq!(log.find_duplicate(&id, 7, &digest(b"content"))?, Some(of));
    assert_eq!(log.find_duplicate(&id, 5, &digest(b"other"))?, None);
    assert_eq!(log.head(), of);
    stored(log, "b", b"content", 0)?;
    stored(log, "a", b"other", 0)?;
    Ok(())
}

fn empty_products_are_never_duplicates(log: &dyn ProductLog) -> Result<(), Failure> {
    let first = stored(log, "a", b"", 0)?;
    let second = stored(log, "a", b"", 0)?;
    assert!(second > first);
    Ok(())
}

fn upstream_keys_are_stored_once(log: &dyn ProductLog) -> Result<(), Failure> {
    let key = |sequence| -> Result<ProductKey, NameError> {
        Ok(ProductKey { feed: FeedName::parse("UP")?, epoch: Epoch(9), sequence: Sequence(sequence) })
    };
    let from = |sequence, id| -> Result<NewProduct, NameError> {
        let source = SourceStamp::live(key(sequence)?, WallMicros(77), Some(WallMicros(78)));
        Ok(NewProduct { source: Some(source), ..product(id)? })
    };
    let first = log.append(from(5, "empty")?, &mut &b""[..], &|| WallMicros(0))?;
    let Appended::Stored { sequence: of, .. } = first else { return Err("the first is no duplicate".into()) };
    let again = log.append(from(5, "empty")?, &mut &b""[..], &|| WallMicros(0))?;
    assert_eq!(again, Appended::Duplicate { of }, "a repeated delivery, even of an empty product");
    assert_eq!(log.find_source(&key(5)?)?, Some(of));
    assert_eq!(log.find_source(&key(6)?)?, None);
    let other = log.append(from(6, "empty")?, &mut &b""[..], &|| WallMicros(0))?;
    assert!(matches!(other, Appended::Stored { .. }), "another empty product");
    let kept = log.entry(of)?.and_then(|entry| entry.source);
    assert_eq!(kept, from(5, "empty")?.source);
    Ok(())
}

fn refused_products_leave_no_trace(log: &dyn ProductLog) -> Result<(), Failure> {
    let good = stored(log, "good", b"good", 0)?;
    let append = |product, bytes: &mut dyn Read| log.append(product, bytes, &|| WallMicros(0));
    let announced = NewProduct { expected_digest: Some(digest(b"right")), ..product("wrong digest")? };
    assert!(matches!(append(announced, &mut &b"wrong"[..]), Err(LogError::DigestMismatch { .. })));
    for content in [&b"four"[..], b"longer"] {
        let announced = NewProduct { expected_size: Some(5), ..product("wrong size")? };
        assert!(matches!(append(announced, &mut &*content), Err(LogError::SizeMismatch { expected: 5, .. })));
    }
    let torn = &mut io::repeat(7).take(600_000).chain(Failing);
    assert!(matches!(append(product("torn")?, torn), Err(LogError::Source { .. })));
    assert_eq!(log.head(), good);
    assert_eq!(log.read(Sequence(0), EVERYTHING, usize::MAX, usize::MAX)?.entries.len(), 1);
    let announced = NewProduct {
        expected_digest: Some(digest(b"right")),
        expected_size: Some(5),
        ..product("wrong digest")?
    };
    let retried = append(announced, &mut &b"right"[..])?;
    assert!(matches!(retried, Appended::Stored { .. }), "a refused product may come again");
    let bytes = log.entry(log.head())?.and_then(|entry| entry.whole());
    assert_eq!(bytes.as_deref(), Some(&b"right"[..]));
    Ok(())
}

fn the_stamp_is_taken_when_the_product_is_complete(log: &dyn ProductLog) -> Result<(), Failure> {
    let read_bytes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&read_bytes);
    let mut bytes = Counting { rest: 700_000, counted };
    let appended =
        log.append(product("slow")?, &mut bytes, &|| WallMicros(read_bytes.load(Ordering::SeqCst) as i64))?;
    let Appended::Stored { info, sequence } = appended else { return Err("no duplicate".into()) };
    assert_eq!(info.stored, WallMicros(700_000));
    assert_eq!(log.entry(sequence)?.map(|entry| entry.info), Some(info));
    Ok(())
}

fn time_finds_a_cursor(log: &dyn ProductLog) -> Result<(), Failure> {
    let stamps = [10, 20, 20, 30, 25, 40];
    for (n, stamp) in stamps.iter().enumerate() {
        stored(log, &format!("{n}"), b"x", *stamp)?;
    }
    for moment in [i64::MIN, 0, 10, 11, 20, 21, 26, 30, 31, 40, 41, i64::MAX] {
        let cursor = log.find_time(WallMicros(moment));
        let rest = log.read(cursor, EVERYTHING, usize::MAX, usize::MAX)?.entries;
        let expected = stamps.iter().skip_while(|stamp| **stamp < moment).count();
        assert_eq!(rest.len(), expected, "from {moment} on");
    }
    Ok(())
}

fn listeners_hear_every_append(log: &dyn ProductLog) -> Result<(), Failure> {
    let heard = Arc::new(AtomicU64::new(0));
    let mirror = Arc::clone(&heard);
    log.on_append(Box::new(move |head| mirror.store(head.0, Ordering::SeqCst)));
    for n in 0..3 {
        let sequence = stored(log, &format!("{n}"), b"x", 0)?;
        assert_eq!(heard.load(Ordering::SeqCst), sequence.0);
    }
    append(log, "0", b"x", 0)?;
    assert_eq!(heard.load(Ordering::SeqCst), log.head().0);
    Ok(())
}

fn a_group_is_appended_in_order(log: &dyn ProductLog) -> Result<(), Failure> {
    assert!(log.append_all(Vec::new(), &|| WallMicros(0)).is_empty());
    let heard = Arc::new(AtomicU64::new(0));
    let mirror = Arc::clone(&heard);
    log.on_append(Box::new(move |head| mirror.store(head.0, Ordering::SeqCst)));
    let before = stored(log, "before", b"before", 1)?;
    let contents: Vec<Bytes> =
        (0..GROUP_PRODUCTS).map(|n| Bytes::from(vec![n as u8; n * 61 % 4_000 + 1])).collect();
    let named = |n: usize| product(&format!("product {n}"));
    let group = contents.iter().enumerate().map(|(n, content)| Ok((named(n)?, content.clone())));
    let appended = log.append_all(group.collect::<Result<_, NameError>>()?, &|| WallMicros(2));
    assert_eq!(heard.load(Ordering::SeqCst), log.head().0);
    let after = stored(log, "after", b"after", 3)?;
    let entries = log.read(before, Sequence(after.0 - 1), usize::MAX, usize::MAX)?.entries;
    assert_eq!((entries.len(), appended.len()), (GROUP_PRODUCTS, GROUP_PRODUCTS));
    for (n, (entry, appended)) in entries.iter().zip(appended).enumerate() {
        let Appended::Stored { sequence, info } = appended? else { return Err("no duplicate".into()) };
        assert_eq!((&info, sequence), (&entry.info, entry.info.key.sequence));
        assert_eq!((entry.info.id.as_str(), entry.info.stored), (&*format!("product {n}"), WallMicros(2)));
        assert_eq!(
            (entry.whole(), Some(info.digest)),
            (contents.get(n).cloned(), contents.get(n).map(|it| digest(it)))
        );
        assert_eq!(log.find_duplicate(&info.id, info.size, &info.digest)?, Some(sequence));
    }
    Ok(())
}

fn a_resend_is_stored_once_more_and_once_only(log: &dyn ProductLog) -> Result<(), Failure> {
    let key = ProductKey { feed: FeedName::parse("UP")?, epoch: Epoch(9), sequence: Sequence(5) };
    let live = SourceStamp::live(key.clone(), WallMicros(77), None);
    let by = |resend| SourceStamp { lane: Some(Lane::Resend), resend, ..live.clone() };
    let append = |source: SourceStamp, together: bool| -> Result<Appended, Failure> {
        let product = NewProduct { source: Some(source), ..product("resent")? };
        if together {
            let mut results = log.append_all(vec![(product, Bytes::from_static(b"r"))], &|| WallMicros(0));
            return Ok(results.pop().ok_or("one result")??);
        }
        Ok(log.append(product, &mut &b"r"[..], &|| WallMicros(0))?)
    };
    let Appended::Stored { sequence: first, .. } = append(live.clone(), false)? else {
        return Err("new".into());
    };
    for (resend, together) in [(Some(1), false), (Some(2), true)] {
        let Appended::Stored { sequence, .. } = append(by(resend), together)? else {
            return Err("a resend is no duplicate, though id and bytes are the same".into());
        };
        for together in [false, true] {
            assert_eq!(append(by(resend), together)?, Appended::Duplicate { of: sequence });
        }
        let entry = log.entry(sequence)?.ok_or("stored")?;
        assert_eq!(entry.source, Some(by(resend)));
    }
    assert_eq!(append(live, false)?, Appended::Duplicate { of: first });
    assert_eq!(log.find_source(&key)?, Some(first));
    Ok(())
}

fn each_product_of_a_group_has_its_own_result(log: &dyn ProductLog) -> Result<(), Failure> {
    let known = stored(log, "known", b"known", 0)?;
    let results = log.append_all(mixed_group()?, &|| WallMicros(0));
    let entries = log.read(known, EVERYTHING, usize::MAX, usize::MAX)?.entries;
    let ids: Vec<&str> = entries.iter().map(|entry| entry.info.id.as_str()).collect();
    assert_eq!(ids, ["first", "upstream", "empty", "empty", "last"]);
    let sequences: Vec<Sequence> = entries.iter().map(|entry| entry.info.key.sequence).collect();
    let [first, upstream, empty, empty_too, last] = *sequences.as_slice() else { return Err("five".into()) };
    let outcomes: Vec<Result<Sequence, &str>> = results.iter().map(outcome).collect();
    assert_eq!(
        outcomes,
        [
            Ok(first),
            Err("duplicate"),
            Err("digest"),
            Ok(upstream),
            Err("duplicate"),
            Err("size"),
            Err("duplicate"),
            Ok(empty),
            Ok(empty_too),
            Ok(last)
        ]
    );
    let repeats: Vec<Sequence> = results.iter().filter_map(repeated).collect();
    assert_eq!(repeats, [known, first, upstream]);
    assert_eq!(log.head(), last);
    Ok(())
}

/// New, known and repeated products, two without the announced digest or size, and one of an upstream twice.
fn mixed_group() -> Result<Vec<(NewProduct, Bytes)>, NameError> {
    let of = |id, bytes: &'static [u8]| -> Result<(NewProduct, Bytes), NameError> {
        Ok((product(id)?, Bytes::from_static(bytes)))
    };
    let wrong = NewProduct { expected_digest: Some(digest(b"right")), ..product("wrong digest")? };
    let short = NewProduct { expected_size: Some(9), ..product("wrong size")? };
    let upstream = |id| -> Result<NewProduct, NameError> {
        let key = ProductKey { feed: FeedName::parse("UP")?, epoch: Epoch(9), sequence: Sequence(5) };
        let source = Some(SourceStamp::live(key, WallMicros(77), None));
        Ok(NewProduct { source, ..product(id)? })
    };
    Ok(vec![
        of("first", b"first")?,
        of("known", b"known")?,
        (wrong, Bytes::from_static(b"wrong")),
        (upstream("upstream")?, Bytes::new()),
        of("first", b"first")?,
        (short, Bytes::from_static(b"short")),
        (upstream("upstream again")?, Bytes::from_static(b"other")),
        of("empty", b"")?,
        of("empty", b"")?,
        of("last", b"last")?,
    ])
}

fn outcome(result: &Result<Appended, LogError>) -> Result<Sequence, &'static str> {
    match result {
        Ok(Appended::Stored { sequence, .. }) => Ok(*sequence),
        Ok(Appended::Duplicate { .. }) => Err("duplicate"),
        Err(LogError::DigestMismatch { .. }) => Err("digest"),
        Err(LogError::SizeMismatch { .. }) => Err("size"),
        Err(_) => Err("another error"),
    }
}

fn repeated(result: &Result<Appended, LogError>) -> Option<Sequence> {
    match result {
        Ok(Appended::Duplicate { of }) => Some(*of),
        _ => None,
    }
}

fn readers_run_beside_the_writer(log: Arc<dyn ProductLog>) -> Result<(), Failure> {
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| follow(&*log, CONCURRENT_PRODUCTS))).collect();
        for n in 0..CONCURRENT_PRODUCTS {
            let content = vec![n as u8; n * 37 % 5_000 + 1];
            stored(&*log, &format!("{n}"), &content, 0)?;
        }
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        Ok(())
    })
}

/// Reads by cursor until all products were seen once, in order and whole.
fn follow(log: &dyn ProductLog, count: usize) -> Result<(), Failure> {
    let (mut cursor, mut seen) = (Sequence(0), 0);
    while seen < count {
        let batch = log.read(cursor, EVERYTHING, 64 << 10, 16)?;
        for entry in &batch.entries {
            assert_eq!(entry.info.id.as_str(), format!("{seen}"));
            assert_eq!(entry.whole().as_deref().map(digest), Some(entry.info.digest));
            seen += 1;
        }
        assert!(batch.read_to >= cursor);
        cursor = batch.read_to;
        if batch.entries.is_empty() {
            thread::yield_now();
        }
    }
    assert_eq!(seen, count);
    Ok(())
}

fn append(log: &dyn ProductLog, id: &str, bytes: &[u8], now: i64) -> Result<Appended, Failure> {
    Ok(log.append(product(id)?, &mut &*bytes, &|| WallMicros(now))?)
}

fn stored(log: &dyn ProductLog, id: &str, bytes: &[u8], now: i64) -> Result<Sequence, Failure> {
    match append(log, id, bytes, now)? {
        Appended::Stored { sequence, info } => {
            assert_eq!(info.key.sequence, sequence);
            Ok(sequence)
        }
        Appended::Duplicate { of } => Err(format!("{id} was taken for a duplicate of {of:?}").into()),
    }
}

/// A source that fails.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    }
}

/// A source that counts the bytes read from it.
struct Counting {
    rest: usize,
    counted: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.min(buffer.len()).min(1_000);
        self.rest -= count;
        self.counted.fetch_add(count as u64, Ordering::SeqCst);
        buffer.iter_mut().take(count).for_each(|byte| *byte = 3);
        Ok(count)
    }
}

const EVERYTHING: Sequence = Sequence(u64::MAX);
const CONCURRENT_PRODUCTS: usize = 400;
/// More than fit into one write.
const GROUP_PRODUCTS: usize = 1_100;
