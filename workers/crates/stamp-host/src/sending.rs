//! A run of requests.
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use downburst_clock::Clock;
use downburst_model::Micros;
use downburst_stamp::{Report, Sender, SenderSettings, WallNanos};

use crate::socket::{StampSocket, estimate};

/// A run of requests.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) to: SocketAddr,
    pub(crate) count: u32,
    pub(crate) interval: Duration,
    /// The time for which answers are awaited after the last request.
    pub(crate) patience: Duration,
    pub(crate) sender: SenderSettings,
    pub(crate) clock: Clock,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) report: Report,
    pub(crate) local: SocketAddr,
    pub(crate) kernel_stamps: bool,
    /// Requests that this host could not send, as its network was full or away.
    pub(crate) unsent: u64,
}

/// Sends requests at their interval and takes answers until each has one or the patience is over; the error is a
/// sentence.
pub(crate) fn send(run: &Run) -> Result<Finished, String> {
    let any: IpAddr =
        if run.to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = StampSocket::open(SocketAddr::new(any, 0), Some(run.to), run.clock)
        .map_err(|error| format!("no way to {}: {error}", run.to))?;
    let mut sending = Sending { run, sender: Sender::new(run.sender.clone()), socket, unsent: 0 };
    sending.all()?;
    let Sending { sender, socket, unsent, .. } = sending;
    let (local, kernel_stamps) = (socket.local(), socket.kernel_stamps());
    Ok(Finished { report: sender.report(), local, kernel_stamps, unsent })
}

struct Sending<'a> {
    run: &'a Run,
    sender: Sender,
    socket: StampSocket,
    unsent: u64,
}

impl Sending<'_> {
    fn all(&mut self) -> Result<(), String> {
        let interval = u64::try_from(self.run.interval.as_micros()).unwrap_or(u64::MAX);
        let mut due = self.run.clock.monotonic();
        for _ in 0..self.run.count {
            self.take_until(due, false)?;
            self.request()?;
            due = Micros(due.0.saturating_add(interval));
        }
        let patience = u64::try_from(self.run.patience.as_micros()).unwrap_or(u64::MAX);
        self.take_until(Micros(self.run.clock.monotonic().0.saturating_add(patience)), true)
    }

    fn request(&mut self) -> Result<(), String> {
        let (estimate, clock) = (estimate(), self.run.clock);
        let request = self.sender.request(clock.monotonic(), WallNanos(clock.wall_nanos()), estimate);
        let Some(request) = request else { return Err("the run has too many requests".to_owned()) };
        match self.socket.send(&request) {
            Ok(()) => Ok(()),
            // The network's word on an earlier request, or a full queue: the request is lost.
            Err(error) if is_passing(error.kind()) => {
                self.unsent += 1;
                Ok(())
            }
            Err(error) => Err(format!("a request to {} can't be sent: {error}", self.run.to)),
        }
    }

    /// Takes answers until a moment, or until each request has one.
    fn take_until(&mut self, due: Micros, until_answered: bool) -> Result<(), String> {
        let mut buffer = vec![0; DATAGRAM_OCTETS];
        loop {
            let left = due.0.saturating_sub(self.run.clock.monotonic().0);
            if left == 0 || (until_answered && self.sender.is_answered()) {
                return Ok(());
            }
            if self.socket.wait(Duration::from_micros(left)) {
                self.take_waiting(&mut buffer)?;
            }
        }
    }

    fn take_waiting(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        let received = self.socket.receive(buffer);
        let received = received.map_err(|error| format!("answers can't be received: {error}"))?;
        if let Some(received) = received {
            let octets = buffer.get(..received.octets).unwrap_or_default();
            // A datagram that is no answer is counted by the sender.
            let _ = self.sender.take(octets, self.run.clock.monotonic(), received.wall);
        }
        Ok(())
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | WouldBlock | Interrupted)
}

const DATAGRAM_OCTETS: usize = 65_536;
