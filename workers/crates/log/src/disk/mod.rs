//! The narrow layer through which every change of a log's and a site's files passes.
//!
//! In production each function is the system call of the same name, plus one look at an empty list when a
//! file is opened. A test that begins a [`Recording`] of a directory gets a trace of all operations on it,
//! with the bytes; from that [`Trace::cut`] makes the directories that a power cut can leave.
//!
//! Reading and mapping need no layer: they change nothing.

mod checked;
mod cut;
mod file;
mod recording;
mod remedy;
mod sealed;
mod slots;
mod trace;

pub use checked::{Checked, checked, look_at_checked, read_checked, write_checked};
pub use cut::Chances;
pub use file::File;
pub use recording::Recording;
pub use remedy::{remedy, unwritable};
pub use sealed::{sealed, unsealed};
pub use slots::{Found, Slots};
pub use trace::{Planted, Trace};

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use recording::traced;

/// Creates a directory and its missing parents. They are durable once this returns.
///
/// # Errors
/// Those of the system.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|it| is_name(it) && !it.is_dir()).collect();
    for directory in missing.into_iter().rev() {
        let made = traced(directory, |trace| trace.make_directory(directory), || fs::create_dir(directory));
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            made => made?,
        }
        sync_directory(parent(directory))?;
    }
    Ok(())
}

/// Creates a directory that only its owner can enter; one that exists stays. Durable once the directory above it was
/// synchronised.
///
/// # Errors
/// Those of the system.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    let make = || fs::DirBuilder::new().mode(0o700).create(path);
    match traced(path, |trace| trace.make_directory(path), make) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Gives a file a second name, which must not exist. Durable once [`sync_directory`] has returned.
///
/// # Errors
/// Those of the system; some file systems have no second names, and none reaches into another file system.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    traced(to, |trace| trace.link(from, to), || fs::hard_link(from, to))
}

/// Makes a file read-only for all who may read it.
///
/// # Errors
/// Those of the system.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}

/// Renames a file, replacing any existing file of that name. Durable once [`sync_directory`] has returned.
///
/// # Errors
/// Those of the system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    traced(from, |trace| trace.rename(from, to), || fs::rename(from, to))
}

/// Deletes a file. Durable once [`sync_directory`] has returned.
///
/// # Errors
/// Those of the system.
pub fn remove_file(path: &Path) -> io::Result<()> {
    traced(path, |trace| trace.remove(path), || fs::remove_file(path))
}

/// Deletes a directory and its contents.
///
/// # Errors
/// Those of the system.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    traced(path, |trace| trace.remove(path), || fs::remove_dir_all(path))
}

/// Makes created, renamed and deleted names of a directory durable.
///
/// # Errors
/// Those of the system.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    traced(path, |trace| trace.sync_directory(path), || fs::File::open(path)?.sync_all())
}

/// Makes durable everything that any process has written so far to the file system of a directory.
///
/// # Errors
/// Those of the system.
pub fn sync_file_system(path: &Path) -> io::Result<()> {
    traced(path, trace::Trace::sync_everything, || crate::system::sync_file_system(&fs::File::open(path)?))
}

/// Replaces a file as a whole: a crash at any moment leaves the old contents or the new ones. Durable on return.
///
/// # Errors
/// Those of the system; the old file is then still in place.
pub fn replace(path: &Path, aside: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let written = File::create(aside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| rename(aside, path)) {
        // The first failure is the one to report.
        let _ = remove_file(aside);
        return Err(error);
    }
    sync_directory(parent(path))
}

/// Replaces a file as a whole, safely against a crash of the process only: a power cut may leave it torn, which a
/// checksum must detect.
///
/// # Errors
/// Those of the system; the old file is then still in place.
pub fn replace_unsynced(path: &Path, aside: &Path, contents: &[u8]) -> io::Result<()> {
    File::create(aside)?.write_all_at(contents, 0)?;
    rename(aside, path)
}

/// The name under which the next contents of a file are written.
#[must_use]
pub fn aside(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".aside");
    PathBuf::from(aside)
}

/// Permissions of a file that nobody writes.
const READ_ONLY: u32 = 0o444;

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| is_name(parent)).unwrap_or_else(|| Path::new("."))
}

fn is_name(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}
