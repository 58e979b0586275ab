//! The checksummed files of a site's state that belong to a feed, for the scrub.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downburst_log::disk::{self, Checked};
use downburst_model::FeedName;
use downburst_pqact::position_is_whole;

use super::MAGIC;
use crate::scrub::SmallFile;
use crate::site::files::cursor;

/// The files of the site in a directory: checkpoints of each hub, and the positions of files and of actions.
pub(in crate::site) fn of_site(directory: &Path) -> Vec<SmallFile> {
    let home = directory.join("state");
    let mut found = in_folder(&home.join("files"), cursor::is_whole);
    found.extend(in_folder(&home.join("order"), cursor::order_is_whole));
    for line in entries(&home.join("actions")) {
        found.extend(in_folder(&line, position_is_whole));
    }
    for hub in entries(&home.join("hubs")).chain([home]) {
        found.extend(checkpoints(&hub));
    }
    found
}

/// The checkpoints in one hub's directory.
pub(crate) fn checkpoints(state: &Path) -> Vec<SmallFile> {
    let found =
        entries(&state.join("positions")).filter(|path| path.extension().is_some_and(|it| it == "cbor"));
    found.filter_map(|path| small_file(path.with_extension(""), path, checkpoint_is_whole)).collect()
}

fn in_folder(folder: &Path, is_whole: fn(&Path) -> io::Result<bool>) -> Vec<SmallFile> {
    entries(folder).filter_map(|path| small_file(path.clone(), path, is_whole)).collect()
}

/// The file of the feed encoded in its name; others, such as temporary files of a replacement, are left out.
fn small_file(named: PathBuf, path: PathBuf, is_whole: fn(&Path) -> io::Result<bool>) -> Option<SmallFile> {
    let name = crate::file_names::decode(named.file_name()?.to_str()?)?;
    Some(SmallFile { feed: FeedName::parse(&name).ok()?, path, is_whole })
}

fn checkpoint_is_whole(path: &Path) -> io::Result<bool> {
    Ok(disk::look_at_checked(path, MAGIC)? != Checked::Damaged)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use downburst_log::disk::Slots;

    use super::*;

    #[test]
    fn each_kind_of_file_is_found_with_its_feed_and_any_flipped_byte_is_damage() {
        let site = tempfile::tempdir().unwrap();
        let state = site.path().join("state");
        let feed = FeedName::parse("IDS|DDPLUS").unwrap();
        let name = crate::file_names::encode(feed.as_str());
        for folder in ["files", "order", "actions/0123", "positions", "hubs/other/positions"] {
            disk::make_directory(&state.join(folder)).unwrap();
        }
        let (mut files, _) = Slots::<6>::open(&state.join("files").join(&name), b"DBFILES\n").unwrap();
        let (mut acted, _) = Slots::<2>::open(&state.join("actions/0123").join(&name), b"DBACTED\n").unwrap();
        for turn in 0..2 {
            files.put([turn; 6]).unwrap();
            acted.put([turn; 2]).unwrap();
        }
        disk::write_checked(&state.join("order").join(&name), b"DBORDER\n", &7_u64).unwrap();
        for hub in [state.clone(), state.join("hubs/other")] {
            let path = hub.join("positions").join(format!("{name}.cbor"));
            disk::write_checked(&path, MAGIC, &7_u64).unwrap();
            fs::write(path.with_extension("aside"), "half").unwrap();
        }
        let found = of_site(site.path());
        assert_eq!(found.len(), 5);
        for SmallFile { feed: of, path, is_whole } in found {
            assert_eq!(of, feed, "{}", path.display());
            assert!(is_whole(&path).unwrap(), "{}", path.display());
            let good = fs::read(&path).unwrap();
            // The bytes between the copies of the numbers are unused.
            for at in (0..good.len()).filter(|at| good[*at] != 0) {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, bad).unwrap();
                assert!(!is_whole(&path).unwrap(), "{} at {at}", path.display());
            }
            fs::remove_file(&path).unwrap();
            assert!(is_whole(&path).unwrap(), "one that is removed is none");
        }
    }
}
