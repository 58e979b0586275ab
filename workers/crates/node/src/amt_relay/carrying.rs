//! The threads of a relay: answers to gateways, and copies of datagrams.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use downburst_amt::ip::{Packet, complete_udp, datagram, forward};
use downburst_amt::{Refusal, Relay, data_header};

use super::{PATIENCE_MS, Shared, lock};
use crate::udp::{Buffers, ChannelSocket, Peer, Tap, Tapped};

/// The way to each gateway: the number of the socket, and the address to which the gateway speaks. Its packet filters
/// and its own socket expect answers from there.
#[derive(Default)]
pub(super) struct Gateways(BTreeMap<SocketAddr, (usize, Peer)>);

impl Gateways {
    /// Notes a gateway; those that are no members any more are forgotten when there are many.
    fn note(&mut self, socket: usize, peer: Peer, relay: &Relay) {
        if self.0.len() > relay.tunnels().saturating_mul(2).saturating_add(ROOM) {
            self.0.retain(|gateway, _| relay.has_tunnel(*gateway));
        }
        self.0.insert(peer.address(), (socket, peer));
    }
}

/// Answers the gateways that come to one socket, until the relay ends.
pub(super) fn answer(shared: &Shared, number: usize, socket: &ChannelSocket) {
    let mut buffers = Buffers::default();
    while shared.goes_on() {
        let received = socket.receive(&mut buffers, PATIENCE_MS, |octets, peer| {
            if let Some(answer) = take(shared, number, &octets, peer) {
                // One for which there is no room is lost: the gateway asks again.
                let _ = socket.send(peer, &answer);
            }
        });
        if let Err(error) = received {
            tracing::warn!(%error, "gateways can't be heard");
            std::thread::sleep(std::time::Duration::from_millis(PATIENCE_MS.into()));
        }
        follow(shared);
    }
}

fn take(shared: &Shared, socket: usize, octets: &[u8], peer: Peer) -> Option<Vec<u8>> {
    let here = peer.local().unwrap_or(IpAddr::from([0; 4]));
    let taken = {
        let mut relay = lock(&shared.relay);
        let taken = relay.take(shared.now(), peer.address(), here, octets);
        if taken == Ok(None) {
            // An update: copies take the way that it came.
            lock(&shared.gateways).note(socket, peer, &relay);
        }
        taken
    };
    match taken {
        Ok(Some(answer)) => Some(answer),
        Ok(None) => {
            follow(shared);
            None
        }
        Err(refusal) => {
            log_refusal(peer, refusal);
            None
        }
    }
}

/// Floods are counted, and not logged.
fn log_refusal(peer: Peer, refusal: Refusal) {
    let gateway = peer.address();
    match refusal {
        Refusal::NoRoom | Refusal::NotCarried => {
            tracing::warn!(%gateway, "a membership is refused: {refusal}")
        }
        _ => tracing::debug!(%gateway, "a message is refused: {refusal}"),
    }
}

/// Joins and leaves groups.
fn follow(shared: &Shared) {
    let changes: Vec<_> = {
        let mut relay = lock(&shared.relay);
        relay.wake(shared.now());
        std::iter::from_fn(|| relay.poll_change()).collect()
    };
    let mut joins = lock(&shared.joins);
    changes.into_iter().for_each(|change| joins.follow(change));
}

/// Sends copies of the interface's datagrams until the relay ends.
pub(super) fn carry(shared: &Shared, mut tap: Tap, sockets: &[Arc<ChannelSocket>]) {
    let mut messages = Vec::new();
    while shared.goes_on() {
        let received = tap.receive(PATIENCE_MS, |tapped| copy(shared, sockets, tapped, &mut messages));
        if let Err(error) = received {
            tracing::warn!(%error, "the groups can't be read");
            std::thread::sleep(std::time::Duration::from_millis(PATIENCE_MS.into()));
        }
    }
}

