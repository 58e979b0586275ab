//! The reflector on its thread.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use downburst_clock::Clock;
use downburst_model::Micros;
use downburst_stamp::tlv::Ends;
use downburst_stamp::{Arrival, Counts, Reflector, ReflectorSettings, WallNanos};

use crate::socket::{Received, StampSocket, estimate};

/// The settings of a reflector at a host.
#[derive(Clone, Debug)]
pub struct ReflectingSettings {
    /// The address, with a port; 862 is that of the protocol.
    pub listen: SocketAddr,
    /// What it answers, and its bounds.
    pub reflector: ReflectorSettings,
    /// The clock of its stamps.
    pub clock: Clock,
}

/// A reflector that answers until it is dropped.
#[derive(Debug)]
pub struct Reflecting {
    local: SocketAddr,
    kernel_stamps: bool,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
}

impl Reflecting {
    /// Starts to answer; the error is a sentence.
    pub fn start(settings: ReflectingSettings) -> Result<Self, String> {
        let socket = StampSocket::open(settings.listen, None, settings.clock).map_err(|error| {
            format!("STAMP can't listen at {}: {error}; choose another address or port", settings.listen)
        })?;
        let (local, kernel_stamps) = (socket.local(), socket.kernel_stamps());
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let answer = move || Answering::new(socket, settings).until(&ends);
        let thread = std::thread::Builder::new().name("stamp".to_owned()).spawn(answer);
        let thread = thread.map_err(|error| format!("STAMP's thread can't start: {error}"))?;
        tracing::info!(address = %local, kernel_stamps, "STAMP's reflector is ready");
        Ok(Self { local, kernel_stamps, end, thread: Some(thread) })
    }

    /// The settings of a reflector within a hub's node or a site: open, counting, with narrow bounds.
    pub fn modest(listen: SocketAddr, clock: Clock) -> ReflectingSettings {
        let reflector = ReflectorSettings {
            key: None,
            stateful: true,
            most_sessions: 256,
            session_expiry: Micros::from_secs(60),
            requests_per_second: 100,
        };
        ReflectingSettings { listen, reflector, clock }
    }

    /// Its address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether the kernel stamps arrivals.
    pub fn kernel_stamps(&self) -> bool {
        self.kernel_stamps
    }

    /// Ends it, and returns the numbers of requests.
    pub fn end(mut self) -> Counts {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Reflecting {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

struct Answering {
    socket: StampSocket,
    reflector: Reflector,
    clock: Clock,
    reported: Counts,
    report_due: Micros,
}

impl Answering {
    fn new(socket: StampSocket, settings: ReflectingSettings) -> Self {
        let reflector = Reflector::new(settings.reflector);
        let report_due = settings.clock.monotonic();
        Self { socket, reflector, clock: settings.clock, reported: Counts::default(), report_due }
    }

    fn until(mut self, end: &AtomicBool) -> Counts {
        let mut buffer = vec![0; DATAGRAM_OCTETS];
        while !end.load(Ordering::Relaxed) {
            if self.socket.wait(LOOK_INTERVAL) {
                self.answer_waiting(&mut buffer);
            }
            self.report();
        }
        self.reflector.counts()
    }

    fn answer_waiting(&mut self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            match self.socket.receive(buffer) {
                Ok(Some(received)) => {
                    self.answer(buffer.get(..received.octets).unwrap_or_default(), &received)
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("STAMP's reflector can't receive: {error}");
                    return std::thread::sleep(LOOK_INTERVAL);
                }
            }
        }
    }

    fn answer(&mut self, octets: &[u8], received: &Received) {
        let ends = Ends { source: received.source, destination: received.destination };
        let arrival = Arrival { ends, at: self.clock.monotonic(), wall: received.wall, ttl: received.ttl };
        if let Ok(pending) = self.reflector.take(octets, &arrival) {
            let estimate = estimate();
            let answer = pending.send_at(WallNanos(self.clock.wall_nanos()), estimate);
            // An answer that can't leave is lost, as on the way.
            let _ = self.socket.answer(&answer, received);
        }
    }

    /// Names refused requests, at most once a minute.
    fn report(&mut self) {
        let (now, counts) = (self.clock.monotonic(), self.reflector.counts());
        let refused =
            |counts: Counts| [counts.malformed, counts.not_authentic, counts.too_frequent, counts.no_room];
        if now < self.report_due || refused(counts) == refused(self.reported) {
            return;
        }
        let [malformed, not_authentic, too_frequent, no_room] = refused(counts);
        tracing::warn!(
            address = %self.socket.local(), malformed, not_authentic, too_frequent, no_room,
            "STAMP's reflector refused requests (totals)"
        );
        self.reported = counts;
        self.report_due = Micros(now.0.saturating_add(REPORT_INTERVAL.0));
    }
}

const DATAGRAM_OCTETS: usize = 65_536;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const REPORT_INTERVAL: Micros = Micros::from_secs(60);

/// Datagrams between two looks at the end.
const BATCH: usize = 256;
