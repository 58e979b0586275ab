//! A record of the ring: one sample of one connection, with a checksum.
//!
//! | bytes | content, in little-endian |
//! |---|---|
//! | 0..4 | CRC-32 of all that follows |
//! | 4..8 | a bit for each value that is present |
//! | 8..16 | number of the record |
//! | 16..24 | time, microseconds since 1970 |
//! | 24..42 | local address (IPv6, or IPv4 mapped into it) and port |
//! | 42..60 | peer's address and port |
//! | 60, 61 | role; length of the site's name |
//! | 62..64 | zero |
//! | 64..190 | the values, each in its width |
//! | 190..254 | the site's name |
//! | 254..256 | zero |
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use downburst_model::{SiteName, WallMicros};
use serde::Serialize;

use crate::sample::Sample;
use crate::variable::{FIELDS, VARIABLES, Width};

/// One sample of one connection, with its number in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counts on for ever; it decides the place.
    pub number: u64,
    /// The connection.
    pub connection: Connection,
    /// Its values.
    pub sample: Sample,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// The end on this machine.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The site that it serves; `None`: not admitted yet, or no node's.
    pub site: Option<SiteName>,
    /// What it carries.
    pub role: Role,
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Not admitted yet.
    Unknown,
    /// A site's session.
    Session,
    /// A data connection beside it.
    Data,
    /// A connection of a process that is no node.
    Other,
}

impl Record {
    /// The record as it is stored.
    pub fn write(&self) -> [u8; RECORD_BYTES] {
        let name = self.connection.site.as_ref().map_or("", SiteName::as_str);
        let mut bytes = Vec::with_capacity(RECORD_BYTES);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.sample.present.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.sample.at.0.to_le_bytes());
        put_address(&mut bytes, self.connection.local);
        put_address(&mut bytes, self.connection.peer);
        bytes.extend_from_slice(&[self.connection.role as u8, name.len().min(NAME_BYTES) as u8, 0, 0]);
        put_values(&mut bytes, &self.sample.values);
        bytes.extend(name.bytes().take(NAME_BYTES));
        let mut stored = [0; RECORD_BYTES];
        stored.iter_mut().zip(&bytes).for_each(|(place, byte)| *place = *byte);
        let sum = checksum(&stored).to_le_bytes();
        stored.iter_mut().zip(sum).for_each(|(place, byte)| *place = byte);
        stored
    }

    /// Reads a record; `None`: it is torn or damaged.
    pub fn read(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        if u32::from_le_bytes(*bytes.first_chunk()?) != checksum(bytes) {
            return None;
        }
        let length = usize::from(*bytes.get(61)?);
        let name = std::str::from_utf8(bytes.get(NAME_AT..NAME_AT + length)?).ok()?;
        let site = if name.is_empty() { None } else { Some(SiteName::parse(name).ok()?) };
        let (local, peer) = (address(bytes, 24)?, address(bytes, 42)?);
        let sample = Sample {
            at: WallMicros(i64::from_le_bytes(chunk(bytes, 16)?)),
            present: u32::from_le_bytes(chunk(bytes, 4)?),
            values: values(bytes)?,
        };
        let connection = Connection { local, peer, site, role: Role::of(*bytes.get(60)?) };
        Some(Self { number: u64::from_le_bytes(chunk(bytes, 8)?), connection, sample })
    }
}

impl Role {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Session => "session",
            Self::Data => "data",
            Self::Other => "other",
        }
    }

    fn of(byte: u8) -> Self {
        [Self::Session, Self::Data, Self::Other]
            .into_iter()
            .find(|role| *role as u8 == byte)
            .unwrap_or(Self::Unknown)
    }
}

fn checksum(bytes: &[u8; RECORD_BYTES]) -> u32 {
    crc32fast::hash(bytes.get(4..).unwrap_or_default())
}

fn put_address(bytes: &mut Vec<u8>, address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    bytes.extend_from_slice(&ip.octets());
    bytes.extend_from_slice(&address.port().to_le_bytes());
}

fn address(bytes: &[u8], at: usize) -> Option<SocketAddr> {
    let ip = Ipv6Addr::from(chunk::<16>(bytes, at)?);
    Some(SocketAddr::new(IpAddr::V6(ip).to_canonical(), u16::from_le_bytes(chunk(bytes, at + 16)?)))
}

fn put_values(bytes: &mut Vec<u8>, values: &[u64; VARIABLES]) {
    for (field, value) in FIELDS.iter().zip(values) {
        bytes.extend(value.to_le_bytes().into_iter().take(field.width.bytes()));
    }
}

fn values(bytes: &[u8]) -> Option<[u64; VARIABLES]> {
    let (mut values, mut at) = ([0; VARIABLES], VALUES_AT);
    for (field, value) in FIELDS.iter().zip(&mut values) {
        *value = match field.width {
            Width::Bit | Width::Byte => u64::from(*bytes.get(at)?),
            Width::Four => u64::from(u32::from_le_bytes(chunk(bytes, at)?)),
            Width::Eight => u64::from_le_bytes(chunk(bytes, at)?),
        };
        at += field.width.bytes();
    }
    Some(values)
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Half of a disk's smallest sector: a write that is torn between sectors damages no other record.
pub const RECORD_BYTES: usize = 256;

const VALUES_AT: usize = 64;
const NAME_AT: usize = 190;

/// The longest name of a site.
const NAME_BYTES: usize = 64;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Variable;

    pub(crate) fn record(number: u64, site: &str, at: i64) -> Record {
        let mut sample = Sample::empty(WallMicros(at));
        sample.set(Variable::BytesAcked, number * 1_000);
        let connection = Connection {
            local: "10.0.0.1:7370".parse().unwrap(),
            peer: "10.0.0.2:40000".parse().unwrap(),
            site: (!site.is_empty()).then(|| SiteName::parse(site).unwrap()),
            role: Role::Session,
        };
        Record { number, connection, sample }
    }

    #[test]
    fn the_values_end_where_the_name_begins() {
        let bytes: usize = FIELDS.iter().map(|field| field.width.bytes()).sum();
        assert!(VALUES_AT + bytes <= NAME_AT && NAME_AT + NAME_BYTES <= RECORD_BYTES, "{bytes}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            number in any::<u64>(),
            at in any::<i64>(),
            site in "([a-z][a-z0-9]{0,62})?",
            role in prop::sample::select(vec![Role::Unknown, Role::Session, Role::Data, Role::Other]),
            info in prop::collection::vec(any::<u8>(), 0..300),
            peer in any::<(std::net::Ipv4Addr, u16)>(),
        ) {
            let mut written = record(number % (1 << 50), &site, at);
            written.sample = Sample::read(WallMicros(at), &info);
            written.connection.role = role;
            written.connection.peer = SocketAddr::from(peer);
            prop_assert_eq!(Record::read(&written.write()), Some(written));
        }

        #[test]
        fn a_flipped_bit_is_never_believed(at in 0..RECORD_BYTES, bit in 0..8_u32) {
            let mut bytes = record(7, "a", 5).write();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Record::read(&bytes), None);
        }
    }
}
