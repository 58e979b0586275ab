//! This node's end of one circuit: answers the other ends and sends them its own requests.
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use downburst_session::CircuitReach;
use serde::Serialize;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::gathering::Gathering;
use super::packet::{Arrivals, Envelope, Packet};
use super::rate::{FULL_PATIENCE, RateOrder, RateProbe, Sent, send_train};

/// An end that answers until it is dropped.
#[derive(Debug)]
pub(crate) struct Endpoint {
    shared: Arc<Shared>,
    answering: AbortHandle,
}

/// Probe packets sent, and their replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reach {
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) round_trip_us: Option<RoundTrip>,
}

/// Round-trip times of the packets that were answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RoundTrip {
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) max: u64,
}

#[derive(Debug)]
struct Shared {
    lease: u32,
    secret: [u8; 16],
    socket: UdpSocket,
    /// The same socket, for callers that do not wait.
    sender: std::net::UdpSocket,
    /// For trains, which fill its buffer: an answer must not queue behind them.
    trains: std::net::UdpSocket,
    state: Mutex<State>,
    /// One measurement at a time: two would share the circuit.
    measuring: tokio::sync::Mutex<()>,
    next_echo: AtomicU64,
    next_run: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the last answer from each of the other ends.
    heard: BTreeMap<IpAddr, Instant>,
    gathering: BTreeMap<IpAddr, Gathering>,
    /// The ends to which this one is sending a train.
    sending: Vec<IpAddr>,
    waiting: Option<mpsc::UnboundedSender<Heard>>,
}

/// An answer to a measurement.
#[derive(Debug)]
struct Heard {
    from: IpAddr,
    packet: Packet,
    at: Instant,
}

impl Endpoint {
    /// Listens at `address` for packets that arrive through `interface`.
    pub(crate) fn open(lease: u32, secret: [u8; 16], address: IpAddr, interface: &str) -> io::Result<Self> {
        let at = SocketAddr::new(address, PROBE_PORT);
        let sender = bound(at, interface)?;
        let trains = bound(SocketAddr::new(address, 0), interface)?;
        // A thread of its own blocks until the buffer has room; the kernel reports that sooner than any sleep would.
        trains.set_nonblocking(false)?;
        trains.set_write_timeout(Some(FULL_PATIENCE))?;
        let shared = Arc::new(Shared {
            lease,
            secret,
            socket: UdpSocket::from_std(sender.try_clone()?)?,
            sender,
            trains,
            state: Mutex::default(),
            measuring: tokio::sync::Mutex::default(),
            next_echo: AtomicU64::new(1),
            next_run: AtomicU32::new(1),
        });
        let answering = tokio::spawn(answer(Arc::clone(&shared))).abort_handle();
        Ok(Self { shared, answering })
    }

    /// Sends an echo request to an end; the time of its answer is in [`Endpoint::heard`].
    pub(crate) fn ping(&self, end: IpAddr) {
        self.shared.say(end, Packet::Echo(self.shared.next_echo.fetch_add(1, Ordering::Relaxed)));
    }

    pub(crate) fn heard(&self, end: IpAddr) -> Option<Instant> {
        self.shared.state().heard.get(&end).copied()
    }

    /// Sends five echo requests.
    pub(crate) async fn reach(&self, end: IpAddr) -> Reach {
        let _alone = self.shared.measuring.lock().await;
        let mut answers = self.shared.listen();
        let mut sent = BTreeMap::new();
        for _ in 0..ECHOES {
            let echo = self.shared.next_echo.fetch_add(1, Ordering::Relaxed);
            sent.insert(echo, Instant::now());
            self.shared.say(end, Packet::Echo(echo));
            tokio::time::sleep(ECHO_PAUSE).await;
        }
        let mut round_trips = Vec::new();
        let give_up = tokio::time::Instant::now() + ECHO_PATIENCE;
        while round_trips.len() < sent.len()
            && let Ok(Some(heard)) = tokio::time::timeout_at(give_up, answers.recv()).await
        {
            if let Packet::Reply(echo) = heard.packet
                && heard.from == end
                && let Some(sent) = sent.get(&echo)
            {
                round_trips.push(heard.at.saturating_duration_since(*sent).as_micros() as u64);
            }
        }
        Reach { sent: ECHOES, received: round_trips.len() as u32, round_trip_us: RoundTrip::of(round_trips) }
    }

    /// Sends a train to an end, or has it send one; `None` if the end did not report on it.
    pub(crate) async fn rate(&self, end: IpAddr, order: RateOrder) -> Option<RateProbe> {
        let _alone = self.shared.measuring.lock().await;
        let mut answers = self.shared.listen();
        let run = self.shared.next_run.fetch_add(1, Ordering::Relaxed);
        let (sent, arrived) = if order.out {
            let sent = self.shared.clone().send(end, run, order).await?;
            (sent, self.shared.report(end, run, &mut answers).await?)
        } else {
            self.shared.gather(end, run, order, &mut answers).await?
        };
        Some(RateProbe::of(order, &sent, &arrived))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn envelope(&self, packet: Packet) -> Envelope {
        Envelope { lease: self.lease, secret: self.secret, packet }
    }

    /// A packet that can't be sent now is lost, as on any path.
    fn say(&self, end: IpAddr, packet: Packet) {
        let datagram = self.envelope(packet).padded(0);
        let _ = self.sender.send_to(&datagram, SocketAddr::new(end, PROBE_PORT));
    }

    fn listen(&self) -> mpsc::UnboundedReceiver<Heard> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.state().waiting = Some(sender);
        receiver
    }

