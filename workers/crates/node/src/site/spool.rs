//! Places of large incoming products: files in a directory of the connection's own.
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use downburst_site::{PlaceId, PlaceOrder};

use crate::disk;

/// All places.
pub(super) struct Spool {
    directory: PathBuf,
    open: BTreeMap<PlaceId, Spooled>,
}

/// One place.
pub(super) enum Spooled {
    File {
        file: File,
        path: PathBuf,
    },
    /// The bytes could not be written; the sentence is the reason.
    Failed(String),
}

impl Spool {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: BTreeMap::new() }
    }

    pub(super) fn carry_out(&mut self, order: PlaceOrder) {
        match order {
            PlaceOrder::Begin(place, _) => {
                let path = self.directory.join(format!("in-{}-{}", std::process::id(), place.0));
                self.open.insert(place, Spooled::create(path));
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
    fn create(path: PathBuf) -> Self {
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => Self::File { file, path },
            Err(error) => Self::failed(&path, &error),
        }
    }

    fn failed(path: &Path, error: &io::Error) -> Self {
        Self::Failed(disk::unwritable(path, error))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let Self::File { file, path } = self else { return };
        if let Err(error) = file.write_all_at(bytes, offset) {
            let failure = Self::failed(path, &error);
            self.discard();
            *self = failure;
        }
    }

    /// The bytes, for one read from the start.
    pub(super) fn contents(&mut self) -> Result<&mut File, String> {
        match self {
            Self::File { file, path } => {
                use std::io::Seek as _;
                file.rewind().map_err(|error| format!("{} can't be read: {error}", path.display()))?;
                Ok(file)
            }
            Self::Failed(sentence) => Err(sentence.clone()),
        }
    }

    /// Removes the file.
    pub(super) fn discard(&mut self) {
        if let Self::File { path, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use bytes::Bytes;
    use downburst_model::*;

    use super::*;

    fn begin(place: PlaceId) -> PlaceOrder {
        let key = ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(1) };
        let info = ProductInfo {
            key,
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("h").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size: 6,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
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
        let mut read = String::new();
        spooled.contents().unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, "abcdef");
        spooled.discard();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_can_not_be_made_says_why_when_it_is_stored_from() {
        let mut spool = Spool::new(Path::new("/no/such/directory"));
        [begin(PlaceId(1)), write(PlaceId(1), 0, b"abc")]
            .into_iter()
            .for_each(|order| spool.carry_out(order));
        assert!(spool.take(PlaceId(1)).contents().unwrap_err().contains("/no/such/directory"));
    }
}
