//! Products as they come in: small ones in memory, large ones in a spool file.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use downburst_model::{ProductInfo, ProductKey};

use crate::disk;

/// All products that have begun and are not complete.
pub(super) struct Assemblies {
    spool: PathBuf,
    next_file: u64,
    open: BTreeMap<ProductKey, Assembly>,
}

/// The bytes of one product.
pub(super) enum Assembly {
    Memory(Vec<u8>),
    Spooled {
        file: File,
        path: PathBuf,
    },
    /// The bytes could not be kept; the sentence says why.
    Failed(String),
}

impl Assemblies {
    pub(super) fn new(spool: &Path) -> Self {
        Self { spool: spool.to_owned(), next_file: 0, open: BTreeMap::new() }
    }

    pub(super) fn begin(&mut self, info: &ProductInfo) {
        let assembly = match usize::try_from(info.size) {
            Ok(size) if size <= MEMORY_LIMIT_BYTES => Assembly::Memory(vec![0; size]),
            _ => self.spooled().unwrap_or_else(|(path, error)| Assembly::failed(&path, &error)),
        };
        self.open.insert(info.key.clone(), assembly);
    }

    pub(super) fn block(&mut self, key: &ProductKey, offset: u64, bytes: &[u8]) {
        if let Some(assembly) = self.open.get_mut(key) {
            assembly.write(offset, bytes);
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

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let failure = match self {
            Self::Memory(memory) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                if let Some(place) = memory.get_mut(start..start.saturating_add(bytes.len())) {
                    place.copy_from_slice(bytes);
                }
                None
            }
            Self::Spooled { file, path } => {
                file.write_all_at(bytes, offset).err().map(|error| Self::failed(path, &error))
            }
            Self::Failed(_) => None,
        };
        if let Some(failure) = failure {
            self.discard();
            *self = failure;
        }
    }

    /// The bytes, to be read once from the start.
    pub(super) fn reader(&self) -> Result<Box<dyn Read + '_>, String> {
        match self {
            Self::Memory(memory) => Ok(Box::new(Cursor::new(memory))),
            Self::Spooled { file, path } => {
                use std::io::Seek as _;
                let mut file = file;
                file.rewind().map_err(|error| format!("{} can't be read: {error}", path.display()))?;
                Ok(Box::new(file))
            }
            Self::Failed(sentence) => Err(sentence.clone()),
        }
    }

    /// The memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(memory) => memory.len(),
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

/// Most products fit; a site with hundreds of them in flight stays far below a gigabyte.
const MEMORY_LIMIT_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
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
        }
    }

    #[test]
    fn blocks_in_any_order_make_the_product_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for size in [0, 5_000, MEMORY_LIMIT_BYTES as u64 + 1] {
            let mut assemblies = Assemblies::new(dir.path());
            let info = info(size);
            let whole: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            assemblies.begin(&info);
            for (index, block) in whole.chunks(1_400).enumerate().rev() {
                assemblies.block(&info.key, index as u64 * 1_400, block);
            }
            assemblies.block(&info.key, size + 7, b"beyond the end");
            let mut assembly = assemblies.take(&info.key).unwrap();
            let mut read = Vec::new();
            assembly.reader().unwrap().take(size).read_to_end(&mut read).unwrap();
            assert_eq!(read, whole);
            assembly.discard();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
