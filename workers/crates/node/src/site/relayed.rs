//! Multicast legs that leave a hub here: their sealed datagrams come over the relay's session, and go into the local
//! network as they come, to a group or to each site. Nothing is stored, and no key is known.
mod copies;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downburst_model::LegId;
use downburst_session::{Datagrams, RelayLeg, RelayLegFailed, RelayLegOpen};

use crate::udp::{GroupSender, Outlet};
use copies::Copies;

/// The legs of a relay, shared by its session and its account.
#[derive(Clone)]
pub(crate) struct SharedLegs(Arc<Mutex<Legs>>);

/// The legs that leave here.
struct Legs {
    /// Name, number or address of the interface; empty: the system's choice.
    interface: String,
    open: BTreeMap<LegId, Leg>,
}

struct Leg {
    asked: RelayLeg,
    opened: RelayLegOpen,
    way: Way,
    carried: Carried,
    /// The last send failed, and that was logged.
    failed: bool,
}

enum Way {
    Group(Box<GroupSender>),
    Unicast(Copies),
}

/// The account of a leg since it opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Datagrams that left; by unicast each copy counts.
    pub(crate) datagrams: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Datagrams that could not be sent; sites request them.
    pub(crate) dropped: u64,
}

impl SharedLegs {
    /// No legs yet; they leave by this interface.
    pub(crate) fn new(interface: String) -> Self {
        Self(Arc::new(Mutex::new(Legs { interface, open: BTreeMap::new() })))
    }

    /// Opens a leg. A leg that is open already begins anew, unless only the number of its sites is another.
    pub(crate) fn open(&self, leg: &RelayLeg) -> Result<RelayLegOpen, RelayLegFailed> {
        let opened = self.lock().open(leg);
        opened.map_err(|sentence| {
            tracing::error!(leg = leg.leg.0, "a leg can't be sent from here: {sentence}");
            RelayLegFailed { leg: leg.leg, sentence }
        })
    }

    /// Sends datagrams of a leg; those of an unknown leg are late, and go nowhere.
    pub(crate) fn send(&self, train: &Datagrams) {
        if let Some(leg) = self.lock().open.get_mut(&train.leg) {
            leg.send(train);
        }
    }

    /// Ends a leg.
    pub(crate) fn end(&self, leg: LegId) {
        let ended = self.lock().open.remove(&leg);
        ended.into_iter().for_each(|it| it.log_end(leg));
    }

    /// Ends all legs.
    pub(crate) fn clear(&self) {
        let ended = std::mem::take(&mut self.lock().open);
        ended.into_iter().for_each(|(leg, it)| it.log_end(leg));
    }

