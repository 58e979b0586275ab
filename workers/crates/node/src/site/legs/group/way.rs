//! The way on which a leg's datagrams come to this host.
use std::io;
use std::net::{IpAddr, SocketAddr};

use downburst_amt::{Channel, Gateway, GatewaySettings, Heard, Standing, interface};
use downburst_model::Micros;
use downburst_session::LegJoin;
use downburst_site::Announcer;

use super::Reading;
use crate::udp::{GroupReceiver, Membership, check_membership, is_source_specific};

/// The way of a leg.
pub(super) enum Way {
    /// This host joins the group.
    Group,
    /// A relay of the hub sends copies.
    Copies(Box<Announcer>),
    /// An AMT relay sends copies through a tunnel.
    Tunnel(Box<Gateway>),
}

impl Way {
    /// The name for the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Copies(_) => "unicast",
            Self::Tunnel(_) => "AMT tunnel",
        }
    }

    /// The message that is due, with its address if that may change.
    pub(super) fn poll(&mut self, now: Micros) -> Option<(Option<SocketAddr>, Vec<u8>)> {
        match self {
            Self::Group => None,
            Self::Copies(announcer) => announcer.poll(now).map(|message| (None, message.to_vec())),
            Self::Tunnel(gateway) => gateway.poll(now).map(|sent| (Some(sent.to), sent.octets)),
        }
    }

    /// The time of the next message.
    pub(super) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Group => None,
            Self::Copies(announcer) => Some(announcer.deadline()),
            Self::Tunnel(gateway) => Some(gateway.deadline()),
        }
    }

    /// The leg's datagram in what arrived; `None`: it was another message.
    pub(super) fn datagram<'a>(&mut self, now: Micros, octets: &'a mut [u8]) -> Option<&'a mut [u8]> {
        match self {
            Self::Group => Some(octets),
            Self::Copies(announcer) => (!announcer.handle(now, octets)).then_some(octets),
            Self::Tunnel(gateway) => match gateway.handle(now, octets) {
                Heard::Datagram(place) => octets.get_mut(place),
                Heard::Answer | Heard::Other => None,
            },
        }
    }

    /// One sentence on why nothing comes on this way; `None`: this host's group has more to say.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Self::Group => None,
            Self::Copies(announcer) if announcer.is_taken() => Some(SENDS_NOTHING.to_owned()),
            Self::Copies(_) => Some(ANSWERS_NOTHING.to_owned()),
            Self::Tunnel(gateway) => Some(silence_of(gateway)),
        }
    }

    /// The message that ends the reception.
    pub(super) fn leave(&self) -> Option<Vec<u8>> {
        match self {
            Self::Group => None,
            Self::Copies(announcer) => Some(announcer.leave().to_vec()),
            Self::Tunnel(gateway) => gateway.leave().map(|sent| sent.octets),
        }
    }
}

fn silence_of(gateway: &Gateway) -> String {
    let relay = gateway.relay();
    match gateway.standing() {
        Standing::Unanswered => format!(
            "no AMT relay answers, the last one asked is {relay}: let UDP to its port pass, with its answers"
        ),
        Standing::Joined => format!(
            "the AMT relay {relay} answers, but sends nothing of the group: its interface may receive no multicast, or \
             it may not carry this group; look at its log"
        ),
        Standing::Heard => {
            format!("the AMT relay {relay} sends nothing of the group any more; look at its log")
        }
    }
}

/// Joins the leg's group, or opens a socket for the copies of a relay.
pub(super) fn open(join: &LegJoin, fallback: &str, reading: Reading) -> io::Result<(GroupReceiver, Way)> {
    let address = |text: &str| text.parse::<IpAddr>().map_err(io::Error::other);
    let group = SocketAddr::new(address(&join.group)?, join.port);
    if let Some(pass) = &join.pass {
        check_relay(group).map_err(io::Error::other)?;
        let announcer = Announcer::new(Micros(0), join.leg, pass);
        return Ok((
            GroupReceiver::of_relay(group, reading.offload, reading.asked_bytes())?,
            Way::Copies(Box::new(announcer)),
        ));
    }
    let source = join.source.as_deref().map(address).transpose()?;
    let interface = interface_of(join, fallback);
    if let Some(relays) = interface::relays(interface) {
        return tunnel(group, source, relays.map_err(io::Error::other)?, reading);
    }
    let (interface, offload) = (interface.to_owned(), reading.offload);
    let buffer_bytes = reading.asked_bytes();
    let receiver = GroupReceiver::join(&Membership { group, source, interface, offload, buffer_bytes })?;
    Ok((receiver, Way::Group))
}

fn tunnel(
    group: SocketAddr,
    source: Option<IpAddr>,
    relays: Vec<SocketAddr>,
    reading: Reading,
) -> io::Result<(GroupReceiver, Way)> {
    check_membership(group, source).map_err(io::Error::other)?;
    let source = source.filter(|_| is_source_specific(group.ip()));
    let channel = Channel { group: group.ip(), source };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    let settings = GatewaySettings { relays, channel, port: group.port() };
    let gateway =
        Gateway::new(Micros(0), settings, &seed).ok_or_else(|| io::Error::other("no AMT relay is named"))?;
    let receiver = GroupReceiver::of_relay(gateway.relay(), reading.offload, reading.asked_bytes())?;
    Ok((receiver, Way::Tunnel(Box::new(gateway))))
}

pub(super) fn interface_of<'a>(join: &'a LegJoin, fallback: &'a str) -> &'a str {
    if join.interface.is_empty() { fallback } else { &join.interface }
}

/// Refuses an address at which no relay can be.
fn check_relay(address: SocketAddr) -> Result<(), String> {
    let ip = address.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    if ip.is_multicast() || ip.is_unspecified() || is_broadcast || address.port() == 0 {
        return Err(format!("{address} is no address of a host"));
    }
    Ok(())
}

const SENDS_NOTHING: &str =
    "the relay answers, but sends nothing of the leg: look at its log and its session with the hub";
const ANSWERS_NOTHING: &str =
    "the relay does not answer: let UDP from this host to it pass, with its answers";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_at_which_no_relay_can_be_is_refused() {
        for address in
            ["239.0.0.1:5", "[ff3e::1]:5", "0.0.0.0:5", "[::]:5", "255.255.255.255:5", "10.0.0.9:0"]
        {
            let sentence = check_relay(address.parse().unwrap()).unwrap_err();
            assert_eq!(sentence, format!("{address} is no address of a host"));
        }
        assert_eq!(check_relay("10.0.0.9:5".parse().unwrap()), Ok(()));
    }

    #[test]
    fn a_tunnel_says_which_relay_is_silent() {
        let relays = vec!["127.0.0.1:9".parse().unwrap()];
        let group = "239.1.2.3:17".parse().unwrap();
        let (mut receiver, mut way) = tunnel(group, None, relays, Reading::default()).unwrap();
        let (to, message) = way.poll(Micros(0)).unwrap();
        receiver.turn_to(to.unwrap()).unwrap();
        receiver.tell_relay(&message);
        assert!(way.reason().unwrap().starts_with("no AMT relay answers, the last one asked is 127.0.0.1:9"));
        assert_eq!(
            (way.name(), way.leave(), way.datagram(Micros(1), &mut [6, 0, 1])),
            ("AMT tunnel", None, None)
        );
        assert!(tunnel("232.1.2.3:17".parse().unwrap(), None, Vec::new(), Reading::default()).is_err());
    }
}
