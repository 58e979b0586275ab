//! The fan-out of a leg by unicast: a thread hears the announcements of sites, and each train goes to all of them in
//! turn.
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use downburst_model::Micros;
use downburst_session::{Datagrams, RelayLeg, UnicastFanOut};
use downburst_site::Receivers;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Carried;
use crate::udp::{CopySocket, Outlet};

/// A leg that is sent by unicast until it is dropped.
pub(super) struct Copies {
    shared: Arc<Shared>,
    /// Its end ends the thread.
    life: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    socket: CopySocket,
    receivers: Mutex<Receivers>,
    began: Instant,
}

impl Copies {
    /// Opens the leg's port. `group` has the port, and an address of the sites' IP version.
    pub(super) fn open(
        leg: &RelayLeg,
        fan_out: &UnicastFanOut,
        group: SocketAddr,
        outlet: &Outlet,
    ) -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        let shared = Arc::new(Shared {
            socket: CopySocket::open(group, outlet)?,
            receivers: Mutex::new(Receivers::new(leg.leg, fan_out, &secret)),
            began: Instant::now(),
        });
        let (life, end) = UnixStream::pair()?;
        let hearing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(format!("copies-{}", leg.leg.0))
            .spawn(move || hearing.hear_until(&end))?;
        Ok(Self { shared, life: Some(life), thread: Some(thread) })
    }

    pub(super) fn socket(&self) -> &CopySocket {
        &self.shared.socket
    }

    /// Bounds the number of receivers.
    pub(super) fn bound(&self, sites: u64) {
        self.shared.lock().bound(sites);
    }

    /// Sends a train to all receivers, and counts each copy. It waits for nobody.
    pub(super) fn send(&self, train: &Datagrams, carried: &mut Carried) -> io::Result<()> {
        let receivers: Vec<SocketAddr> = self.shared.lock().at(self.shared.now()).collect();
        let mut all = Ok(());
        for to in receivers {
            let (unsent, sent) =
                self.shared.socket.send_all(&train.bytes, usize::from(train.segment_bytes), to);
            carried.count(train, unsent);
            all = all.and(sent);
        }
        all
    }
}

impl Drop for Copies {
    /// The next leg may have the same port.
    fn drop(&mut self) {
        self.life = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn hear_until(&self, end: &UnixStream) {
        loop {
            let mut fds = [
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(end.as_fd(), PollFlags::POLLIN),
            ];
            let polled = poll(&mut fds, PollTimeout::NONE);
            let has_ended = fds[1].revents().is_some_and(|events| !events.is_empty());
            if has_ended || polled.is_err_and(|error| error != nix::errno::Errno::EINTR) {
                return;
            }
            self.socket.hear(|from, datagram| self.lock().handle(self.now(), from, datagram));
        }
    }

    fn now(&self) -> Micros {
        Micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Receivers> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
