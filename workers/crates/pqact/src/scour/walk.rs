//! Walks a directory by descriptors, so that neither a link nor a rename during the walk leads out of it.
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use downburst_actions::ScourRule;
use downburst_actions::scour::{Aged, Space};
use downburst_model::WallMicros;
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, unlinkat};

/// The result of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scoured {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) directories: u64,
    /// The first error; the walk continued after it.
    pub(crate) failed: Option<String>,
}

/// Removes the files below `root` that a rule selects. `agrees` is called first with each file, and with an
/// empty path for an empty directory. A file to which it does not agree stays, and is counted.
pub(crate) fn clear(
    rule: &ScourRule,
    root: &Path,
    now: WallMicros,
    agrees: &mut dyn FnMut(&Path) -> bool,
    stopped: &dyn Fn() -> bool,
) -> Result<Scoured, String> {
    let mut removing = Removing { rule, now, cut: None, agrees, scoured: Scoured::default() };
    if rule.counts() {
        removing.cut = cut(rule, root, now, stopped)?;
    }
    let mut walk = Walk { root, stopped, failed: None };
    let mut directory = open(root)?;
    walk.directory(&mut directory, Path::new(""), 0, &mut removing);
    let mut scoured = removing.scoured;
    scoured.failed = scoured.failed.or(walk.failed);
    Ok(scoured)
}

/// The oldest files go: those older than `newest`, and `of_these` of those with exactly that time.
#[derive(Clone, Copy)]
struct Cut {
    newest: WallMicros,
    of_these: usize,
}

/// Counts the files that are not too old, and finds how many of these have to go as well.
fn cut(
    rule: &ScourRule,
    root: &Path,
    now: WallMicros,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Cut>, String> {
    let mut directory = open(root)?;
    let room = fstatvfs(&directory)
        .map_err(|error| format!("{} does not report its free space: {error}", root.display()))?;
    let mut counting = Counting { rule, now, files: Vec::new(), old_bytes: 0 };
    Walk { root, stopped, failed: None }.directory(&mut directory, Path::new(""), 0, &mut counting);
    let Counting { mut files, old_bytes, .. } = counting;
    files.sort_by_key(|file| file.modified);
    let space = Space {
        free: (room.blocks_available() * room.fragment_size()).saturating_add(old_bytes),
        total: room.blocks() * room.fragment_size(),
    };
    let gone = rule.surplus(&files, space);
    let Some(newest) = gone.checked_sub(1).and_then(|last| files.get(last)).map(|last| last.modified) else {
        return Ok(None);
    };
    let of_these = files.iter().take(gone).filter(|file| file.modified == newest).count();
    Ok(Some(Cut { newest, of_these }))
}

/// Handles the files and directories of a walk.
trait Visitor {
    /// Handles the regular file `name` in `directory`.
    fn file(&mut self, directory: &Dir, name: &std::ffi::CStr, path: &Path, found: Aged);

    /// Handles a directory after its contents.
    fn left(&mut self, _parent: &Dir, _name: &std::ffi::CStr, _modified: WallMicros) {}
}

struct Walk<'a> {
    root: &'a Path,
    stopped: &'a dyn Fn() -> bool,
    failed: Option<String>,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &mut Dir, below: &Path, depth: usize, visitor: &mut dyn Visitor) {
        // Reads all names first: removal during the reading may skip some.
        let mut names = Vec::new();
        for entry in directory.iter() {
            match entry {
                Ok(entry) if !matches!(entry.file_name().to_bytes(), b"." | b"..") => {
                    names.push((entry.file_name().to_owned(), entry.file_type()));
                }
                Ok(_) => {}
                Err(error) => self.failed(below, &error.to_string()),
            }
        }
        for (name, kind) in names {
            if (self.stopped)() {
                return;
            }
            if matches!(kind, Some(Type::Symlink | Type::Fifo | Type::Socket)) {
                continue;
            }
            let path = below.join(name.to_string_lossy().as_ref());
            // A file removed during the walk is not an error.
            let Ok(stat) = fstatat(&*directory, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
                SFlag::S_IFREG => visitor.file(directory, &name, &path, aged(&stat)),
                SFlag::S_IFDIR if depth < DEEPEST => {
                    match Dir::openat(directory.as_fd(), name.as_c_str(), FLAGS, Mode::empty()) {
                        Ok(mut inner) => self.directory(&mut inner, &path, depth + 1, visitor),
                        Err(error) => self.failed(&path, &error.to_string()),
                    }
                    visitor.left(directory, &name, aged(&stat).modified);
                }
                _ => {}
            }
        }
    }

    fn failed(&mut self, below: &Path, error: &str) {
        let path: PathBuf = self.root.join(below);
        self.failed.get_or_insert_with(|| format!("{} can't be read: {error}", path.display()));
    }
}

