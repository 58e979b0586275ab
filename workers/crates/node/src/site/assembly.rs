//! Products as they come in: small ones in memory, large ones in a spool file.
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use downburst_model::{ProductInfo, ProductKey, Slabs};

use crate::disk;

/// All products that have begun and are not complete.
pub(super) struct Assemblies {
    spool: PathBuf,
    next_file: u64,
    memory: Slabs,
    open: BTreeMap<ProductKey, Assembly>,
}

/// The bytes of one product.
pub(super) enum Assembly {
    /// In order so far: parts of the buffers they were read into.
    Pieces {
        pieces: Vec<Bytes>,
        length: usize,
        size: usize,
    },
    /// Bytes of any part, each in its place. It has room for all.
    Memory {
        memory: BytesMut,
        size: usize,
    },
    Spooled {
        file: File,
        path: PathBuf,
    },
    /// The bytes could not be kept; the sentence says why.
    Failed(String),
}

/// All bytes of a product.
pub(super) enum Contents<'a> {
    AtHand(Bytes),
    /// To be read once from the start.
    File(&'a mut File),
}

impl Assemblies {
    pub(super) fn new(spool: &Path) -> Self {
        let memory = Slabs::new(SLAB_BYTES, SLABS);
        Self { spool: spool.to_owned(), next_file: 0, memory, open: BTreeMap::new() }
    }

    pub(super) fn begin(&mut self, info: &ProductInfo) {
        let assembly = match usize::try_from(info.size) {
            Ok(size) if size <= MEMORY_LIMIT_BYTES => {
                Assembly::Pieces { pieces: Vec::new(), length: 0, size }
            }
            _ => self.spooled().unwrap_or_else(|(path, error)| Assembly::failed(&path, &error)),
        };
        self.open.insert(info.key.clone(), assembly);
    }

    pub(super) fn block(&mut self, key: &ProductKey, offset: u64, bytes: Bytes) {
        if let Some(assembly) = self.open.get_mut(key) {
            assembly.write(&mut self.memory, offset, bytes);
        }
    }

    /// Takes a product out, complete or given up.
    pub(super) fn take(&mut self, key: &ProductKey) -> Option<Assembly> {
        self.open.remove(key)
    }

    fn spooled(&mut self) -> Result<Assembly, (PathBuf, io::Error)> {
        let path = self.spool.join(format!("in-{}-{}", std::process::id(), self.next_file));
        self.next_file += 1;
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => Ok(Assembly::Spooled { file, path }),
            Err(error) => Err((path, error)),
        }
    }
}

impl Assembly {
    fn failed(path: &Path, error: &io::Error) -> Self {
        Self::Failed(disk::unwritable(path, error))
    }

