//! The socket of a probe, and the thread that reads it.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use downburst_model::Micros;
use downburst_probe::{Due, Key, Packet, PacketKind, Receiver, Schedule, Sent, Step, frame_bytes};
use tokio::sync::watch;

use super::arrivals::{self, Arrivals};
use super::counter::Rest;
use super::{Counter, PATIENCE, Sending, is_quiet};
use crate::clock::Clock;
use crate::udp::{connected, probe_socket};

/// One end of a probe; its thread ends when this is dropped.
pub(crate) struct Port {
    shared: Arc<Shared>,
    packet_bytes: u16,
    heard: watch::Receiver<bool>,
}

struct Shared {
    socket: UdpSocket,
    frame_bytes: AtomicU64,
    key: Key,
    clock: Clock,
    is_over: AtomicBool,
    counter: Counter,
}

/// Whether a host may be the other end.
pub(crate) type MaySayHello = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The other end.
enum Far {
    /// A site that has yet to say hello, from an address that it may have: packets go nowhere else.
    Site(MaySayHello),
    /// The hub's node, which hears hellos.
    Node,
}

impl Port {
    /// Opens a port of this node for a site. `at`: this node's own address; `site`: that of its session.
    pub(crate) fn listen(
        at: IpAddr,
        site: IpAddr,
        key: Key,
        packet_bytes: u16,
        clock: Clock,
    ) -> io::Result<Self> {
        let is_its_own: MaySayHello = Arc::new(move |from| from == site);
        Self::open(probe_socket(at)?, Far::Site(is_its_own), (key, packet_bytes), site.is_ipv6(), clock)
    }

    /// Opens a port of a relay for a site that may have several addresses.
    pub(crate) fn listen_for(
        may: MaySayHello,
        key: Key,
        packet_bytes: u16,
        clock: Clock,
    ) -> io::Result<Self> {
        let socket = probe_socket(Ipv6Addr::UNSPECIFIED.into());
        let socket = socket.or_else(|_| probe_socket(Ipv4Addr::UNSPECIFIED.into()))?;
        Self::open(socket, Far::Site(may), (key, packet_bytes), true, clock)
    }

    /// Opens a socket towards a port of the hub's node, to which alone its packets go.
    pub(crate) fn towards(node: SocketAddr, key: Key, packet_bytes: u16, clock: Clock) -> io::Result<Self> {
        let is_ipv6 = node.ip().to_canonical().is_ipv6();
        Self::open(connected(node)?, Far::Node, (key, packet_bytes), is_ipv6, clock)
    }

