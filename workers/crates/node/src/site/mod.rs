//! A receiving site: one process, no Python, no incoming port but the group's and one that its administrator opens
//! for siblings.
//!
//! The `site` crate's machines make the decisions. A task per connection drives one of them with sockets and
//! files ([`drive`]), another task the machine above them ([`hubs`]). A thread per multicast leg reads its group; a
//! thread per connection verifies and stores products in the site's log (the commit point); a thread copies from the
//! log to files. A hub that is a site of another hub uses [`drive`] with logs of its own.
mod acted_on;
mod circuits;
pub mod control;
mod destination;
mod drive;
mod files;
mod host_clock;
mod hubs;
mod legs;
mod network;
mod parts;
#[cfg(test)]
mod power;
mod probes;
mod relayed;
mod siblings;
mod spool;
mod state;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use downburst_stamp_host::Reflecting;

use crate::clock::Clock;
use crate::scrub::Scrub;
pub(crate) use circuits::CircuitPeers;
pub(crate) use destination::Destination;
pub(crate) use drive::Site;
pub(crate) use parts::{Local, Parts, SharedCompleteness, Supervisor, Turn, Ways};
pub(crate) use relayed::{Carried, SharedLegs};
pub(crate) use state::{HubPlace, Identity, checkpoints};

pub use downburst_site::Ending;
pub use files::FileMode;
pub use legs::Reading;
pub use network::{Via, connect};
pub use siblings::SiblingsUse;

/// The settings of a receiving site.
#[derive(Clone, Debug)]
pub struct Receive {
    /// The hubs, the preferred one first.
    pub hubs: Vec<HubChoice>,
    /// The relays by which the site reaches its hubs.
    pub via: Via,
    /// The time for which the preferred hub must be healthy before it serves again.
    pub return_after: Duration,
    /// The directory of all the site's data: `state/`, `log/`, `received/`.
    pub directory: PathBuf,
    /// The age up to which bytes stay in the site's log.
    pub retention_hours: f64,
    /// The number of bytes per feed that stay in the site's log.
    pub retention_bytes: u64,
    /// Whether each product becomes a file below `received/`; otherwise products are in the site's log only.
    pub files: bool,
    /// The way in which these files get their bytes; `None`: as before, and clones at a new site.
    pub file_mode: Option<FileMode>,
    /// The actions on products, beside their files.
    pub actions: downburst_pqact::Wanted,
    /// The rules for removing old files.
    pub scour: downburst_pqact::ScourWanted,
    /// The way in which groups are read.
    pub reading: Reading,
    /// The verification of its logs.
    pub scrub: Scrub,
    /// The use of its host.
    pub host: HostUse,
    /// Added to the wall clock, microseconds: for tests of the clock comparison.
    pub wall_shift_us: i64,
    /// The supported versions of the session, best first: fewer than all to act as a node of an earlier
    /// release.
    pub session_versions: Vec<u16>,
}

/// The use of a site's host beside its products.
#[derive(Clone, Debug)]
pub struct HostUse {
    /// The AMT relays that send groups to it (`amt:ADDRESS,...`), unless the hub names an interface; `None`: it joins
    /// groups itself.
    pub amt: Option<String>,
    /// The interfaces that hubs may use for circuits; none: the site has no circuits.
    pub circuits: Vec<String>,
    /// The highest rate of probes of its path, bits per second; `None`: no limit, 0: no probes.
    pub probes_most_bps: Option<u64>,
    /// Whether the counters of this host are recorded.
    pub counters: bool,
    /// The address at which STAMP requests are answered; `None`: nowhere.
    pub stamp_listen: Option<SocketAddr>,
    /// The port for siblings; `None`: this site neither gives products to siblings nor takes any.
    pub siblings: Option<SiblingsUse>,
}

/// A configured hub of a site.
#[derive(Clone, Debug)]
pub struct HubChoice {
    /// The hub's address for sites, `HOST:PORT`.
    pub address: String,
    /// The file with the enrolment token; needed once.
    pub token_file: Option<PathBuf>,
}

/// Runs the site until it is stopped or all its hubs refuse it permanently.
pub async fn run(receive: Receive) -> Ending {
    let clock = Clock::start(receive.wall_shift_us);
    if let Err(sentence) = prepare(&receive.directory) {
        return Ending::BadUse(sentence);
    }
    let listen = receive.host.stamp_listen;
    let _reflecting = match listen.map(|at| Reflecting::start(Reflecting::modest(at, clock))).transpose() {
        Ok(reflecting) => reflecting,
        Err(sentence) => return Ending::BadUse(sentence),
    };
    if let Some(Err(sentence)) = receive.host.amt.as_deref().and_then(downburst_amt::interface::relays) {
        return Ending::BadUse(sentence);
    }
    match hubs::Hubs::open(&receive, clock) {
        Ok(hubs) => hubs.run().await,
        Err(sentence) => Ending::BadUse(sentence),
    }
}

/// Creates the directories for a connection to a hub. Half-received products of a former run are useless:
/// their products are requested again.
pub(crate) fn prepare_place(place: &HubPlace) -> Result<(), String> {
    make(&place.state)?;
    let _ = downburst_log::disk::remove_directory(&place.spool);
    make(&place.spool)
}

/// The place of a relay's session with its hub, in the directory of the relay.
pub(crate) fn place_of(directory: &Path, hub: &HubChoice) -> Result<HubPlace, String> {
    let (state, spool) = (directory.join("state"), directory.join("spool"));
    let place = HubPlace { address: hub.address.clone(), state, spool };
    prepare_place(&place).map(|()| place)
}

fn prepare(directory: &Path) -> Result<(), String> {
    ["state", "log", "received", "spool"].iter().try_for_each(|part| make(&directory.join(part)))
}

fn make(path: &Path) -> Result<(), String> {
    downburst_log::disk::make_directory(path).map_err(|error| {
        format!(
            "{} can't be written: {error}; choose another --dir or correct its permissions",
            path.display()
        )
    })
}
