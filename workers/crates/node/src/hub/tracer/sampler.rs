//! The thread that looks at the sockets.
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use downburst_host::{Family, Sockets, TcpSocket};
use downburst_model::Micros;
use downburst_tracer::Recorder;

use super::Shared;
use crate::clock::Clock;
use crate::hub::lock;
use crate::tracer::file::RingFile;
use crate::tracer::no_report;
use crate::tracer::ticks::Ticks;

/// Looks at the sockets at each tick.
pub(super) struct Sampler {
    shared: Arc<Shared>,
    path: PathBuf,
    places: BTreeSet<(Family, u16)>,
    clock: Clock,
    sockets: Option<Sockets>,
    recorder: Recorder,
}

impl Sampler {
    pub(super) fn new(shared: Arc<Shared>, path: &Path, places: &[SocketAddr], clock: Clock) -> Self {
        Self {
            shared,
            path: path.to_owned(),
            places: looked_at(places),
            clock,
            sockets: None,
            recorder: Recorder::default(),
        }
    }

    /// Looks at absolute ticks until the sender is dropped; ticks that came too late are counted and left out.
    pub(super) fn run(mut self, ended: &Receiver<()>) {
        let mut ticks = Ticks::begin(self.clock, TICK);
        loop {
            if ended.recv_timeout(ticks.pause()) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let (connections, looked) = self.look();
            self.shared.unable(looked.err());
            lock(&self.shared.standing).missed_ticks += ticks.looked(connections);
        }
    }

    /// Takes a sample of each connection and writes those that are worth it; returns the number of connections. The
    /// error is a sentence.
    pub(super) fn look(&mut self) -> (usize, Result<(), String>) {
        let ends = lock(&self.shared.known).ends();
        (ends.len(), self.record(&ends))
    }

    fn record(&mut self, ends: &[(SocketAddr, SocketAddr)]) -> Result<(), String> {
        let sockets = self.sockets(ends)?;
        let now = self.clock.now();
        let samples = lock(&self.shared.known).of(now.wall, &sockets);
        let worth = self.recorder.worth(now.monotonic, samples);
        let mut file = lock(&self.shared.file);
        let opened = match file.take() {
            Some(opened) => Ok(opened),
            None => RingFile::open(&self.path),
        };
        opened.and_then(|opened| file.insert(opened).write(worth)).map_err(|error| {
            let path = self.path.display();
            format!("{path} can't be written: {error}; free some space, or look at the disk")
        })
    }

    fn sockets(&mut self, ends: &[(SocketAddr, SocketAddr)]) -> Result<Vec<TcpSocket>, String> {
        let mut open = match self.sockets.take() {
            Some(open) => open,
            None => Sockets::open().map_err(|error| no_report(&error))?,
        };
        let mut found = Vec::new();
        if ends.len() <= FEW {
            found = open.between(ends).map_err(|error| no_report(&error))?;
        } else {
            for (family, port) in &self.places {
                found.extend(open.tcp(*family, Some(*port)).map_err(|error| no_report(&error))?);
            }
        }
        self.sockets = Some(open);
        Ok(found)
    }
}

/// Circuits lead to the first port by addresses of their own, which are mostly IPv4.
fn looked_at(places: &[SocketAddr]) -> BTreeSet<(Family, u16)> {
    let by_v4 = places.iter().map(|place| (Family::V4, place.port()));
    let by_v6 = places.iter().filter(|place| place.is_ipv6()).map(|place| (Family::V6, place.port()));
    by_v4.chain(by_v6).collect()
}

/// Ten looks a second, as Web100's tracer took.
const TICK: Micros = Micros::from_millis(100);

/// More questions one by one take longer than a walk through all sockets of the host.
const FEW: usize = 128;
