//! A malicious member of a multicast group, for tests: it received the group's key over its own session, keeps
//! the key, opens every datagram that the key opens, and sends forgeries that open with it. It follows
//! `docs/protocol.md` and uses no code of the sender or receiver.
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use downburst_session::LegJoin;
use downburst_site::{Input, LegNews};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use socket2::{Domain, Socket, Type};
use tokio::sync::mpsc::UnboundedSender;

use crate::statistics::Statistics;

/// Starts a thread that runs until the process ends, independently of the session.
pub(crate) fn begin(
    join: &LegJoin,
    interface: Ipv4Addr,
    statistics: Arc<Statistics>,
    heard: UnboundedSender<Input>,
) -> std::io::Result<()> {
    let group: Ipv4Addr = join.group.parse().map_err(std::io::Error::other)?;
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddrV4::new(group, join.port).into())?;
    socket.join_multicast_v4(&group, &interface)?;
    socket.set_multicast_if_v4(&interface)?;
    socket.set_multicast_loop_v4(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let insider = Insider {
        membership: Membership::new(join)?,
        socket: socket.into(),
        group: SocketAddrV4::new(group, join.port),
        manifest: None,
        turn: 0,
    };
    let leg = join.leg;
    std::thread::Builder::new().name("insider".to_owned()).spawn(move || {
        insider.run(&statistics, |bytes| {
            let _ = heard.send(Input::Leg(leg, LegNews::Datagrams(vec![bytes.into()])));
        });
    })?;
    Ok(())
}

struct Insider {
    membership: Membership,
    socket: UdpSocket,
    group: SocketAddrV4,
    /// The last packet with a manifest, as a template of forgeries.
    manifest: Option<Vec<u8>>,
    turn: u64,
}

/// The key and identifiers with which a member seals and opens datagrams of a leg's epoch.
struct Membership {
    key: LessSafeKey,
    key_id: u8,
    leg: [u8; 4],
    epoch_low: [u8; 4],
}

impl Insider {
    fn run(mut self, statistics: &Statistics, heard: impl Fn(Bytes)) {
        let mut buffer = vec![0; 65_536];
        loop {
            let datagram = match self.socket.recv(&mut buffer) {
                Ok(length) => buffer.get(..length).unwrap_or_default(),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(_) => return,
            };
            heard(Bytes::copy_from_slice(datagram));
            let opened = self.membership.open(datagram);
            let sent = opened.as_ref().map_or(0, |(number, payload)| self.forge(*number, payload));
            statistics.insider(opened.is_some(), sent);
        }
    }

    /// Sends two forgeries for each datagram, of all kinds in turn; returns the number sent.
    fn forge(&mut self, number: u64, payload: &[u8]) -> u64 {
        if payload.get(8) == Some(&MANIFEST) {
            self.manifest = Some(payload.to_vec());
        }
        self.turn += 1;
        let is_symbol = number >> 63 == 1;
        let other = match self.turn % 6 {
            _ if is_symbol => (number + 1, corrupted(payload, self.turn)),
            // Sent before the true packet, with the altered bytes of another one.
            0 | 3 => (number + 20, corrupted(payload, self.turn)),
            1 => (number + 10, self.false_manifest()),
            2 => (number + 15, false_end(payload)),
            4 => (number + 3_000, corrupted(payload, self.turn)),
            _ => (number + (1 << 40), corrupted(payload, self.turn)),
        };
        let forgeries = [(number, corrupted(payload, self.turn + 7)), other];
        let sent = forgeries.iter().filter_map(|(number, payload)| self.membership.seal(*number, payload));
        sent.filter(|datagram| self.socket.send_to(datagram, self.group).is_ok()).count() as u64
    }

    /// A manifest of the sender with one altered byte in the product's identifier.
    fn false_manifest(&self) -> Vec<u8> {
        let mut payload = self.manifest.clone().unwrap_or_else(|| false_end(&[0; 8]));
        if let Some(byte) = payload.get_mut(60) {
            *byte ^= 1;
        }
        payload
    }
}

impl Membership {
    fn new(join: &LegJoin) -> std::io::Result<Self> {
        let algorithm = match join.key.cipher {
            downburst_vcmtp::Cipher::Aes256Gcm => &AES_256_GCM,
            downburst_vcmtp::Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, &join.key.secret).map_err(|_| ErrorKind::InvalidInput)?;
        let [.., e0, e1, e2, e3] = join.leg_epoch.to_be_bytes();
        Ok(Self {
            key: LessSafeKey::new(key),
            key_id: join.key.id,
            leg: join.leg.0.to_be_bytes(),
            epoch_low: [e0, e1, e2, e3],
        })
    }

    fn open(&self, datagram: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (header, sealed) = datagram.split_at_checked(HEADER_BYTES)?;
        let number = u64::from_be_bytes(*header.last_chunk()?);
        let mut payload = sealed.to_vec();
        let length = self.key.open_in_place(self.nonce(number), Aad::from(header), &mut payload).ok()?.len();
        payload.truncate(length);
        Some((number, payload))
    }

    fn seal(&self, number: u64, payload: &[u8]) -> Option<Vec<u8>> {
        let header = [&[MARK, self.key_id], self.leg.as_slice(), number.to_be_bytes().as_slice()].concat();
        let mut sealed = payload.to_vec();
        self.key.seal_in_place_append_tag(self.nonce(number), Aad::from(&header), &mut sealed).ok()?;
        Some([header, sealed].concat())
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = [0; 12];
        let bytes = self.epoch_low.into_iter().chain(number.to_be_bytes());
        nonce.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Alters a byte near the end, in the bytes of a product.
fn corrupted(payload: &[u8], turn: u64) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let place = payload.len().saturating_sub(1 + usize::try_from(turn % 40).unwrap_or(0));
    if let Some(byte) = payload.get_mut(place) {
        *byte ^= 0x55;
    }
    payload
}

/// A packet that announces an end of the feed a million products ahead.
fn false_end(payload: &[u8]) -> Vec<u8> {
    let announced = payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let head = announced.saturating_add(1_000_000).to_be_bytes();
    [announced.to_be_bytes().as_slice(), &[HEAD, 0, 8], head.as_slice()].concat()
}

const MARK: u8 = 0xd1;
const HEADER_BYTES: usize = 14;
const MANIFEST: u8 = 1;
const HEAD: u8 = 3;

/// Timeout of a read.
const PATIENCE: Duration = Duration::from_millis(200);