struct Counting<'a> {
    rule: &'a ScourRule,
    now: WallMicros,
    files: Vec<Aged>,
    old_bytes: u64,
}

impl Visitor for Counting<'_> {
    fn file(&mut self, _: &Dir, name: &std::ffi::CStr, _: &Path, found: Aged) {
        if !self.rule.fits(&name.to_string_lossy()) {
            return;
        }
        if self.rule.is_old(self.now, found.modified) {
            self.old_bytes = self.old_bytes.saturating_add(found.bytes);
        } else {
            self.files.push(found);
        }
    }
}

struct Removing<'a> {
    rule: &'a ScourRule,
    now: WallMicros,
    cut: Option<Cut>,
    agrees: &'a mut dyn FnMut(&Path) -> bool,
    scoured: Scoured,
}

impl Removing<'_> {
    fn goes(&mut self, found: Aged) -> bool {
        if self.rule.is_old(self.now, found.modified) {
            return true;
        }
        let Some(cut) = &mut self.cut else { return false };
        if found.modified == cut.newest {
            let goes = cut.of_these > 0;
            cut.of_these = cut.of_these.saturating_sub(1);
            return goes;
        }
        found.modified < cut.newest
    }
}

impl Visitor for Removing<'_> {
    fn file(&mut self, directory: &Dir, name: &std::ffi::CStr, path: &Path, found: Aged) {
        if !self.rule.fits(&name.to_string_lossy()) || !self.goes(found) {
            return;
        }
        if (self.agrees)(path)
            && let Err(error) = unlinkat(directory, name, UnlinkatFlags::NoRemoveDir)
        {
            let sentence =
                || format!("{} can't be removed: {error}; correct the rights there", path.display());
            self.scoured.failed.get_or_insert_with(sentence);
            return;
        }
        self.scoured.files += 1;
        self.scoured.bytes = self.scoured.bytes.saturating_add(found.bytes);
    }

    /// Removes a directory that is empty and was not changed for an hour: a new one is about to receive files.
    fn left(&mut self, parent: &Dir, name: &std::ffi::CStr, modified: WallMicros) {
        let rests = self.now.0.saturating_sub(modified.0) > EMPTY_MICROS;
        if self.rule.remove_empty_directories
            && rests
            && (self.agrees)(Path::new(""))
            && unlinkat(parent, name, UnlinkatFlags::RemoveDir).is_ok()
        {
            self.scoured.directories += 1;
        }
    }
}

fn open(root: &Path) -> Result<Dir, String> {
    Dir::open(root, FLAGS, Mode::empty())
        .map_err(|error| format!("{} can't be read: {error}; correct the rights there", root.display()))
}

fn aged(stat: &FileStat) -> Aged {
    let micros = stat.st_mtime.saturating_mul(1_000_000).saturating_add(stat.st_mtime_nsec / 1_000);
    Aged { bytes: u64::try_from(stat.st_size).unwrap_or_default(), modified: WallMicros(micros) }
}