fn copy(shared: &Shared, sockets: &[Arc<ChannelSocket>], tapped: Tapped<'_>, messages: &mut Vec<u8>) {
    let Ok(packet) = Packet::read(tapped.octets) else { return };
    let receivers: Vec<(usize, Peer)> = {
        let relay = lock(&shared.relay);
        let gateways = lock(&shared.gateways);
        let receivers = relay.receivers(packet.source, packet.destination);
        receivers.filter_map(|gateway| gateways.0.get(&gateway).copied()).collect()
    };
    if receivers.is_empty() {
        return;
    }
    messages.clear();
    let Some(one) = encapsulate(&packet, tapped, messages) else {
        shared.figures.unusable();
        return;
    };
    let count = messages.len().div_ceil(one.max(1));
    shared.figures.datagrams(count);
    for (number, peer) in receivers {
        let unsent = sockets.get(number).map_or(count, |socket| socket.send_all(peer, messages, one));
        shared.figures.copies(count, unsent, messages.len());
    }
}

/// Writes the datagrams as messages of equal length, except for a shorter last one; returns their length.
fn encapsulate(packet: &Packet, tapped: Tapped<'_>, messages: &mut Vec<u8>) -> Option<usize> {
    let Tapped { octets, segment_bytes } = tapped;
    let Some(segment_bytes) = segment_bytes else {
        if !packet.is_fragment && !complete_udp(octets, packet) {
            return None;
        }
        let octets = octets.get_mut(..packet.body.end).filter(|octets| octets.len() <= LONGEST_PACKET)?;
        if !forward(octets) {
            return None;
        }
        messages.extend(data_header());
        messages.extend_from_slice(octets);
        return Some(messages.len());
    };
    let udp = packet.udp(octets).ok()?;
    let hops = packet.hops.checked_sub(1).filter(|hops| *hops > 0)?;
    let ends =
        (SocketAddr::new(packet.source, udp.source), SocketAddr::new(packet.destination, udp.destination));
    let mut longest = 0;
    for body in octets.get(udp.body.clone())?.chunks(segment_bytes) {
        let before = messages.len();
        messages.extend(data_header());
        messages.extend(datagram(ends.0, ends.1, hops, body));
        longest = longest.max(messages.len() - before);
    }
    Some(longest)
}

/// The longest packet that fits a message in a UDP datagram over IPv4.
const LONGEST_PACKET: usize = 65_507 - 2;

/// Gateways beyond twice the tunnels that are remembered.
const ROOM: usize = 256;

#[cfg(test)]
mod tests {
    use downburst_amt::Message;

    use super::*;

    fn ends() -> (SocketAddr, SocketAddr) {
        ("10.0.0.1:4000".parse().unwrap(), "232.1.2.3:17001".parse().unwrap())
    }

    fn encapsulated(octets: &mut [u8], segment_bytes: Option<usize>) -> Option<(usize, Vec<u8>)> {
        let packet = Packet::read(octets).unwrap();
        let mut messages = Vec::new();
        encapsulate(&packet, Tapped { octets, segment_bytes }, &mut messages).map(|one| (one, messages))
    }

    #[test]
    fn a_datagram_travels_one_hop_less_and_without_its_frames_padding() {
        let (source, group) = ends();
        let mut octets = datagram(source, group, 8, b"sealed");
        octets.extend([0; 9]);
        let (one, message) = encapsulated(&mut octets, None).unwrap();
        assert_eq!(
            (one, &message[..]),
            (message.len(), &Message::Data(&datagram(source, group, 7, b"sealed")).write()[..])
        );
        assert_eq!(
            encapsulated(&mut datagram(source, group, 1, b"sealed"), None),
            None,
            "it stays on its link"
        );
    }

    #[test]
    fn a_train_becomes_its_datagrams() {
        let (source, group) = ends();
        let content: Vec<u8> = (0..250).collect();
        let (one, messages) = encapsulated(&mut datagram(source, group, 8, &content), Some(100)).unwrap();
        let expected: Vec<Vec<u8>> = content
            .chunks(100)
            .map(|body| Message::Data(&datagram(source, group, 7, body)).write())
            .collect();
        assert_eq!(messages.chunks(one).map(<[u8]>::to_vec).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_changed_datagram_is_not_sent_on() {
        let (source, group) = ends();
        let mut octets = datagram(source, group, 8, b"sealed");
        octets[30] ^= 1;
        assert_eq!(encapsulated(&mut octets, None), None);
    }
}
