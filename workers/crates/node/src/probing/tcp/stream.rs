//! Records of a constant rate over one connection.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use downburst_model::{Micros, WallMicros};
use downburst_probe::{
    Control, Due, Key, Packet, PacketKind, Purpose, Receiver, Records, Schedule, Sent, SentByTcp, Step,
    tcp_frame_bytes,
};
use tokio::sync::watch;

use super::entrance::{Entrance, Far, connected, show, socket_with};
use crate::clock::Clock;
use crate::probing::counter::Rest;
use crate::probing::{Counter, PATIENCE, Sending, is_quiet};
use crate::tcp::{control_of, flow_facts, round_trip, use_control};

/// One end of a probe with records over TCP; its threads end when this is dropped.
pub(crate) struct Stream {
    shared: Arc<Shared>,
    frame_bytes: u64,
    number: u16,
    /// At the node.
    _entrance: Option<Entrance>,
}

struct Shared {
    key: Key,
    record_bytes: u16,
    clock: Clock,
    is_over: AtomicBool,
    counter: Counter,
    connection: watch::Sender<Option<Arc<TcpStream>>>,
}

impl Stream {
    /// Opens a port of this node for a site. `control`: of the node's records, if it sends them.
    pub(crate) fn listen(
        far: Far,
        control: Option<Control>,
        record_bytes: u16,
        clock: Clock,
    ) -> io::Result<Self> {
        let shared = Shared::new(far.key, record_bytes, clock);
        let taking = Arc::clone(&shared);
        let entrance = Entrance::open(far, move |purpose, stream| {
            let is_set = control.is_none_or(|control| use_control(&stream, control).is_ok());
            if purpose == Purpose::Records && is_set {
                taking.take(stream);
            }
        })?;
        let number = entrance.number();
        let frame_bytes = tcp_frame_bytes(record_bytes.into(), far.site.to_canonical().is_ipv6());
        Ok(Self { shared, frame_bytes, number, _entrance: Some(entrance) })
    }

    /// Connects to a port of the hub's node, in a thread of its own. `control`: of the site's records, if it sends
    /// them.
    ///
    /// # Errors
    /// The kernel does not have the congestion control; one sentence without its place.
    pub(crate) fn towards(
        node: SocketAddr,
        key: Key,
        control: Option<Control>,
        record_bytes: u16,
        clock: Clock,
    ) -> Result<Self, String> {
        let socket = socket_with(node, control)?;
        let shared = Shared::new(key, record_bytes, clock);
        let connecting = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("probe".to_owned());
        let connect = move || {
            // Without a connection the node gives up.
            if let Ok(stream) = connected(socket, node) {
                connecting.begin(stream);
            }
        };
        thread.spawn(connect).map_err(|error| format!("the system gives no thread: {error}"))?;
        let frame_bytes = tcp_frame_bytes(record_bytes.into(), node.ip().to_canonical().is_ipv6());
        Ok(Self { shared, frame_bytes, number: node.port(), _entrance: None })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// True if the records go by IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.frame_bytes == tcp_frame_bytes(self.shared.record_bytes.into(), true)
    }

    pub(crate) fn counter(&self) -> &Counter {
        &self.shared.counter
    }

    /// Waits for the connection.
    pub(crate) async fn hears(&self) {
        let _ = self.shared.connection.subscribe().wait_for(Option::is_some).await;
    }

    /// Counts this step from now on.
    pub(crate) fn count(&self, number: u16, step: Step) {
        let most_packets = step.packets(self.frame_bytes).saturating_add(2);
        let round_trip = self.connection().map_or(Micros(0), |stream| round_trip(&stream));
        let receiver = Receiver::new(self.frame_bytes, most_packets).over_tcp(step.rate_bps, round_trip);
        self.shared.counter.begin(number, receiver);
    }

    /// Sends a step from a thread of its own.
    pub(crate) fn send(&self, number: u16, step: Step) -> io::Result<Sending> {
        let stream = self.connection().ok_or(io::ErrorKind::NotConnected)?;
        let (shared, frame_bytes) = (Arc::clone(&self.shared), self.frame_bytes);
        Sending::start(move |holds| {
            let schedule = Schedule::queued(shared.clock.monotonic(), step, frame_bytes);
            shared.send(&stream, schedule, number, holds)
        })
    }