    async fn send(self: Arc<Self>, end: IpAddr, run: u32, order: RateOrder) -> Option<Sent> {
        let sending = tokio::task::spawn_blocking(move || {
            let to = SocketAddr::new(end, PROBE_PORT);
            let _ = SockRef::from(&self.trains).set_send_buffer_size(order.buffer_bytes());
            send_train(&self.trains, to, |packet| self.envelope(packet), run, order)
        });
        sending.await.ok()?.ok()
    }

    /// Requests the other end's report until it arrives; packets may still be in flight at the first request.
    async fn report(
        &self,
        end: IpAddr,
        run: u32,
        answers: &mut mpsc::UnboundedReceiver<Heard>,
    ) -> Option<Arrivals> {
        tokio::time::sleep(REPORT_REST).await;
        for _ in 0..REPORT_ATTEMPTS {
            self.say(end, Packet::ReportWanted(run));
            let told = |packet| match packet {
                Packet::Report(of, arrived) if of == run => Some(arrived),
                _ => None,
            };
            if let Some(arrived) = answered(answers, end, REPORT_PATIENCE, told).await {
                return Some(arrived);
            }
        }
        None
    }

    /// Has the other end send a train here.
    async fn gather(
        &self,
        end: IpAddr,
        run: u32,
        order: RateOrder,
        answers: &mut mpsc::UnboundedReceiver<Heard>,
    ) -> Option<(Sent, Arrivals)> {
        self.state().gathering.insert(end, Gathering::of(run));
        let duration_ms = order.duration.as_millis() as u32;
        let ask = Packet::Ask { run, rate_bps: order.rate_bps, duration_ms, frame_bytes: order.frame_bytes };
        let patience = order.duration * 2 + ASK_PATIENCE;
        // An end sends once for a run, however many copies of the request it receives.
        for _ in 0..ASK_REPEATS {
            self.say(end, ask.clone());
            tokio::time::sleep(ECHO_PAUSE).await;
        }
        let told = |packet| match packet {
            Packet::Over { run: of, sent_by_bin, sent_for_us } if of == run => {
                Some(Sent { by_bin: sent_by_bin, lasted_us: sent_for_us })
            }
            _ => None,
        };
        let sent = answered(answers, end, patience, told).await?;
        let packets = sent.by_bin.iter().sum();
        let gathering = self.state().gathering.remove(&end)?;
        Some((sent, gathering.sum(Some(packets))))
    }

    fn take(self: &Arc<Self>, from: IpAddr, packet: Packet, at: Instant) {
        match packet {
            Packet::Echo(echo) => self.say(from, Packet::Reply(echo)),
            Packet::Burst(run) => self.gathering(from, run, Gathering::burst),
            Packet::Car(car) => self.gathering(from, car.run, |gathering| gathering.car(car, at)),
            Packet::ReportWanted(run) => {
                let sum = self.state().gathering.get(&from).filter(|it| it.run == run).map(|it| it.sum(None));
                self.say(from, Packet::Report(run, sum.unwrap_or_default()));
            }
            Packet::Ask { run, rate_bps, duration_ms, frame_bytes } => {
                let duration = Duration::from_millis(duration_ms.into()).min(LONGEST_TRAIN);
                self.send_back(from, run, RateOrder { rate_bps, duration, out: true, frame_bytes });
            }
            packet @ (Packet::Reply(_) | Packet::Over { .. } | Packet::Report(..)) => {
                let mut state = self.state();
                state.heard.insert(from, at);
                if let Some(waiting) = &state.waiting {
                    let _ = waiting.send(Heard { from, packet, at });
                }
            }
        }
    }

    fn gathering(&self, from: IpAddr, run: u32, add: impl FnOnce(&mut Gathering)) {
        let mut state = self.state();
        if state.gathering.len() >= MOST_ENDS && !state.gathering.contains_key(&from) {
            return;
        }
        let gathering = state.gathering.entry(from).or_insert_with(|| Gathering::of(run));
        if gathering.run != run {
            *gathering = Gathering::of(run);
        }
        add(gathering);
    }

    fn send_back(self: &Arc<Self>, end: IpAddr, run: u32, order: RateOrder) {
        {
            let mut state = self.state();
            if state.sending.contains(&end) || order.rate_bps == 0 {
                return;
            }
            state.sending.push(end);
        }
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(sent) = Arc::clone(&shared).send(end, run, order).await {
                let over = Packet::Over { run, sent_by_bin: sent.by_bin, sent_for_us: sent.lasted_us };
                for _ in 0..REPORT_ATTEMPTS {
                    tokio::time::sleep(REPORT_REST).await;
                    shared.say(end, over.clone());
                }
            }
            shared.state().sending.retain(|sending| *sending != end);
        });
    }
}