    fn open(
        socket: UdpSocket,
        far: Far,
        (key, packet_bytes): (Key, u16),
        is_ipv6: bool,
        clock: Clock,
    ) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let frame_bytes = AtomicU64::new(frame_bytes(packet_bytes.into(), is_ipv6));
        let counted = socket.try_clone()?;
        let counter = Counter::new(clock, REST).with_drops(move || arrivals::dropped(&counted));
        let is_over = AtomicBool::new(false);
        let shared = Arc::new(Shared { socket, frame_bytes, key, clock, is_over, counter });
        let (hear, heard) = watch::channel(false);
        let reading = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || reading.read(&far, packet_bytes, &hear))?;
        Ok(Self { shared, packet_bytes, heard })
    }

    /// The number of the port.
    pub(crate) fn number(&self) -> io::Result<u16> {
        self.shared.socket.local_addr().map(|address| address.port())
    }

    /// The bytes of each frame on the wire; of a port for several addresses from the first hello on.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.shared.frame_bytes.load(Ordering::Relaxed)
    }

    /// True if the packets go by IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.frame_bytes() == frame_bytes(self.packet_bytes.into(), true)
    }

    /// Waits for the site's first hello.
    pub(crate) async fn hears(&self) {
        // The thread ends with this value.
        let _ = self.heard.clone().wait_for(|heard| *heard).await;
    }

    /// Counts this step from now on.
    pub(crate) fn count(&self, number: u16, step: Step) {
        let frame_bytes = self.frame_bytes();
        let most_packets = step.packets(frame_bytes).saturating_add(2);
        self.shared.counter.begin(number, Receiver::new(frame_bytes, most_packets));
    }

    /// The count of the step.
    pub(crate) fn counter(&self) -> &Counter {
        &self.shared.counter
    }

    /// Sends a step from a thread of its own.
    pub(crate) fn send(&self, number: u16, step: Step) -> io::Result<Sending> {
        let (shared, packet_bytes) = (Arc::clone(&self.shared), self.packet_bytes);
        let frame_bytes = self.frame_bytes();
        Sending::start(move |holds| {
            let schedule = Schedule::begin(shared.clock.monotonic(), step, frame_bytes);
            shared.send(schedule, number, packet_bytes, holds)
        })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn read(&self, far: &Far, packet_bytes: u16, hear: &watch::Sender<bool>) {
        let mut datagram = [0; LARGEST_BYTES];
        let mut arrivals = Arrivals::of(&self.socket, self.clock);
        let mut hello_due = Micros(0);
        while !self.is_over() {
            if matches!(far, Far::Node) && self.clock.monotonic() >= hello_due {
                hello_due = self.clock.monotonic().plus(HELLO_INTERVAL);
                self.say_hello();
            }
            match arrivals.next(&mut datagram) {
                Ok((length, from, at)) => {
                    let packet = Packet::read(&self.key, datagram.get(..length).unwrap_or_default());
                    match (packet, far) {
                        (Some(packet), _) if packet.kind == PacketKind::Load => {
                            self.counter.took(at, &packet);
                        }
                        (Some(_), Far::Site(may)) if !*hear.borrow() => {
                            self.hear(from, may, packet_bytes, hear);
                        }
                        _ => {}
                    }
                }
                Err(error) if is_quiet(&error) => {}
                // A host that refuses datagrams answers each with an error: the path loses them.
                Err(_) => std::thread::sleep(REFUSED_PAUSE),
            }
        }
    }

    /// Sends only to the host of the first hello from now on.
    fn hear(&self, from: SocketAddr, may: &MaySayHello, packet_bytes: u16, hear: &watch::Sender<bool>) {
        let address = from.ip().to_canonical();
        if may(address) && self.socket.connect(from).is_ok() {
            let frame_bytes = frame_bytes(packet_bytes.into(), address.is_ipv6());
            self.frame_bytes.store(frame_bytes, Ordering::Relaxed);
            hear.send_replace(true);
        }
    }

    fn say_hello(&self) {
        let mut datagram = [0; HELLO_BYTES];
        let hello = Packet { kind: PacketKind::Hello, step: 0, number: 0, sent: self.clock.wall() };
        hello.write(&self.key, &mut datagram);
        // The next one follows.
        let _ = self.socket.send(&datagram);
    }

    fn send(&self, mut schedule: Schedule, step: u16, packet_bytes: u16, holds: &AtomicBool) -> Sent {
        let mut datagram = vec![0; packet_bytes.into()];
        while !self.is_over() && !holds.load(Ordering::Relaxed) {
            let now = self.clock.monotonic();
            match schedule.look(now) {
                Due::Send(number) => {
                    let packet = Packet { kind: PacketKind::Load, step, number, sent: self.clock.wall() };
                    packet.write(&self.key, &mut datagram);
                    self.put(&datagram, &mut schedule);
                }
                Due::At(due) => {
                    std::thread::sleep(Duration::from_micros(due.since(now).0).min(PATIENCE));
                }
                Due::Over => break,
            }
        }
        schedule.sent()
    }

    /// A packet for which the host has no room is sent later: the rate then falls short, which the result shows.
    fn put(&self, datagram: &[u8], schedule: &mut Schedule) {
        match self.socket.send(datagram) {
            Ok(_) => {}
            // The far host answered an earlier packet; this one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => schedule.not_sent(),
            Err(_) => {
                schedule.not_sent();
                std::thread::sleep(NO_ROOM_PAUSE);
            }
        }
    }
}

