//! Products written to files named by rules.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::failure::{Failure, Then};
use super::task::{Task, Work};

/// Keeps the most recently used files open between products.
pub(super) struct Files {
    directory: PathBuf,
    /// Ordered by last use, the latest last.
    open: Vec<(PathBuf, File)>,
}

impl Files {
    /// Relative paths are below `directory`.
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: Vec::new() }
    }

    /// Writes the bytes of a product. After an error the file has its former contents, as far as the disk allows,
    /// unless it is overwritten through a link.
    pub(super) fn write(&mut self, work: &Work, bytes: &[u8]) -> Result<(), Failure> {
        let Work::File { path, overwrite, close, flush, log } = work else {
            return Err(Failure::new(Then::GiveUp, "this is no file"));
        };
        let path = self.directory.join(path);
        special(&path)?;
        let written = if *overwrite && is_plain_or_absent(&path) {
            replace(&path, bytes, *flush)
        } else {
            self.put(&path, bytes, *overwrite, *flush)
        };
        let gone = written.is_err() || *close;
        if gone {
            self.open.retain(|(open, _)| *open != path);
        }
        written.map_err(|error| Failure::of_file(&path, &error))?;
        if *log {
            tracing::info!(path = %path.display(), bytes = bytes.len(), "filed a product");
        }
        Ok(())
    }

    /// Lets a product's own bytes become a file without writing them, where the rule replaces the file and `share` can.
    /// False if they have to be written.
    pub(super) fn share(&mut self, task: &Task, share: impl FnOnce(&Path) -> bool) -> bool {
        let Work::File { path, overwrite: true, flush: false, log, .. } = &task.work else { return false };
        let path = self.directory.join(path);
        if !task.is_plain() || !is_plain_or_absent(&path) {
            return false;
        }
        let aside = aside(&path);
        let directory = path.parent().unwrap_or(Path::new("."));
        let is_made = fs::create_dir_all(directory).is_ok() && share(&aside);
        let is_placed = is_made && fs::rename(&aside, &path).is_ok();
        // A rename between two names of one file does nothing.
        let _ = fs::remove_file(&aside);
        if is_placed {
            self.open.retain(|(open, _)| *open != path);
            if *log {
                tracing::info!(path = %path.display(), "filed a product");
            }
        }
        is_placed
    }

    /// Appends to the contents, or replaces them.
    fn put(&mut self, path: &Path, bytes: &[u8], overwrite: bool, flush: bool) -> io::Result<()> {
        make_own(path)?;
        let file = self.opened(path)?;
        let metadata = file.metadata()?;
        let begin = if overwrite { 0 } else { metadata.len() };
        if overwrite && metadata.is_file() {
            file.set_len(0)?;
        }
        if let Err(error) = file.write_all(bytes) {
            // Part of a product would precede the whole one of the next attempt.
            let _ = file.set_len(begin);
            return Err(error);
        }
        if flush { file.sync_all() } else { Ok(()) }
    }

    /// The file if it is open, else opens it; an open file that was replaced at its path is opened again.
    fn opened(&mut self, path: &Path) -> io::Result<&mut File> {
        let known = self.open.iter().position(|(open, _)| open == path);
        let known = known.map(|at| self.open.remove(at)).filter(|(path, file)| is_still(path, file));
        let entry = match known {
            Some(entry) => entry,
            None => (
                path.to_owned(),
                with_directory(path, || OpenOptions::new().append(true).create(true).open(path))?,
            ),
        };
        if self.open.len() >= MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(entry);
        match self.open.last_mut() {
            Some((_, file)) => Ok(file),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Refuses all but regular files and character devices: a named pipe would wait for its reader.
fn special(path: &Path) -> Result<(), Failure> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_char_device() {
        return Ok(());
    }
    let what = if kind.is_dir() { "a directory" } else { "no regular file" };
    Err(Failure::new(
        Then::GiveUp,
        format!("{} is {what}; name a file, or write to a program by PIPE", path.display()),
    ))
}

/// Replaces a file atomically: a reader finds the former contents or all of the new ones.
pub(super) fn replace(path: &Path, bytes: &[u8], flush: bool) -> io::Result<()> {
    let aside = aside(path);
    let written = with_directory(path, || File::create(&aside)).and_then(|mut file| {
        file.write_all(bytes)?;
        if flush { file.sync_all() } else { Ok(()) }
    });
    let placed = written.and_then(|()| fs::rename(&aside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    placed
}

/// Replaces a file that shares its bytes with the site's log by a copy, before it is written in place.
fn make_own(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.is_file() || metadata.nlink() < 2 || !metadata.permissions().readonly() {
        return Ok(());
    }
    let aside = aside(path);
    let mut copy = File::create(&aside)?;
    io::copy(&mut File::open(path)?, &mut copy)?;
    fs::rename(&aside, path)
}

/// The name under which a file is made.
fn aside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".downburst-{}", std::process::id()))
}

