//! `ldm fetch`: stores a server's products as files, and resumes after the last product of the previous run.
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use downburst_ldm6::{Interest, ProductInfo, Signature, Taken};
use downburst_model::{Micros, file_names};

use super::watch::{Watch, Wish};
use super::{FetchArguments, Outcome, Stop, as_json};

pub(super) fn run(arguments: &FetchArguments) -> Outcome {
    let mut directory = Directory::open(&arguments.to)?;
    let mut watch = Watch::new(&Wish {
        server: &arguments.server,
        feed: arguments.feed,
        pattern: &arguments.pattern,
        interest: Interest::Products,
        resume: directory.resume,
        since: Micros::from_secs(u64::from(arguments.since)),
    })?;
    let mut stored = 0_u64;
    while arguments.count.is_none_or(|count| stored < count) {
        match watch.next()? {
            Taken::Begins(info) => directory.begin(info)?,
            Taken::Bytes(bytes) => directory.write(&bytes)?,
            Taken::Ends => {
                if let Some((info, path)) = directory.end()? {
                    watch.settled(info.signature);
                    tell(&info, &path)?;
                    stored = stored.saturating_add(1);
                }
            }
            Taken::Broken => directory.forget(),
            Taken::Offered(info) => watch.decided(directory.lacks(&info)),
            Taken::Dropped(..) | Taken::Notified(_) => {}
        }
    }
    Ok(())
}

/// A directory of products: each appears complete, followed by the resume point.
struct Directory {
    dir: PathBuf,
    resume: Option<Signature>,
    begun: Option<(ProductInfo, File)>,
}

impl Directory {
    fn open(dir: &Path) -> Result<Self, Stop> {
        fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
        let resume = fs::read_to_string(dir.join(RESUME)).ok().and_then(|text| text.trim().parse().ok());
        Ok(Self { dir: dir.to_owned(), resume, begun: None })
    }

    fn begin(&mut self, info: ProductInfo) -> Outcome {
        let path = self.dir.join(BEGUN);
        let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
        self.begun = Some((info, file));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        let Some((_, file)) = &mut self.begun else { return Ok(()) };
        file.write_all(bytes).map_err(|error| unwritable(&self.dir, &error))
    }

    /// Moves the product to its final name. An existing file is the same product: the name contains the signature.
    fn end(&mut self) -> Result<Option<(ProductInfo, PathBuf)>, Stop> {
        let Some((info, _)) = self.begun.take() else { return Ok(None) };
        let path = self.dir.join(name(&info));
        fs::rename(self.dir.join(BEGUN), &path).map_err(|error| unwritable(&path, &error))?;
        let (aside, place) = (self.dir.join(RESUME_ASIDE), self.dir.join(RESUME));
        fs::write(&aside, info.signature.to_string()).map_err(|error| unwritable(&aside, &error))?;
        fs::rename(&aside, &place).map_err(|error| unwritable(&place, &error))?;
        Ok(Some((info, path)))
    }

    fn lacks(&self, info: &ProductInfo) -> bool {
        !self.dir.join(name(info)).exists()
    }

    fn forget(&mut self) {
        self.begun = None;
    }
}

/// The product's file name, never a path. An id that is too long for a name is cut; the printed line has all of it.
fn name(info: &ProductInfo) -> String {
    let mut id = file_names::encode(&info.ident.text());
    id.truncate(LONGEST_ID);
    format!("{}_{id}", info.signature)
}

fn tell(info: &ProductInfo, path: &Path) -> Outcome {
    let mut line = as_json(info);
    if let Some(fields) = line.as_object_mut() {
        fields.insert("file".to_owned(), path.to_string_lossy().into());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::Failed(format!(
        "{} can't be written: {error}; make room there or name another --to",
        path.display()
    ))
}

/// The product in transfer. Programs that watch directories ignore names that begin with a dot.
const BEGUN: &str = ".coming";

/// The signature of the last product.
const RESUME: &str = ".resume";
const RESUME_ASIDE: &str = ".resume-aside";

/// With the signature before it, a name stays below 255 bytes.
const LONGEST_ID: usize = 200;

#[cfg(test)]
mod tests {
    use downburst_ldm6::Ident;

    use super::*;

    fn product(id: &str, signature: u8) -> ProductInfo {
        let ident = Ident::new(id.to_owned()).unwrap();
        ProductInfo { ident, signature: Signature([signature; 16]), ..ProductInfo::default() }
    }

    #[test]
    fn names_are_no_paths_and_bounded() {
        assert_eq!(name(&product("../a b", 7)), format!("{}_%2E.%2Fa%20b", "07".repeat(16)));
        assert!(name(&product(&"/".repeat(255), 7)).len() <= 255);
    }

    #[test]
    fn a_product_appears_whole_and_is_where_the_next_run_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut directory = Directory::open(dir.path()).unwrap();
        assert_eq!(directory.resume, None);
        directory.begin(product("a", 1)).unwrap();
        directory.write(b"half").unwrap();
        directory.forget();
        assert!(directory.end().unwrap().is_none(), "it is not whole");
        directory.begin(product("b", 2)).unwrap();
        directory.write(b"one ").unwrap();
        directory.write(b"two").unwrap();
        let (_, path) = directory.end().unwrap().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"one two");
        assert!(directory.lacks(&product("a", 1)) && !directory.lacks(&product("b", 2)));
        assert_eq!(Directory::open(dir.path()).unwrap().resume, Some(Signature([2; 16])));
    }
}