    fn connection(&self) -> Option<Arc<TcpStream>> {
        self.shared.connection.borrow().clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn new(key: Key, record_bytes: u16, clock: Clock) -> Arc<Self> {
        let (counter, is_over) = (Counter::new(clock, REST), AtomicBool::new(false));
        let connection = watch::Sender::default();
        Arc::new(Self { key, record_bytes, clock, is_over, counter, connection })
    }

    /// Takes the probe's connection, and reads it until the probe is over. There is one: others are closed.
    fn take(&self, stream: TcpStream) {
        if let Some(stream) = self.keep(stream) {
            self.read(&stream);
        }
    }

    /// Does the same with this site's own connection. It is kept before the key is shown: the node may order the first
    /// step as soon as it sees the key.
    fn begin(&self, stream: TcpStream) {
        let Some(stream) = self.keep(stream) else { return };
        if show(&stream, &self.key, Purpose::Records).is_ok() {
            self.read(&stream);
        }
    }

    fn keep(&self, stream: TcpStream) -> Option<Arc<TcpStream>> {
        let stream = Arc::new(stream);
        let is_first = self.connection.send_if_modified(|connection| {
            let is_first = connection.is_none();
            connection.get_or_insert_with(|| Arc::clone(&stream));
            is_first
        });
        is_first.then_some(stream)
    }

    fn read(&self, mut stream: &TcpStream) {
        let mut records = Records::new(self.key, self.record_bytes);
        let mut buffer = vec![0; READ_BYTES];
        while !self.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    let (now, bytes) = (self.clock.now(), buffer.get(..length).unwrap_or_default());
                    if records.took(bytes, |packet| self.counter.took(now, packet)).is_err() {
                        return;
                    }
                }
                Err(error) if is_quiet(&error) => {}
                Err(_) => return,
            }
        }
    }

    fn send(&self, stream: &TcpStream, mut schedule: Schedule, step: u16, holds: &AtomicBool) -> Sent {
        let mut record = vec![0; self.record_bytes.into()];
        let goes_on = || !self.is_over() && !holds.load(Ordering::Relaxed);
        while goes_on() {
            let now = self.clock.now();
            match schedule.look(now.monotonic) {
                Due::Send(number) => {
                    let late_us = now.monotonic.since(schedule.last_due()).0;
                    let sent = WallMicros(now.wall.0.saturating_sub_unsigned(late_us));
                    Packet { kind: PacketKind::Load, step, number, sent }.write(&self.key, &mut record);
                    if !put(stream, &record, goes_on) {
                        schedule.not_sent();
                        break;
                    }
                }
                Due::At(due) => {
                    std::thread::sleep(Duration::from_micros(due.since(now.monotonic).0).min(PATIENCE));
                }
                Due::Over => break,
            }
        }
        let retransmits = flow_facts(stream).map(|facts| facts.retransmits);
        Sent { tcp: Some(SentByTcp { control: control_of(stream), retransmits }), ..schedule.sent() }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Writes a record, however long the connection has no room; false: it is to end, or the connection did.
fn put(mut stream: &TcpStream, record: &[u8], goes_on: impl Fn() -> bool) -> bool {
    let mut rest = record;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if is_quiet(&error) && goes_on() => {}
            Err(_) => return false,
        }
    }
    true
}

/// A retransmission may take its time. The node waits for the figures a little longer.
const REST: Rest = Rest { quiet: Micros::from_secs(2), longest: Micros::from_secs(4) };
const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use downburst_probe::Figures;

    use super::*;

    const KEY: Key = Key([3; 32]);
    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const STEP: Step = Step { rate_bps: 2_000_000, duration: Micros::from_millis(200) };

    fn pair(site_key: Key) -> (Stream, Stream) {
        let clock = Clock::start(0);
        let far = Far { at: HOME, site: HOME, key: KEY };
        let control = Control::parse("reno");
        let node = Stream::listen(far, control, 200, clock).unwrap();
        let at = SocketAddr::new(HOME, node.number());
        let site = Stream::towards(at, site_key, control, 200, clock).unwrap();
        (node, site)
    }

    async fn carried(from: &Stream, to: &Stream) -> (Sent, Figures) {
        to.count(4, STEP);
        let sent = from.send(4, STEP).unwrap().ended().await;
        to.counter().settle(sent.packets).await;
        (sent, to.counter().finish(sent.packets))
    }

    #[tokio::test]
    async fn records_arrive_in_either_direction_with_the_asked_congestion_control() {
        let (node, site) = pair(KEY);
        node.hears().await;
        site.hears().await;
        for (from, to) in [(&node, &site), (&site, &node)] {
            let (sent, figures) = carried(from, to).await;
            assert_eq!((figures.received, figures.lost, figures.reordered), (sent.packets, 0, 0));
            assert!(sent.packets >= 200_000 * 2 / 270 / 8 && figures.delay.is_some());
            let tcp = sent.tcp.unwrap();
            assert_eq!((tcp.control, tcp.retransmits), (Control::parse("reno"), Some(0)));
        }
    }

    #[tokio::test]
    async fn a_site_can_send_as_soon_as_the_node_has_heard_it() {
        for _ in 0..200 {
            let (node, site) = pair(KEY);
            node.hears().await;
            drop(site.send(4, STEP).unwrap());
        }
    }

    #[tokio::test]
    async fn a_host_without_the_key_gets_no_connection() {
        let (node, _site) = pair(Key([4; 32]));
        assert!(tokio::time::timeout(Duration::from_millis(500), node.hears()).await.is_err());
        assert!(node.send(0, STEP).is_err());
    }

    #[tokio::test]
    async fn another_address_and_a_silent_stranger_are_no_site() {
        let clock = Clock::start(0);
        let far = Far { at: HOME, site: IpAddr::from([127, 0, 0, 9]), key: KEY };
        let node = Stream::listen(far, None, 200, clock).unwrap();
        let at = SocketAddr::new(HOME, node.number());
        let _site = Stream::towards(at, KEY, None, 200, clock).unwrap();
        let _silent = TcpStream::connect(at).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(300), node.hears()).await.is_err());
    }

    #[tokio::test]
    async fn a_connection_that_reads_nothing_holds_the_sender_no_longer_than_asked() {
        let (node, site) = pair(KEY);
        node.hears().await;
        site.hears().await;
        drop(node);
        let long = Step { rate_bps: 8_000_000_000, duration: Micros::from_secs(600) };
        let mut sending = site.send(4, long).unwrap();
        sending.hold();
        assert!(sending.ended().await.packets < long.packets(270));
    }

    #[test]
    fn an_unknown_congestion_control_is_refused_before_anything_is_sent() {
        let at = SocketAddr::new(HOME, 9);
        let refused = Stream::towards(at, KEY, Control::parse("nonesuch"), 200, Clock::start(0));
        assert!(refused.err().unwrap().contains("nonesuch is not available"));
    }
}