const NO_ROOM_PAUSE: Duration = Duration::from_micros(200);
const REFUSED_PAUSE: Duration = Duration::from_millis(5);
/// The way through a firewall or an address translator stays open.
const HELLO_INTERVAL: Micros = Micros::from_millis(250);
/// Packets that are longer in flight behind the last one count as lost.
const REST: Rest = Rest { quiet: Micros::from_millis(300), longest: Micros::from_secs(2) };
const HELLO_BYTES: usize = 64;
const LARGEST_BYTES: usize = 2_048;

#[cfg(test)]
mod tests {
    use downburst_probe::Figures;

    use super::*;

    const KEY: Key = Key([3; 32]);

    fn pair(site_key: Key) -> (Port, Port) {
        let clock = Clock::start(0);
        let home = IpAddr::from([127, 0, 0, 1]);
        let node = Port::listen(home, home, KEY, 200, clock).unwrap();
        let site =
            Port::towards(SocketAddr::new(home, node.number().unwrap()), site_key, 200, clock).unwrap();
        (node, site)
    }

    const STEP: Step = Step { rate_bps: 2_000_000, duration: Micros::from_millis(200) };

    async fn carried(from: &Port, to: &Port) -> Figures {
        to.count(4, STEP);
        let mut sending = from.send(4, STEP).unwrap();
        let sent = sending.ended().await;
        to.counter().settle(sent.packets).await;
        assert!(sent.packets > 0);
        to.counter().finish(sent.packets)
    }

    #[tokio::test]
    async fn a_step_arrives_in_either_direction_once_the_site_has_said_hello() {
        let (node, site) = pair(KEY);
        node.hears().await;
        for (from, to) in [(&node, &site), (&site, &node)] {
            let figures = carried(from, to).await;
            assert_eq!((figures.received, figures.lost), (figures.sent, 0));
            assert_eq!(to.counter().arrived(), (0, None), "it is counted no longer");
        }
    }

    #[tokio::test]
    async fn a_port_for_several_hosts_hears_those_that_it_knows() {
        let clock = Clock::start(0);
        let heard = async |known: [u8; 4]| {
            let may: MaySayHello = Arc::new(move |from| from == IpAddr::from(known));
            let relay = Port::listen_for(may, KEY, 200, clock).unwrap();
            let at = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), relay.number().unwrap());
            let _site = Port::towards(at, KEY, 200, clock).unwrap();
            let heard = tokio::time::timeout(Duration::from_millis(700), relay.hears()).await.is_ok();
            (heard, relay.is_ipv6())
        };
        assert_eq!(heard([127, 0, 0, 1]).await, (true, false));
        assert_eq!(heard([127, 0, 0, 2]).await, (false, true));
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "the reader is to stand still")]
    async fn packets_that_the_socket_drops_are_counted_apart() {
        let (node, site) = pair(KEY);
        node.hears().await;
        let step = Step { rate_bps: 2_000_000_000, duration: Micros::from_millis(300) };
        // A reader that stands still: the socket's buffer overflows.
        site.count(4, step);
        let held = site.counter().counted();
        let sent = node.send(4, step).unwrap().ended().await;
        drop(held);
        site.counter().settle(sent.packets).await;
        let figures = site.counter().finish(sent.packets);
        assert!(figures.dropped_here > 0, "{figures:?}");
        assert_eq!(figures.received + figures.dropped_here, sent.packets, "{figures:?}");
        assert_eq!((figures.lost, figures.losses), (0, 0));
    }

    #[tokio::test]
    async fn a_host_without_the_key_is_not_heard() {
        let (node, _site) = pair(Key([4; 32]));
        assert!(tokio::time::timeout(Duration::from_millis(700), node.hears()).await.is_err());
    }

    #[tokio::test]
    async fn packets_of_another_step_do_not_count() {
        let (node, site) = pair(KEY);
        node.hears().await;
        node.count(5, STEP);
        let sent = site.send(4, STEP).unwrap().ended().await;
        node.counter().settle(sent.packets).await;
        assert_eq!(
            (node.counter().second().received, node.counter().finish(sent.packets).lost),
            (0, sent.packets)
        );
    }
}