    /// The accounts of the open legs.
    pub(crate) fn accounts(&self) -> Vec<(LegId, Carried)> {
        self.lock().open.iter().map(|(leg, it)| (*leg, it.carried)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Legs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Legs {
    fn open(&mut self, asked: &RelayLeg) -> Result<RelayLegOpen, String> {
        let RelayLeg { leg, group, port, rate_bps, .. } = asked;
        let address = group.parse::<IpAddr>().ok().filter(|address| address.is_multicast() && *port != 0);
        let address = address.ok_or_else(|| format!("{group:?} port {port} is no multicast group"))?;
        if let Some(opened) = self.open.get(leg).and_then(|open| open.goes_on(asked)) {
            return Ok(opened);
        }
        if !self.open.contains_key(leg) && self.open.len() >= MOST_LEGS {
            return Err(format!("the relay sends {MOST_LEGS} legs already, its most"));
        }
        // Its group may be the same, with a socket of its own.
        self.open.remove(leg);
        let way = Way::open(asked, SocketAddr::new(address, *port), &self.interface)?;
        let (source, mtu_bytes) = (way.source(), way.mtu_bytes());
        tracing::info!(leg = leg.0, group, port, %source, path = way.path(), rate_bps, "a leg leaves here");
        let opened = RelayLegOpen { leg: *leg, source: source.to_string(), mtu_bytes };
        let (asked, carried) = (asked.clone(), Carried::default());
        self.open.insert(*leg, Leg { asked, opened: opened.clone(), way, carried, failed: false });
        Ok(opened)
    }
}

impl Way {
    fn open(asked: &RelayLeg, group: SocketAddr, interface: &str) -> Result<Self, String> {
        let outlet = Outlet { interface: interface.to_owned(), hops: asked.hops, offload: true };
        let way = match &asked.unicast {
            Some(fan_out) => Copies::open(asked, fan_out, group, &outlet).map(Self::Unicast),
            None => GroupSender::open(group, &outlet).map(|socket| Self::Group(Box::new(socket))),
        };
        way.map_err(|error| match &asked.unicast {
            Some(_) => format!(
                "the relay can't send from its UDP port {}: {error}; check its --interface, and free the port",
                asked.port
            ),
            None => format!(
                "the group {} can't be reached from the relay: {error}; check its --interface",
                asked.group
            ),
        })
    }

    fn source(&self) -> IpAddr {
        match self {
            Self::Group(socket) => socket.source(),
            Self::Unicast(copies) => copies.socket().source(),
        }
    }

    fn mtu_bytes(&self) -> Option<u64> {
        match self {
            Self::Group(socket) => socket.mtu_bytes(),
            Self::Unicast(copies) => copies.socket().mtu_bytes(),
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Group(socket) => socket.path(),
            Self::Unicast(_) => "by unicast to each site that announces itself".to_owned(),
        }
    }
}

impl Carried {
    /// Counts a train of which this many datagrams were not sent.
    fn count(&mut self, train: &Datagrams, unsent: usize) {
        let (count, unsent) = (train.count() as u64, unsent as u64);
        self.dropped += unsent;
        self.datagrams += count.saturating_sub(unsent);
        if unsent == 0 {
            self.bytes += train.bytes.len() as u64;
        }
    }
}

impl Leg {
    /// The earlier answer, to a request for this leg as it is, with a number of sites that may be another.
    fn goes_on(&self, asked: &RelayLeg) -> Option<RelayLegOpen> {
        let (Way::Unicast(copies), Some(fan_out)) = (&self.way, &asked.unicast) else { return None };
        let before = self.asked.unicast.as_ref()?;
        let same = RelayLeg { unicast: self.asked.unicast.clone(), ..asked.clone() } == self.asked;
        (same && before.pass == fan_out.pass).then(|| {
            copies.bound(fan_out.sites);
            self.opened.clone()
        })
    }

    fn send(&mut self, train: &Datagrams) {
        let sent = match &mut self.way {
            Way::Group(socket) => {
                let (unsent, sent) = socket.send_all(&train.bytes, usize::from(train.segment_bytes));
                self.carried.count(train, unsent);
                sent
            }
            Way::Unicast(copies) => copies.send(train, &mut self.carried),
        };
        self.complain(train.leg, sent);
    }

    /// A failed send is a loss like any other: sites request the packets. Logged once until sending works again.
    fn complain(&mut self, leg: LegId, sent: io::Result<()>) {
        let before = std::mem::replace(&mut self.failed, sent.is_err());
        if let Some(error) = sent.err().filter(|_| !before) {
            tracing::warn!(leg = leg.0, "the leg can't be sent: {error}; check the route to it");
        }
    }

    fn log_end(&self, leg: LegId) {
        let Carried { datagrams, bytes, dropped } = self.carried;
        tracing::info!(leg = leg.0, datagrams, bytes, dropped, "a leg ended");
    }
}

/// A hub has some dozens of groups; each costs a relay a socket and its send buffer.
const MOST_LEGS: usize = 256;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use downburst_model::Micros;
    use downburst_session::{FanOutPass, UnicastFanOut};
    use downburst_site::Announcer;

    use super::*;
    use crate::udp::{GroupReceiver, Membership};

    fn leg(number: u32, group: &str, port: u16) -> RelayLeg {
        RelayLeg {
            leg: LegId(number),
            group: group.to_owned(),
            port,
            rate_bps: 1_000,
            hops: 1,
            unicast: None,
        }
    }

    #[test]
    fn a_leg_leaves_as_it_came_and_is_counted_until_it_ends() {
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let group = SocketAddr::new("239.250.9.77".parse().unwrap(), port);
        let membership = Membership {
            group,
            source: None,
            interface: "lo".to_owned(),
            offload: true,
            buffer_bytes: 1 << 20,
        };
        let mut receiver = GroupReceiver::join(&membership).unwrap();
        let legs = SharedLegs::new("127.0.0.1".to_owned());
        let open = legs.open(&leg(7, "239.250.9.77", port)).unwrap();
        assert_eq!((open.leg, open.source.as_str()), (LegId(7), "127.0.0.1"));
        assert!(open.mtu_bytes.is_some());
        let bytes: Vec<u8> = (0..2_500_u32).map(|place| place as u8).collect();
        legs.send(&Datagrams { leg: LegId(7), segment_bytes: 1_000, bytes: bytes.clone().into() });
        legs.send(&Datagrams { leg: LegId(8), segment_bytes: 1, bytes: bytes[..1].to_vec().into() });
        let mut heard: Vec<Vec<u8>> = Vec::new();
        while heard.len() < 3 {
            assert!(receiver.wait(5_000).unwrap(), "{} came", heard.len());
            receiver.receive(|datagram| heard.push(datagram.to_vec())).unwrap();
        }
        assert_eq!(heard.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
        assert_eq!(heard.concat(), bytes);
        let carried = Carried { datagrams: 3, bytes: 2_500, dropped: 0 };
        assert_eq!(legs.accounts(), [(LegId(7), carried)]);
        legs.end(LegId(7));
        assert_eq!(legs.accounts(), []);
    }

    #[test]
    fn a_leg_by_unicast_goes_to_each_site_that_announces_itself_and_to_nobody_else() {
        let pass = FanOutPass([3; 32]);
        let by_unicast = |port, sites| RelayLeg {
            unicast: Some(UnicastFanOut { sites, pass: pass.clone() }),
            ..leg(7, "239.250.9.79", port)
        };
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let legs = SharedLegs::new("127.0.0.1".to_owned());
        let open = legs.open(&by_unicast(port, 2)).unwrap();
        assert_eq!(open.source, "127.0.0.1");
        let sites: Vec<UdpSocket> = (0..2).map(|_| announced(&open, port, &pass)).collect();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(&[7; 76], (open.source.as_str(), port)).unwrap();
        assert_eq!(legs.open(&by_unicast(port, 3)).unwrap(), open, "its receivers stay");
        let bytes: Vec<u8> = (0..2_500_u32).map(|place| place as u8).collect();
        legs.send(&Datagrams { leg: LegId(7), segment_bytes: 1_000, bytes: bytes.clone().into() });
        for site in &sites {
            let heard: Vec<Vec<u8>> = (0..3).map(|_| received(site)).collect();
            assert_eq!(heard.concat(), bytes);
        }
        let carried = Carried { datagrams: 6, bytes: 5_000, dropped: 0 };
        assert_eq!(legs.accounts(), [(LegId(7), carried)]);
        stranger.set_nonblocking(true).unwrap();
        assert!(stranger.recv(&mut [0; 9]).is_err(), "nothing comes to it");
        legs.end(LegId(7));
        legs.open(&by_unicast(port, 2)).unwrap();
        legs.send(&Datagrams { leg: LegId(7), segment_bytes: 1_000, bytes: bytes.into() });
        assert_eq!(legs.accounts(), [(LegId(7), Carried::default())], "nobody is there yet");
    }

    /// A site's socket that the relay has taken.
    fn announced(open: &RelayLegOpen, port: u16, pass: &FanOutPass) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect((open.source.as_str(), port)).unwrap();
        let mut announcer = Announcer::new(Micros(0), open.leg, pass);
        let mut now = Micros(0);
        while !announcer.is_taken() {
            now = announcer.deadline();
            socket.send(&announcer.poll(now).unwrap()).unwrap();
            assert!(announcer.handle(now, &received(&socket)));
        }
        assert!(now < Micros::from_secs(1), "by one challenge");
        socket
    }

    fn received(socket: &UdpSocket) -> Vec<u8> {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 2_000];
        let length = socket.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    #[test]
    fn a_port_that_is_taken_is_told_with_the_remedy() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let unicast = Some(UnicastFanOut { sites: 1, pass: FanOutPass([3; 32]) });
        let asked = RelayLeg { unicast, ..leg(7, "239.250.9.79", port) };
        let failed = SharedLegs::new("127.0.0.1".to_owned()).open(&asked).unwrap_err();
        assert!(failed.sentence.contains("free the port"), "{failed:?}");
    }

    #[test]
    fn an_impossible_leg_is_refused_with_a_sentence() {
        let legs = SharedLegs::new("lo".to_owned());
        for (group, port) in [("192.0.2.1", 5), ("a host", 5), ("239.0.0.1", 0)] {
            let failed = legs.open(&leg(7, group, port)).unwrap_err();
            assert!(failed.leg == LegId(7) && failed.sentence.contains("no multicast group"), "{failed:?}");
        }
        let nowhere =
            SharedLegs::new("no-such-interface".to_owned()).open(&leg(7, "239.0.0.1", 5)).unwrap_err();
        assert!(nowhere.sentence.contains("check its --interface"), "{nowhere:?}");
    }

    #[test]
    fn a_relay_sends_so_many_legs_and_no_more() {
        let legs = SharedLegs::new("lo".to_owned());
        for number in 0..MOST_LEGS as u32 {
            legs.open(&leg(number, "239.250.9.78", 5_000)).unwrap();
        }
        let failed = legs.open(&leg(9_999, "239.250.9.78", 5_000)).unwrap_err();
        assert!(failed.sentence.contains("256 legs already"), "{failed:?}");
        legs.open(&leg(3, "239.250.9.78", 5_001)).unwrap();
        legs.clear();
        assert_eq!(legs.accounts(), []);
    }
}
