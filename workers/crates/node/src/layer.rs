//! Checks that files of logs and of a site's state are changed through the recording layer only: power cuts are
//! tested on its recordings.
use std::path::Path;

#[test]
fn files_of_logs_and_sites_are_changed_through_the_recording_layer_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut beside = Vec::new();
    for directory in ["log/src", "node/src/site", "pqact/src/positions.rs", "pqact/src/dead_letters.rs"] {
        look(&crates.join(directory), &mut beside);
    }
    assert!(beside.is_empty(), "use downburst_log::disk instead:\n{}", beside.join("\n"));
}

fn look(path: &Path, beside: &mut Vec<String>) {
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| look(&entry.unwrap().path(), beside));
        return;
    }
    if ALLOWED.iter().any(|allowed| path.ends_with(allowed)) {
        return;
    }
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let text = text.split("#[cfg(test)]\npub(super) mod tests").next().unwrap_or_default();
    for (number, line) in text.lines().enumerate() {
        if CHANGES.iter().any(|change| line.contains(change)) {
            beside.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
        }
    }
}

const CHANGES: [&str; 12] = [
    " fs::write(",
    "std::fs::write(",
    "fs::rename(",
    "fs::remove_file(",
    "fs::remove_dir",
    "fs::create_dir",
    "fs::hard_link(",
    "fs::copy(",
    "OpenOptions",
    "File::options()",
    "fs::File::create",
    "set_permissions",
];

/// The layer itself; a socket; pieces of incoming products and their directory, which is emptied at the start; bytes
/// of a nameless file; tests.
const ALLOWED: [&str; 7] = [
    "log/src/disk/mod.rs",
    "log/src/disk/file.rs",
    "log/src/disk/cut.rs",
    "site/control.rs",
    "site/spool.rs",
    "site/power.rs",
    "log/src/feed_log/copy.rs",
];
