//! A receiving site: one process, no Python, no incoming port but the group's.
//!
//! One task drives the session's machine; a thread per multicast leg reads its group; a thread verifies and stores products in the
//! site's log (the commit point); a thread copies from the log to files.
mod assembly;
mod drive;
mod files;
mod group;
mod link;
mod state;
mod store;

use std::fs;
use std::path::{Path, PathBuf};

use crate::clock::Clock;

/// What a receiving site is started with.
#[derive(Clone, Debug)]
pub struct Receive {
    /// The hub's address for sites, `HOST:PORT`.
    pub hub: String,
    /// Holds the enrolment token; needed once.
    pub token_file: Option<PathBuf>,
    /// Everything of the site lies here: `state/`, `log/`, `received/`.
    pub directory: PathBuf,
    /// How long bytes stay in the site's log.
    pub retention_hours: f64,
    /// How many bytes per feed stay in the site's log.
    pub retention_bytes: u64,
    /// Whether each product becomes a file below `received/`; without, the site's log is all there is.
    pub files: bool,
    /// Added to the wall clock, microseconds: for tests of the clock comparison.
    pub wall_shift_us: i64,
}

/// Why a site ended.
#[derive(Debug)]
pub enum Ending {
    /// Asked to.
    Stopped,
    /// The sentence says what is wrong with the command, the directory or the token.
    BadUse(String),
    /// The hub refused for good.
    Refused(String),
}

/// Runs the site until it is asked to end or the hub refuses it for good.
pub async fn run(receive: Receive) -> Ending {
    let clock = Clock::start(receive.wall_shift_us);
    if let Err(sentence) = prepare(&receive.directory) {
        return Ending::BadUse(sentence);
    }
    let identity = match state::Identity::load(&receive) {
        Ok(identity) => identity,
        Err(sentence) => return Ending::BadUse(sentence),
    };
    match drive::Site::open(receive, identity, clock) {
        Ok(site) => site.run().await,
        Err(sentence) => Ending::BadUse(sentence),
    }
}

fn prepare(directory: &Path) -> Result<(), String> {
    for part in ["state", "log", "received", "spool"] {
        let path = directory.join(part);
        fs::create_dir_all(&path).map_err(|error| {
            format!(
                "{} can't be written: {error}; choose another --dir or correct its permissions",
                path.display()
            )
        })?;
    }
    // Half-received products of a former run are of no use: what they belonged to is asked again.
    for entry in fs::read_dir(directory.join("spool")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("in-") {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