fn bound(at: SocketAddr, interface: &str) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(at.port() != 0)?;
    // A packet for this address that arrived another way would measure another path. Where binding requires a
    // privilege, the secret has to suffice.
    let _ = socket.bind_device(Some(interface.as_bytes()));
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

impl From<CircuitReach> for Reach {
    fn from(CircuitReach { sent, received, round_trip_us }: CircuitReach) -> Self {
        let round_trip_us = round_trip_us.map(|(min, median, max)| RoundTrip { min, median, max });
        Self { sent, received, round_trip_us }
    }
}

impl From<Reach> for CircuitReach {
    fn from(Reach { sent, received, round_trip_us }: Reach) -> Self {
        let round_trip_us = round_trip_us.map(|trip| (trip.min, trip.median, trip.max));
        Self { sent, received, round_trip_us }
    }
}

impl RoundTrip {
    fn of(mut round_trips: Vec<u64>) -> Option<Self> {
        round_trips.sort_unstable();
        let median = *round_trips.get(round_trips.len() / 2)?;
        Some(Self { min: *round_trips.first()?, median, max: *round_trips.last()? })
    }
}

async fn answer(shared: Arc<Shared>) {
    let mut datagram = vec![0; LARGEST_DATAGRAM];
    loop {
        let Ok((length, from)) = shared.socket.recv_from(&mut datagram).await else {
            // An end that does not listen yet refused the packet.
            tokio::time::sleep(ECHO_PAUSE).await;
            continue;
        };
        let at = Instant::now();
        let envelope = datagram.get(..length).and_then(Envelope::read);
        if let Some(envelope) = envelope.filter(|it| it.lease == shared.lease && it.secret == shared.secret) {
            shared.take(from.ip(), envelope.packet, at);
        }
    }
}

/// The first answer of an end for which `told` returns a value.
async fn answered<T>(
    answers: &mut mpsc::UnboundedReceiver<Heard>,
    end: IpAddr,
    patience: Duration,
    told: impl Fn(Packet) -> Option<T>,
) -> Option<T> {
    let give_up = tokio::time::Instant::now() + patience;
    loop {
        let heard = tokio::time::timeout_at(give_up, answers.recv()).await.ok()??;
        if heard.from == end
            && let Some(answer) = told(heard.packet)
        {
            return Some(answer);
        }
    }
}

/// The port of circuit ends for each other, on the circuits' own addresses.
pub(crate) const PROBE_PORT: u16 = 7_372;

/// The longest train that another end may request.
pub(super) const LONGEST_TRAIN: Duration = Duration::from_secs(2);

const ECHOES: u32 = 5;
const ECHO_PAUSE: Duration = Duration::from_millis(5);
const ECHO_PATIENCE: Duration = Duration::from_millis(1_500);
const REPORT_REST: Duration = Duration::from_millis(100);
const REPORT_PATIENCE: Duration = Duration::from_millis(300);
const REPORT_ATTEMPTS: usize = 5;
const ASK_PATIENCE: Duration = Duration::from_secs(2);
const ASK_REPEATS: usize = 3;
const MOST_ENDS: usize = 1_024;
const LARGEST_DATAGRAM: usize = 65_536;
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use downburst_hub::circuits::PROBE_FRAME_BYTES;

    use super::*;

    /// Two ends of a circuit on the loopback interface; a port belongs to one address, so both have the same.
    fn ends(secrets: [[u8; 16]; 2]) -> (Endpoint, IpAddr, Endpoint, IpAddr) {
        // Addresses of this test process alone: tests run side by side.
        let place = std::process::id();
        let address = |host: u8| {
            IpAddr::from([127, 100 + secrets[1][0], (place >> 8) as u8, host | (place as u8 & 0xf0)])
        };
        let (one, other) = (address(1), address(2));
        let open = |secret, address| Endpoint::open(7, secret, address, "lo").unwrap();
        (open(secrets[0], one), one, open(secrets[1], other), other)
    }

    #[tokio::test]
    async fn an_end_that_is_there_is_reached_and_measured_both_ways() {
        let (here, _, _there, end) = ends([[1; 16]; 2]);
        let reach = here.reach(end).await;
        assert_eq!((reach.sent, reach.received), (5, 5));
        assert!(here.heard(end).is_some());
        for out in [true, false] {
            let duration = Duration::from_millis(200);
            let order = RateOrder { rate_bps: 5_000_000, duration, out, frame_bytes: PROBE_FRAME_BYTES };
            let probe = here.rate(end, order).await.unwrap();
            assert!(probe.sent >= 80 && probe.received == probe.sent, "{probe:?}");
            assert!((3_000_000..8_000_000).contains(&probe.received_bps), "{probe:?}");
        }
    }

    #[tokio::test]
    async fn an_end_that_does_not_know_the_secret_is_not_heard() {
        let (here, _, _there, end) = ends([[1; 16], [2; 16]]);
        assert_eq!(here.reach(end).await.received, 0);
        assert_eq!(here.heard(end), None);
    }
}
