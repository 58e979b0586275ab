//! The way of a product's bytes from the site's log to its file: a clone or a second name of the body, or a copy.
//!
//! A clone shares the blocks of the body until one of the two is written. A second name is the body itself: its space
//! returns when both names are gone, and a consumer that writes to the file in place damages the log, which the scrub
//! finds. A copy has neither property and costs a further write.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downburst_log::disk::{self, File};
use downburst_model::Content;
/// The way that the site's administrator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileMode {
    /// Clone where the file system can, else a second name (hard link), else copy.
    Clone,
    /// A second name (hard link), else copy.
    Link,
    /// Copy.
    Copy,
}

/// The way that the file system allows, and the reason if it is not the one asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placing {
    pub(crate) asked: FileMode,
    pub(crate) used: FileMode,
    pub(crate) reason: Option<String>,
}

impl FileMode {
    /// The mode of a site: as given, else as it was before, else clones for a new site and copies for one that was set
    /// up before there was a choice. The choice is kept.
    pub(crate) fn settle(directory: &Path, given: Option<Self>, is_new: bool) -> io::Result<Self> {
        let path = directory.join("state").join("file-mode");
        let kept = fs::read_to_string(&path).ok().and_then(|text| Self::parse(text.trim()));
        let mode = given.or(kept).unwrap_or(if is_new { Self::Clone } else { Self::Copy });
        if kept != Some(mode) {
            disk::replace_unsynced(&path, &disk::aside(&path), mode.word().as_bytes())?;
        }
        Ok(mode)
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Clone, Self::Link, Self::Copy].into_iter().find(|mode| mode.word() == word)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Link => "link",
            Self::Copy => "copy",
        }
    }
}

impl Placing {
    /// Tries the ways, from the one asked for on, with a small file of the log's directory.
    pub(crate) fn find(asked: FileMode, log: &Path, files: &Path) -> Self {
        let (body, file) = (Probe(log.join(".file-probe")), Probe(files.join(".file-probe")));
        let mut reasons = Vec::new();
        let ways: &[FileMode] = match asked {
            FileMode::Clone => &[FileMode::Clone, FileMode::Link],
            FileMode::Link => &[FileMode::Link],
            FileMode::Copy => &[],
        };
        for way in ways {
            match body.fill().and_then(|()| share(*way, &body.0, &file.0)) {
                Ok(()) => return Self { asked, used: *way, reason: because(&reasons) },
                Err(error) => reasons.push(format!("no {} is possible here ({error})", way.word())),
            }
        }
        Self { asked, used: FileMode::Copy, reason: because(&reasons) }
    }

    /// Makes the file `to` share the bytes of a body; false if that is not possible.
    pub(crate) fn share(&self, content: &Content, to: &Path) -> bool {
        content.path().is_some_and(|body| share(self.used, body, to).is_ok())
    }

    /// Makes the file `to` of a product's bytes; false if the log no longer has them.
    pub(super) fn lay(&self, content: &Content, to: &Path) -> io::Result<bool> {
        if self.share(content, to) { Ok(true) } else { copy(content, to) }
    }
}

