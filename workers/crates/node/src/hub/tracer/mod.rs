//! The tracer of a node: looks at the sockets of its sites ten times a second and keeps the samples in a ring on disk.
//!
//! One thread asks the kernel (`sock_diag`): for each connection while there are few, for all of the listening port
//! beyond that. Sessions only say which connections serve a site. Connections of peers that are not admitted leave no
//! samples: a flood must not empty the ring.
mod known;
mod sampler;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Sender, bounded};
use downburst_model::SiteName;
use downburst_tracer::{Gathering, Record, Role, Scan, Standing, TracerAnswer};

use super::lock;
use crate::clock::Clock;
use crate::tracer::file::{self, RingFile};
use known::Known;
use sampler::Sampler;

/// The samples of this node's connections.
pub(super) struct Tracer {
    shared: Arc<Shared>,
    /// A question at a time: each reads the whole ring.
    asking: Mutex<()>,
    running: Mutex<Option<Running>>,
}

/// What sessions, the sampling thread and questions share.
#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// Absent while it can't be opened.
    file: Mutex<Option<RingFile>>,
    standing: Mutex<Standing>,
}

/// The thread ends when the sender is dropped.
struct Running {
    ends: Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Tracer {
    /// Starts sampling the connections of these listening addresses.
    pub(super) fn start(data_dir: &Path, places: &[SocketAddr], clock: Clock) -> Self {
        let tracer = Self { shared: Arc::default(), asking: Mutex::default(), running: Mutex::default() };
        let (ends, ended) = bounded(0);
        let sampler = Sampler::new(Arc::clone(&tracer.shared), &data_dir.join(FILE), places, clock);
        match std::thread::Builder::new().name("tracer".to_owned()).spawn(move || sampler.run(&ended)) {
            Ok(thread) => *lock(&tracer.running) = Some(Running { ends, thread }),
            Err(error) => tracer.shared.unable(Some(format!("there is no thread for it: {error}"))),
        }
        tracer
    }

    /// Notes that a connection, the hub's end first, serves a site.
    pub(super) fn serves(&self, ends: (SocketAddr, SocketAddr), site: &SiteName, role: Role) {
        lock(&self.shared.known).serves(ends, site, role);
    }

    /// The site with a connection of this peer.
    pub(super) fn site_at(&self, peer: SocketAddr) -> Option<SiteName> {
        lock(&self.shared.known).site_at(peer)
    }

    /// Answers a question from the ring; reads a disk, so a session must not call it.
    pub(super) fn gather(&self, mut gathering: Gathering) -> TracerAnswer {
        let _turn = lock(&self.asking);
        let (scan, failed) = scan(&self.shared.file, |record| gathering.take(record));
        let mut standing = lock(&self.shared.standing).clone();
        standing.unable = standing.unable.or(failed);
        gathering.answer(standing, &scan)
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        if let Some(Running { ends, thread }) = lock(&self.running).take() {
            drop(ends);
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Notes whether sampling works; each change is logged once.
    fn unable(&self, sentence: Option<String>) {
        let mut standing = lock(&self.standing);
        if standing.unable == sentence {
            return;
        }
        match &sentence {
            Some(sentence) => tracing::warn!("the tracer takes no samples of connections: {sentence}"),
            None => tracing::info!("the tracer takes samples of connections again"),
        }
        standing.unable = sentence;
    }
}

/// Reads the whole ring, oldest record first. The file is locked for a piece at a time: the sampler does not miss a
/// tick for it. Returns the reason too, if the reading ended early.
fn scan(file: &Mutex<Option<RingFile>>, take: impl FnMut(Record)) -> (Scan, Option<String>) {
    let begun = lock(file).as_ref().map(|file| Ok((file.new_scan(), file.ranges()?))).transpose();
    let mut scan = Scan::default();
    let read = begun.and_then(|begun| {
        let Some((begun, ranges)) = begun else { return Ok(()) };
        scan = begun;
        let piece = |at, end| lock(file).as_ref().map_or(Ok(Vec::new()), |file| file.piece(at, end));
        file::read(&mut scan, ranges, piece, take)
    });
    (scan, read.err().map(|error| unreadable(&error)))
}

fn unreadable(error: &io::Error) -> String {
    format!("the ring of samples can't be read: {error}; look at the disk of the node's data directory")
}

/// In the node's data directory.
const FILE: &str = "tracer.ring";