    fn write(&mut self, slabs: &mut Slabs, offset: u64, bytes: Bytes) {
        if let Self::Pieces { pieces, length, size } = self {
            let follows = usize::try_from(offset) == Ok(*length) && bytes.len() <= *size - *length;
            if follows && (bytes.len() >= WORTH_SHARING_BYTES || bytes.len() == *size - *length) {
                *length += bytes.len();
                return pieces.push(bytes);
            }
            self.lay_out(slabs);
        }
        let failure = match self {
            Self::Memory { memory, size } => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                if start.saturating_add(bytes.len()) <= *size {
                    lay(memory, start, &bytes);
                }
                None
            }
            Self::Spooled { file, path } => {
                file.write_all_at(&bytes, offset).err().map(|error| Self::failed(path, &error))
            }
            Self::Pieces { .. } | Self::Failed(_) => None,
        };
        if let Some(failure) = failure {
            self.discard();
            *self = failure;
        }
    }

    /// Makes place for bytes of any part.
    fn lay_out(&mut self, slabs: &mut Slabs) {
        if let Self::Pieces { pieces, size, .. } = self {
            let (mut memory, size) = (slabs.take(*size), *size);
            pieces.iter().for_each(|piece| memory.extend_from_slice(piece));
            *self = Self::Memory { memory, size };
        }
    }

    /// What the product is stored from, once all of it is there.
    pub(super) fn contents(&mut self) -> Result<Contents<'_>, String> {
        match self {
            Self::Pieces { pieces, length, .. } => Ok(Contents::AtHand(joined(pieces, *length))),
            Self::Memory { memory, .. } => Ok(Contents::AtHand(memory.split().freeze())),
            Self::Spooled { file, path } => {
                use std::io::Seek as _;
                file.rewind().map_err(|error| format!("{} can't be read: {error}", path.display()))?;
                Ok(Contents::File(file))
            }
            Self::Failed(sentence) => Err(sentence.clone()),
        }
    }

    /// The memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Pieces { length, .. } => *length,
            Self::Memory { size, .. } => *size,
            Self::Spooled { .. } | Self::Failed(_) => 0,
        }
    }

    /// Removes what lies on disk.
    pub(super) fn discard(&mut self) {
        if let Self::Spooled { path, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Puts bytes in their place. What follows what is there needs no zeros before it.
fn lay(memory: &mut BytesMut, start: usize, bytes: &[u8]) {
    if start == memory.len() {
        return memory.extend_from_slice(bytes);
    }
    let end = start.saturating_add(bytes.len());
    if memory.len() < end {
        memory.resize(end, 0);
    }
    if let Some(place) = memory.get_mut(start..end) {
        place.copy_from_slice(bytes);
    }
}

fn joined(pieces: &mut Vec<Bytes>, length: usize) -> Bytes {
    if let [whole] = pieces.as_slice() {
        return whole.clone();
    }
    let mut joined = Vec::with_capacity(length);
    pieces.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
    Bytes::from(joined)
}

/// A smaller piece is copied: it would keep the whole buffer that it was read into.
const WORTH_SHARING_BYTES: usize = 16 << 10;

/// Most products fit; a site with hundreds of them in flight stays far below a gigabyte.
const MEMORY_LIMIT_BYTES: usize = 1 << 20;

/// Memory for products that is used again: 16 MiB at most, beyond that each takes memory of its own.
const SLAB_BYTES: usize = MEMORY_LIMIT_BYTES;
const SLABS: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use downburst_model::*;

    use super::*;

    fn info(size: u64) -> ProductInfo {
        ProductInfo {
            key: ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(1) },
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("h").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
        }
    }

    /// What becomes of blocks of these sizes, taken in order or the last one first.
    fn assembled(dir: &Path, whole: &Bytes, block_bytes: usize, backwards: bool) -> Vec<u8> {
        let mut assemblies = Assemblies::new(dir);
        let info = info(whole.len() as u64);
        assemblies.begin(&info);
        let mut places: Vec<usize> = (0..whole.len()).step_by(block_bytes).collect();
        if backwards {
            places.reverse();
        }
        for at in places {
            let block = whole.slice(at..whole.len().min(at + block_bytes));
            assemblies.block(&info.key, at as u64, block);
        }
        assemblies.block(&info.key, info.size + 7, Bytes::from_static(b"beyond the end"));
        let mut assembly = assemblies.take(&info.key).unwrap();
        let mut read = Vec::new();
        match assembly.contents().unwrap() {
            Contents::AtHand(bytes) => read.extend_from_slice(&bytes),
            Contents::File(file) => drop(file.take(info.size).read_to_end(&mut read).unwrap()),
        }
        assembly.discard();
        read
    }

    #[test]
    fn blocks_in_any_order_make_the_product_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for size in [0, 5_000, 70_000, 200_000, MEMORY_LIMIT_BYTES + 1] {
            let whole: Bytes = (0..size).map(|n| (n % 251) as u8).collect();
            for (block_bytes, backwards) in [(1_400, true), (1_400, false), (65_536, true), (65_536, false)] {
                assert_eq!(assembled(dir.path(), &whole, block_bytes, backwards), whole);
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_block_that_came_before_and_one_that_is_too_long_change_nothing() {
        let mut assemblies = Assemblies::new(Path::new("unused"));
        let (info, whole) = (info(40_000), Bytes::from(vec![7; 40_000]));
        assemblies.begin(&info);
        for (offset, block) in
            [(0, whole.slice(..20_000)), (0, whole.slice(..20_000)), (20_000, whole.clone())]
        {
            assemblies.block(&info.key, offset, block);
        }
        assemblies.block(&info.key, 20_000, whole.slice(20_000..));
        let mut assembly = assemblies.take(&info.key).unwrap();
        assert!(matches!(assembly.contents(), Ok(Contents::AtHand(bytes)) if bytes == whole));
    }

    #[test]
    fn whole_slices_are_not_copied() {
        let mut assemblies = Assemblies::new(Path::new("unused"));
        let (info, whole) = (info(20_000), Bytes::from(vec![7; 20_000]));
        assemblies.begin(&info);
        assemblies.block(&info.key, 0, whole.clone());
        let mut assembly = assemblies.take(&info.key).unwrap();
        assert!(
            matches!(assembly.contents(), Ok(Contents::AtHand(bytes)) if bytes.as_ptr() == whole.as_ptr())
        );
    }
}