/// Makes a file that shares the bytes of a body.
fn share(way: FileMode, body: &Path, to: &Path) -> io::Result<()> {
    match way {
        FileMode::Clone => File::create(to)?.clone_from(&fs::File::open(body)?),
        FileMode::Link => match disk::link(body, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk::remove_file(to)?;
                disk::link(body, to)
            }
            linked => linked,
        },
        FileMode::Copy => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn copy(content: &Content, to: &Path) -> io::Result<bool> {
    // A second name of a body from an earlier attempt must not be written through.
    match disk::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = File::create(to)?;
    // The body may have been evicted since it was opened; its bytes are still readable.
    if let Some(body) = content.path().and_then(|path| fs::File::open(path).ok()) {
        return file.copy_from(&body).map(|()| true);
    }
    for start in (0..content.len()).step_by(PIECE_BYTES) {
        let end = content.len().min(start.saturating_add(PIECE_BYTES));
        let Some(piece) = content.slice(start..end) else { return Ok(false) };
        file.write_all_at(&piece, start as u64)?;
    }
    Ok(true)
}

fn because(reasons: &[String]) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// A file that is removed with this value.
struct Probe(PathBuf);

impl Probe {
    fn fill(&self) -> io::Result<()> {
        File::create(&self.0)?.write_all_at(&[7; PROBE_BYTES], 0)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = disk::remove_file(&self.0);
    }
}

/// A whole block: file systems clone no less.
const PROBE_BYTES: usize = 4_096;
const PIECE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn site() -> tempfile::TempDir {
        let site = tempfile::tempdir().unwrap();
        ["state", "log", "spool"].iter().for_each(|part| fs::create_dir(site.path().join(part)).unwrap());
        site
    }

    #[test]
    fn a_new_site_clones_an_older_one_copies_and_a_choice_is_kept() {
        let (new, old) = (site(), site());
        assert_eq!(FileMode::settle(new.path(), None, true).unwrap(), FileMode::Clone);
        assert_eq!(FileMode::settle(new.path(), None, false).unwrap(), FileMode::Clone);
        assert_eq!(FileMode::settle(old.path(), None, false).unwrap(), FileMode::Copy);
        assert_eq!(FileMode::settle(old.path(), Some(FileMode::Link), false).unwrap(), FileMode::Link);
        assert_eq!(FileMode::settle(old.path(), None, false).unwrap(), FileMode::Link);
        fs::write(old.path().join("state/file-mode"), "rubbish").unwrap();
        assert_eq!(FileMode::settle(old.path(), None, false).unwrap(), FileMode::Copy);
    }

    #[test]
    fn a_second_name_is_found_and_leaves_nothing_behind() {
        let site = site();
        let placing = Placing::find(FileMode::Link, &site.path().join("log"), &site.path().join("spool"));
        assert_eq!((placing.used, placing.reason), (FileMode::Link, None));
        for part in ["log", "spool"] {
            assert_eq!(fs::read_dir(site.path().join(part)).unwrap().count(), 0);
        }
    }

    #[test]
    fn where_nothing_is_shared_the_reason_is_given() {
        let site = site();
        let placing =
            Placing::find(FileMode::Clone, &site.path().join("log"), Path::new("/no/such/directory"));
        assert_eq!(placing.used, FileMode::Copy);
        assert!(placing.reason.is_some_and(|it| it.contains("no clone") && it.contains("no link")));
    }

    #[test]
    fn every_way_makes_a_whole_file_again_and_again() {
        use downburst_log::{FeedLog, LogOptions, ProductLog as _, contract};
        let site = site();
        let options = LogOptions { body_bytes: 1, ..LogOptions::default() };
        let feed = downburst_model::FeedName::parse("F").unwrap();
        let (log, _) = FeedLog::open(&site.path().join("log/F"), feed, options, 1).unwrap();
        let bytes = vec![3; 3 << 20];
        let product = contract::product("large").unwrap();
        let stamp = || downburst_model::WallMicros(0);
        log.append_all(vec![(product, bytes.clone().into())], &stamp).remove(0).unwrap();
        let content = log.entry(log.head()).unwrap().unwrap().bytes.unwrap();
        let body = content.path().unwrap().to_owned();
        let to = site.path().join("spool/out");
        for used in [FileMode::Link, FileMode::Link, FileMode::Copy, FileMode::Clone, FileMode::Link] {
            let placing = Placing { asked: used, used, reason: None };
            assert!(placing.lay(&content, &to).unwrap());
            assert_eq!(fs::read(&to).unwrap(), bytes);
            let inode = |path: &Path| fs::metadata(path).unwrap().ino();
            assert_eq!(inode(&to) == inode(&body), used == FileMode::Link);
        }
        fs::remove_file(&body).unwrap();
        let placing = Placing { asked: FileMode::Link, used: FileMode::Link, reason: None };
        assert!(placing.lay(&content, &to).unwrap(), "an evicted body is still open");
        assert_eq!(fs::read(&to).unwrap(), bytes);
    }
}
