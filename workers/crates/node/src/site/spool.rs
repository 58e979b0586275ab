//! Places of large incoming products: files in a directory of the connection's own, which become the products' bodies
//! in the log.
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use downburst_log::{ContentHasher, SpoolFile};
use downburst_model::RangeSet;
use downburst_site::{PlaceId, PlaceOrder};

use crate::disk;

/// All places.
pub(super) struct Spool {
    directory: PathBuf,
    open: BTreeMap<PlaceId, Spooled>,
}

/// One place.
pub(super) enum Spooled {
    File(Box<SpooledFile>),
    /// The bytes could not be written; the sentence is the reason.
    Failed(String),
}

/// The file of a place.
pub(super) struct SpooledFile {
    file: File,
    path: PathBuf,
    /// For a product so large that reading it again at its end would delay those behind it: the digests of its first
    /// bytes.
    hashed: Option<ContentHasher>,
    /// The bytes written behind those that are hashed.
    ahead: RangeSet,
}

impl Spool {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: BTreeMap::new() }
    }

    pub(super) fn carry_out(&mut self, order: PlaceOrder) {
        match order {
            PlaceOrder::Begin(place, info) => {
                let path = self.directory.join(format!("in-{}-{}", std::process::id(), place.0));
                self.open.insert(place, Spooled::create(path, info.size > READ_AGAIN_BYTES));
            }
            PlaceOrder::Write { place, offset, bytes } => {
                if let Some(spooled) = self.open.get_mut(&place) {
                    spooled.write(offset, &bytes);
                }
            }
            PlaceOrder::Drop(place) => {
                if let Some(mut spooled) = self.open.remove(&place) {
                    spooled.discard();
                }
            }
        }
    }

    /// Removes a place from the spool, to store its product.
    pub(super) fn take(&mut self, place: PlaceId) -> Spooled {
        let spooled = self.open.remove(&place);
        spooled.unwrap_or_else(|| Spooled::Failed("its bytes are not there any more".to_owned()))
    }
}

impl Spooled {
    fn create(path: PathBuf, is_hashed: bool) -> Self {
        let mut options = File::options();
        match options.read(true).write(true).create_new(true).mode(READ_ONLY).open(&path) {
            Ok(file) => {
                let (hashed, ahead) = (is_hashed.then(ContentHasher::default), RangeSet::new());
                Self::File(Box::new(SpooledFile { file, path, hashed, ahead }))
            }
            Err(error) => Self::failed(&path, &error),
        }
    }

    fn failed(path: &Path, error: &io::Error) -> Self {
        Self::Failed(disk::unwritable(path, error))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let Self::File(file) = self else { return };
        if let Err(error) = file.write(offset, bytes) {
            let failure = Self::failed(&file.path, &error);
            self.discard();
            *self = failure;
        }
    }

    /// The complete file, to store its product.
    pub(super) fn contents(&mut self) -> Result<SpoolFile<'_>, String> {
        match self {
            Self::File(spooled) => {
                let hashed = spooled.hashed.take().unwrap_or_default();
                Ok(SpoolFile { path: &spooled.path, file: &spooled.file, is_own: true, hashed })
            }
            Self::Failed(sentence) => Err(sentence.clone()),
        }
    }

    /// Removes the file.
    pub(super) fn discard(&mut self) {
        if let Self::File(spooled) = self {
            let _ = std::fs::remove_file(&spooled.path);
        }
    }
}

impl SpooledFile {
    /// Writes bytes and hashes those that follow the hashed ones. Bytes that are hashed already stay as they are: the
    /// digest is that of the file.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(hashed) = &mut self.hashed else { return self.file.write_all_at(bytes, offset) };
        let known = hashed.hashed_bytes().saturating_sub(offset);
        let Some(new) =
            bytes.get(usize::try_from(known).unwrap_or(usize::MAX)..).filter(|new| !new.is_empty())
        else {
            return Ok(());
        };
        let offset = offset.saturating_add(known);
        self.file.write_all_at(new, offset)?;
        if offset > hashed.hashed_bytes() {
            self.ahead.insert(offset, offset.saturating_add(new.len() as u64 - 1));
            return Ok(());
        }
        hashed.update(new);
        self.catch_up()
    }

    /// Hashes some of the bytes written ahead that follow now. The rest waits for the next call, or for the end.
    fn catch_up(&mut self) -> io::Result<()> {
        let Some(hashed) = &mut self.hashed else { return Ok(()) };
        let from = hashed.hashed_bytes();
        if let Some(before) = from.checked_sub(1) {
            self.ahead.remove(0, before);
        }
        let Some((first, last)) = self.ahead.iter().next().filter(|(first, _)| *first == from) else {
            return Ok(());
        };
        let length = usize::try_from(last - first + 1).unwrap_or(usize::MAX).min(CATCH_UP_BYTES);
        let mut piece = vec![0; length];
        self.file.read_exact_at(&mut piece, first)?;
        hashed.update(&piece);
        Ok(())
    }
}