/// Opens a file, and creates missing parent directories.
fn with_directory<T>(path: &Path, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            open()
        }
        result => result,
    }
}

/// False for a link: it stays a link, and its target is written.
fn is_plain_or_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |metadata| metadata.file_type().is_file())
}

fn is_still(path: &Path, file: &File) -> bool {
    let same =
        |there: &fs::Metadata, here: &fs::Metadata| (there.dev(), there.ino()) == (here.dev(), here.ino());
    matches!((fs::metadata(path), file.metadata()), (Ok(there), Ok(here)) if same(&there, &here))
}

/// Leaves room for connections and segments below the customary limit of 1,024.
const MOST_OPEN: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, overwrite: bool) -> Work {
        Work::File { path: path.to_owned(), overwrite, close: false, flush: false, log: false }
    }

    fn read(directory: &Path, path: &str) -> String {
        fs::read_to_string(directory.join(path)).unwrap()
    }

    #[test]
    fn products_are_appended_or_take_the_place_of_the_one_before() {
        let root = tempfile::tempdir().unwrap();
        let mut files = Files::new(root.path());
        for bytes in [b"one ", b"two "] {
            files.write(&file("a/b/c", false), bytes).unwrap();
            files.write(&file("d", true), bytes).unwrap();
        }
        assert_eq!(read(root.path(), "a/b/c"), "one two ");
        assert_eq!(read(root.path(), "d"), "two ");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "nothing is left aside");
    }

    fn task(work: Work) -> Task {
        Task { rule: "pqact.conf:1".to_owned(), work, shape: Default::default(), limit_s: 1, attempts: 1 }
    }

    #[test]
    fn a_replaced_file_shares_the_products_bytes_until_it_is_written_in_place() {
        let root = tempfile::tempdir().unwrap();
        let body = root.path().join("body");
        fs::write(&body, "body").unwrap();
        fs::set_permissions(&body, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        let mut files = Files::new(root.path());
        let link = |to: &Path| fs::hard_link(&body, to).is_ok();
        assert!(!files.share(&task(file("a/b", false)), link), "it would be appended to");
        assert!(!files.share(&task(file("a/b", true)), |_| false));
        for _ in 0..2 {
            assert!(files.share(&task(file("a/b", true)), link));
            assert_eq!(fs::metadata(&body).unwrap().nlink(), 2);
            assert_eq!(fs::read_dir(root.path().join("a")).unwrap().count(), 1, "nothing is left aside");
        }
        files.write(&file("a/b", false), b" and more").unwrap();
        assert_eq!(read(root.path(), "a/b"), "body and more");
        assert_eq!(read(root.path(), "body"), "body", "the site's log is not written to");
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let mut files = Files::new(root.path());
        files.write(&file("a", false), b"one").unwrap();
        fs::rename(root.path().join("a"), root.path().join("old")).unwrap();
        files.write(&file("a", false), b"two").unwrap();
        assert_eq!((read(root.path(), "old"), read(root.path(), "a")), ("one".to_owned(), "two".to_owned()));
    }

    #[test]
    fn a_link_stays_a_link() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("target"), "old and long").unwrap();
        std::os::unix::fs::symlink("target", root.path().join("link")).unwrap();
        let mut files = Files::new(root.path());
        files.write(&file("link", true), b"new").unwrap();
        assert_eq!(read(root.path(), "target"), "new");
        assert!(fs::symlink_metadata(root.path().join("link")).unwrap().is_symlink());
    }

    #[test]
    fn what_is_no_file_is_given_up_at_once() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("plain"), "").unwrap();
        let mut files = Files::new(root.path());
        for path in ["folder", "plain/below"] {
            let failure = files.write(&file(path, false), b"x").unwrap_err();
            assert_eq!(failure.then, Then::GiveUp, "{}", failure.sentence);
        }
        files.write(&file("/dev/null", false), b"x").unwrap();
    }

    #[test]
    fn a_full_disk_is_waited_for() {
        let failure = Files::new(Path::new("/")).write(&file("/dev/full", false), b"x").unwrap_err();
        assert_eq!(failure.then, Then::WaitForRoom);
        assert!(failure.sentence.contains("free space"), "{}", failure.sentence);
    }

    #[test]
    fn no_more_files_stay_open_than_agreed() {
        let root = tempfile::tempdir().unwrap();
        let mut files = Files::new(root.path());
        for number in 0..MOST_OPEN * 2 {
            files.write(&file(&format!("f{number}"), false), b"x").unwrap();
        }
        assert_eq!(files.open.len(), MOST_OPEN);
    }
}