const FLAGS: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// Limit of depth: each level takes a descriptor.
const DEEPEST: usize = 64;
const EMPTY_MICROS: i64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use downburst_actions::yaml;

    use super::*;

    struct Bed {
        root: tempfile::TempDir,
        now: SystemTime,
    }

    impl Bed {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap(), now: SystemTime::now() }
        }

        /// Creates a file that was changed `hours` ago.
        fn file(&self, path: &str, hours: u64, bytes: usize) {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, vec![0; bytes]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(self.now - Duration::from_secs(hours * 3_600)).unwrap();
        }

        fn clear(&self, rule: &str) -> (Scoured, Vec<String>) {
            let text = format!("scour:\n  - directory: a/b\n    {}\n", rule.replace(", ", "\n    "));
            let read = yaml::read("r.yaml", &text);
            assert_eq!(read.errors, [], "{text}");
            let mut gone = Vec::new();
            let micros = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
            let now = WallMicros(i64::try_from(micros).unwrap());
            let mut agrees = |path: &Path| {
                gone.push(path.display().to_string());
                true
            };
            let scoured = clear(&read.found.scour[0], self.root.path(), now, &mut agrees, &|| false).unwrap();
            gone.sort();
            (scoured, gone)
        }

        fn has(&self, path: &str) -> bool {
            self.root.path().join(path).exists()
        }
    }

    #[test]
    fn what_is_too_old_and_fits_goes_from_all_directories() {
        let bed = Bed::new();
        for (path, hours) in [("a.nc", 30), ("x/y/b.nc", 30), ("c.nc", 20), ("d.txt", 30), (".e.nc", 30)] {
            bed.file(path, hours, 10);
        }
        let (scoured, gone) = bed.clear("files: '*.nc', older-than: 1d");
        assert_eq!((scoured.files, scoured.bytes, scoured.failed), (2, 20, None));
        assert_eq!(gone, ["a.nc", "x/y/b.nc"]);
        assert!(bed.has("c.nc") && bed.has("d.txt") && bed.has(".e.nc") && bed.has("x/y"));
    }

    #[test]
    fn the_oldest_go_until_the_rest_is_small_enough() {
        let bed = Bed::new();
        for (path, hours) in [("new", 1), ("x/old", 9), ("middle", 5), ("older", 8), ("y/ancient", 50)] {
            bed.file(path, hours, 100);
        }
        let (scoured, gone) = bed.clear("at-most: 250, older-than: 2d");
        assert_eq!(gone, ["older", "x/old", "y/ancient"], "one for its age, two for the bytes");
        assert_eq!(scoured.files, 3);
    }

    #[test]
    fn of_equally_old_ones_no_more_go_than_have_to() {
        let bed = Bed::new();
        for number in 0..10 {
            bed.file(&format!("f{number}"), 5, 10);
        }
        assert_eq!(bed.clear("at-most: 70").0.files, 3);
    }

    #[test]
    fn all_goes_where_no_room_would_be_enough() {
        let bed = Bed::new();
        bed.file("x", 1, 10);
        assert_eq!(bed.clear("keep-free: 0%").0.files, 0);
        assert_eq!(bed.clear("keep-free: 9000 TiB").0.files, 1);
    }

    #[test]
    fn links_lead_nowhere_and_stay() {
        let (bed, outside) = (Bed::new(), Bed::new());
        outside.file("precious", 99, 10);
        bed.file("x", 99, 10);
        std::os::unix::fs::symlink(outside.root.path(), bed.root.path().join("way")).unwrap();
        std::os::unix::fs::symlink(outside.root.path().join("precious"), bed.root.path().join("one"))
            .unwrap();
        let (scoured, _) = bed.clear("older-than: 1h, remove-empty-directories: true");
        assert_eq!(scoured.files, 1);
        assert!(outside.has("precious") && bed.has("one") && bed.has("way"));
    }

    #[test]
    fn empty_directories_go_once_nobody_uses_them() {
        let bed = Bed::new();
        bed.file("full/x", 1, 1);
        fs::create_dir_all(bed.root.path().join("empty/inner")).unwrap();
        assert_eq!(bed.clear("older-than: 1d, remove-empty-directories: true").0.directories, 0, "just made");
        let later = Bed { root: bed.root, now: SystemTime::now() + Duration::from_secs(7_200) };
        let (scoured, _) = later.clear("older-than: 1d, remove-empty-directories: true");
        assert!(scoured.directories >= 1 && !later.has("empty/inner") && later.has("full/x"));
    }
}