/// As a body of the log, a file that nobody writes.
const READ_ONLY: u32 = 0o444;
/// Reading this much back from the page cache takes some 20 ms, and checks what the file holds.
const READ_AGAIN_BYTES: u64 = 16 << 20;
/// Some slices: what was lost is repaired in front of many that came.
const CATCH_UP_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_log::{FeedLog, LogOptions, NewProduct, ProductLog as _, contract};
    use downburst_model::*;

    use super::*;

    fn begin(place: PlaceId) -> PlaceOrder {
        begin_of(place, 6)
    }

    fn begin_of(place: PlaceId, size: u64) -> PlaceOrder {
        let key = ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(1) };
        let info = ProductInfo {
            key,
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("h").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        };
        PlaceOrder::Begin(place, info)
    }

    fn write(place: PlaceId, offset: u64, bytes: &'static [u8]) -> PlaceOrder {
        PlaceOrder::Write { place, offset, bytes: Bytes::from_static(bytes) }
    }

    #[test]
    fn ranges_in_any_order_make_the_product_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(directory.path());
        let (taken, dropped) = (PlaceId(1), PlaceId(2));
        [begin(taken), begin(dropped), write(taken, 3, b"def"), write(dropped, 0, b"x")]
            .into_iter()
            .chain([write(taken, 0, b"abc"), PlaceOrder::Drop(dropped)])
            .for_each(|order| spool.carry_out(order));
        let mut spooled = spool.take(taken);
        assert_eq!(contents(&mut spooled), b"abcdef");
        spooled.discard();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn contents(spooled: &mut Spooled) -> Vec<u8> {
        let SpoolFile { file, path, .. } = spooled.contents().unwrap();
        let mut read = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), read);
        read
    }

    #[test]
    fn the_digest_is_that_of_the_file_whatever_comes_when_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let whole: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let piece = |at: usize| (at, at.saturating_add(7_000).min(whole.len()));
        let forwards: Vec<(usize, usize)> = (0..whole.len()).step_by(7_000).map(piece).collect();
        let (even, odd): (Vec<_>, Vec<_>) = forwards.iter().partition(|(at, _)| (at / 7_000) % 2 == 0);
        let overlapping = (0..whole.len()).step_by(5_000).map(piece).collect();
        let backwards = forwards.iter().rev().copied().collect();
        let orders: [Vec<(usize, usize)>; 4] = [forwards, [odd, even].concat(), overlapping, backwards];
        for (number, order) in (0..).zip(orders) {
            let place = PlaceId(number);
            let mut spool = Spool::new(directory.path());
            // Large enough to be hashed on its way.
            spool.carry_out(begin_of(place, READ_AGAIN_BYTES + 1));
            for (from, to) in order {
                let bytes = Bytes::copy_from_slice(&whole[from..to]);
                spool.carry_out(PlaceOrder::Write { place, offset: from as u64, bytes });
            }
            // A member of a group may send another block in place of one that came.
            spool.carry_out(write(place, 0, b"forged"));
            let mut spooled = spool.take(place);
            let found = contents(&mut spooled);
            assert_eq!(found[6..], whole[6..]);
            assert!(number == 3 || found == whole, "bytes that were hashed are not replaced");
            store(&directory.path().join(format!("log-{number}")), &mut spooled, &found);
        }
    }

    /// Stores the product in a log, which computes the rest of the digest.
    fn store(log: &Path, spooled: &mut Spooled, wanted: &[u8]) {
        let feed = FeedName::parse("F").unwrap();
        let (log, _) = FeedLog::open(log, feed, LogOptions::default(), 1).unwrap();
        let digest = Digest(*blake3::hash(wanted).as_bytes());
        let product = NewProduct { expected_digest: Some(digest), ..contract::product("x").unwrap() };
        log.append_file(product, spooled.contents().unwrap(), &|| WallMicros(0)).unwrap();
        spooled.discard();
        assert_eq!(log.entry(log.head()).unwrap().unwrap().whole().unwrap(), wanted);
    }

    #[test]
    fn a_place_that_can_not_be_made_says_why_when_it_is_stored_from() {
        let mut spool = Spool::new(Path::new("/no/such/directory"));
        [begin(PlaceId(1)), write(PlaceId(1), 0, b"abc")]
            .into_iter()
            .for_each(|order| spool.carry_out(order));
        assert!(spool.take(PlaceId(1)).contents().is_err_and(|it| it.contains("/no/such/directory")));
    }
}
