//! Queries and reports of memberships: IGMPv3 (RFC 3376, section 4) and MLDv2 (RFC 3810, section 5), as IP packets.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use downburst_model::Micros;

use crate::ip::{self, ICMP_V6, IGMP, Malformed, Packet, finish, pseudo_sum, put, sum_of};

/// The IP version of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IGMPv3.
    V4,
    /// MLDv2.
    V6,
}

/// A group, of one source or of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The group.
    pub group: IpAddr,
    /// Its source; `None`: any.
    pub source: Option<IpAddr>,
}

/// The times of a general query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTimes {
    /// Seconds to the next query.
    pub interval_s: u32,
    /// The number of queries of which one may get lost, plus one.
    pub robustness: u8,
}

/// A membership of a report, or its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its meaning.
    pub kind: RecordKind,
    /// The group.
    pub group: IpAddr,
    /// The sources that it names.
    pub sources: Vec<IpAddr>,
}

/// The kinds of records (RFC 3376, section 4.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Only these sources are received.
    IsInclude = 1,
    /// All but these sources are received.
    IsExclude = 2,
    /// From now on only these sources; none: the group is left.
    ToInclude = 3,
    /// From now on all but these sources.
    ToExclude = 4,
    /// These sources too.
    Allow = 5,
    /// These sources no more.
    Block = 6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl QueryTimes {
    /// The time for which a membership counts without another report (RFC 3376, section 8.4).
    pub fn membership(self) -> Micros {
        Micros::from_millis(u64::from(self.interval_s) * 1_000 * u64::from(self.robustness) + RESPONSE_MS)
    }
}

impl Channel {
    /// The record that has the channel received from now on, or still.
    pub fn wanted(self) -> Record {
        let kind = if self.source.is_some() { RecordKind::IsInclude } else { RecordKind::IsExclude };
        Record { kind, group: self.group, sources: self.source.into_iter().collect() }
    }

    /// The record that ends it.
    pub fn left(self) -> Record {
        let kind = if self.source.is_some() { RecordKind::Block } else { RecordKind::ToInclude };
        Record { kind, group: self.group, sources: self.source.into_iter().collect() }
    }
}

/// A general query; intervals beyond 127 seconds are written as 127.
pub fn general_query(family: Family, times: QueryTimes) -> Vec<u8> {
    let interval = u8::try_from(times.interval_s.clamp(1, LONGEST_PLAIN)).unwrap_or(127);
    let robustness = times.robustness.min(7);
    match family {
        Family::V4 => {
            let tenths = u8::try_from(RESPONSE_MS / 100).unwrap_or(10);
            let body = [0x11, tenths, 0, 0, 0, 0, 0, 0, robustness, interval, 0, 0];
            igmp(Ipv4Addr::new(154, 7, 1, 1), Ipv4Addr::new(224, 0, 0, 1), body.to_vec())
        }
        Family::V6 => {
            let [high, low] = u16::try_from(RESPONSE_MS).unwrap_or(1_000).to_be_bytes();
            let body =
                [&[130, 0, 0, 0, high, low, 0, 0][..], &[0; 16], &[robustness, interval, 0, 0]].concat();
            mld(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), body)
        }
    }
}

/// The times of a general query.
///
/// # Errors
///
/// [`Malformed`], if the packet is none.
pub fn read_query(octets: &[u8]) -> Result<QueryTimes, Malformed> {
    let (family, body) = body(octets)?;
    let (kind, at) = if family == Family::V4 { (0x11, 8) } else { (130, 24) };
    if body.first() != Some(&kind) {
        return Err(Malformed::OtherKind);
    }
    let [flags, interval] =
        *body.get(at..).and_then(|fields| fields.first_chunk()).ok_or(Malformed::TooShort)?;
    let robustness = if flags & 7 == 0 { DEFAULT_ROBUSTNESS } else { flags & 7 };
    Ok(QueryTimes { interval_s: seconds(interval), robustness })
}

/// A report of these records, all of one family.
pub fn report(family: Family, records: &[Record]) -> Vec<u8> {
    let count = u16::try_from(records.len()).unwrap_or(0).to_be_bytes();
    let kind = if family == Family::V4 { 0x22 } else { 143 };
    let mut body = vec![kind, 0, 0, 0, 0, 0, count[0], count[1]];
    for record in records {
        let sources = u16::try_from(record.sources.len()).unwrap_or(0).to_be_bytes();
        body.extend([record.kind as u8, 0, sources[0], sources[1]]);
        for address in std::iter::once(&record.group).chain(&record.sources) {
            match address {
                IpAddr::V4(v4) => body.extend(v4.octets()),
                IpAddr::V6(v6) => body.extend(v6.octets()),
            }
        }
    }
    match family {
        Family::V4 => igmp(Ipv4Addr::new(154, 7, 1, 2), Ipv4Addr::new(224, 0, 0, 22), body),
        Family::V6 => mld(
            Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2),
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16),
            body,
        ),
    }
}

/// The records of a report. Records of later kinds are skipped.
///
/// # Errors
///
/// [`Malformed`], if the packet is no report, or has more than [`MOST_RECORDS`] records or [`MOST_SOURCES`] sources.
pub fn read_report(octets: &[u8]) -> Result<Vec<Record>, Malformed> {
    let (family, body) = body(octets)?;
    if body.first() != Some(if family == Family::V4 { &0x22 } else { &143 }) {
        return Err(Malformed::OtherKind);
    }
    let count = body.get(6..8).and_then(|at| at.first_chunk().copied()).map(u16::from_be_bytes);
    let count = usize::from(count.ok_or(Malformed::TooShort)?);
    if count > MOST_RECORDS {
        return Err(Malformed::TooMany);
    }
    let (mut records, mut rest) = (Vec::new(), body.get(8..).unwrap_or_default());
    for _ in 0..count {
        let (record, behind) = read_record(family, rest)?;
        records.extend(record);
        rest = behind;
    }
    Ok(records)
}

fn read_record(family: Family, octets: &[u8]) -> Result<(Option<Record>, &[u8]), Malformed> {
    let (&[kind, auxiliary, s1, s2], mut rest) = octets.split_first_chunk().ok_or(Malformed::TooShort)?;
    let count = usize::from(u16::from_be_bytes([s1, s2]));
    if count > MOST_SOURCES {
        return Err(Malformed::TooMany);
    }
    let mut take = || -> Result<IpAddr, Malformed> {
        let (address, behind) = match family {
            Family::V4 => rest.split_first_chunk::<4>().map(|(v4, behind)| (IpAddr::from(*v4), behind)),
            Family::V6 => rest.split_first_chunk::<16>().map(|(v6, behind)| (IpAddr::from(*v6), behind)),
        }
        .ok_or(Malformed::TooShort)?;
        rest = behind;
        Ok(address)
    };
    let group = take()?;
    let sources = (0..count).map(|_| take()).collect::<Result<Vec<IpAddr>, Malformed>>()?;
    let behind = rest.get(usize::from(auxiliary) * 4..).ok_or(Malformed::TooShort)?;
    Ok((record_kind(kind).map(|kind| Record { kind, group, sources }), behind))
}

fn record_kind(number: u8) -> Option<RecordKind> {
    use RecordKind::{Allow, Block, IsExclude, IsInclude, ToExclude, ToInclude};
    [IsInclude, IsExclude, ToInclude, ToExclude, Allow, Block].into_iter().find(|kind| *kind as u8 == number)
}

/// The body of a packet of IGMP or of ICMPv6, with a right checksum.
fn body(octets: &[u8]) -> Result<(Family, &[u8]), Malformed> {
    let packet = Packet::read(octets)?;
    let body = octets.get(packet.body.clone()).unwrap_or_default();
    let (family, sum) = match (packet.protocol, packet.source) {
        (IGMP, IpAddr::V4(_)) => (Family::V4, 0),
        (ICMP_V6, IpAddr::V6(_)) => {
            (Family::V6, pseudo_sum(packet.source, packet.destination, ICMP_V6, body.len()))
        }
        _ => return Err(Malformed::OtherKind),
    };
    if finish(sum + sum_of(body)) == 0 { Ok((family, body)) } else { Err(Malformed::Checksum) }
}

fn igmp(source: Ipv4Addr, destination: Ipv4Addr, mut body: Vec<u8>) -> Vec<u8> {
    let sum = finish(sum_of(&body));
    put(&mut body, 2, sum.to_be_bytes());
    ip::packet(source.into(), destination.into(), 1, IGMP, &[0x94, 4, 0, 0], &body)
}

fn mld(source: Ipv6Addr, destination: Ipv6Addr, mut body: Vec<u8>) -> Vec<u8> {
    let sum = finish(pseudo_sum(source.into(), destination.into(), ICMP_V6, body.len()) + sum_of(&body));
    put(&mut body, 2, sum.to_be_bytes());
    ip::packet(source.into(), destination.into(), 1, ICMP_V6, &[0, 0, 5, 2, 0, 0, 1, 0], &body)
}

/// A code of seconds: from 128 on it is a floating-point number (RFC 3376, section 4.1.7).
fn seconds(code: u8) -> u32 {
    match code {
        0 => DEFAULT_INTERVAL_S,
        1..128 => u32::from(code),
        _ => (u32::from(code & 15) | 16) << (u32::from(code >> 4 & 7) + 3),
    }
}

/// The most records of a report that is read, and the most sources of a record.
pub const MOST_RECORDS: usize = 64;
/// See [`MOST_RECORDS`].
pub const MOST_SOURCES: usize = 64;

/// The time in which hosts answer a query.
const RESPONSE_MS: u64 = 1_000;
const LONGEST_PLAIN: u32 = 127;
/// RFC 3376, section 8.
const DEFAULT_INTERVAL_S: u32 = 125;
const DEFAULT_ROBUSTNESS: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: QueryTimes = QueryTimes { interval_s: 10, robustness: 2 };

    fn records(group: &str, source: &str) -> Vec<Record> {
        let (group, source): (IpAddr, IpAddr) = (group.parse().unwrap(), source.parse().unwrap());
        let kinds = [1, 2, 3, 4, 5, 6].map(|number| record_kind(number).unwrap());
        let sources = |kind: RecordKind| vec![source; kind as usize - 1];
        kinds.map(|kind| Record { kind, group, sources: sources(kind) }).to_vec()
    }

    #[test]
    fn queries_and_reports_are_read_as_they_were_written() {
        for (family, group, source) in
            [(Family::V4, "232.1.2.3", "10.0.0.1"), (Family::V6, "ff3e::1", "2001:db8::1")]
        {
            assert_eq!(read_query(&general_query(family, TIMES)), Ok(TIMES));
            let records = records(group, source);
            assert_eq!(read_report(&report(family, &records)), Ok(records));
            assert_eq!(read_report(&general_query(family, TIMES)), Err(Malformed::OtherKind));
            assert_eq!(read_query(&report(family, &[])), Err(Malformed::OtherKind));
        }
    }

    #[test]
    fn octets_are_those_of_the_rfcs() {
        let query = general_query(Family::V4, TIMES);
        assert_eq!(query.len(), 36);
        assert_eq!((query[9], &query[20..24], &query[24..26]), (2, &[0x94, 4, 0, 0][..], &[0x11, 10][..]));
        let query = general_query(Family::V6, TIMES);
        assert_eq!(query.len(), 76);
        assert_eq!((query[6], query[7], &query[40..48]), (0, 1, &[58, 0, 5, 2, 0, 0, 1, 0][..]));
        assert_eq!((query[48], &query[72..]), (130, &[2, 10, 0, 0][..]));
        let channel = Channel { group: "232.1.2.3".parse().unwrap(), source: "10.0.0.1".parse().ok() };
        let report = report(Family::V4, &[channel.wanted()]);
        assert_eq!(report[16..20], [224, 0, 0, 22]);
        assert_eq!(report[30..], [0, 1, 1, 0, 0, 1, 232, 1, 2, 3, 10, 0, 0, 1]);
    }

    #[test]
    fn every_cut_and_every_changed_octet_of_a_body_is_refused() {
        for family in [Family::V4, Family::V6] {
            let records = if family == Family::V4 {
                records("232.1.2.3", "10.0.0.1")
            } else {
                records("ff3e::1", "::2")
            };
            let whole = report(family, &records);
            for length in 0..whole.len() {
                assert!(read_report(&whole[..length]).is_err(), "{length}");
            }
            let start = if family == Family::V4 { 24 } else { 48 };
            for at in start..whole.len() {
                let mut octets = whole.clone();
                octets[at] ^= 0x55;
                assert_eq!(read_report(&octets), Err(Malformed::Checksum), "{at}");
            }
        }
    }

    #[test]
    fn more_records_and_sources_than_a_host_has_are_refused() {
        let (group, source) = ("232.1.2.3".parse().unwrap(), "10.0.0.1".parse().unwrap());
        let record = |sources| Record { kind: RecordKind::Allow, group, sources: vec![source; sources] };
        assert!(read_report(&report(Family::V4, &[record(MOST_SOURCES)])).is_ok());
        assert_eq!(read_report(&report(Family::V4, &[record(MOST_SOURCES + 1)])), Err(Malformed::TooMany));
        let many = vec![record(0); MOST_RECORDS + 1];
        assert_eq!(read_report(&report(Family::V4, &many)), Err(Malformed::TooMany));
    }

    #[test]
    fn long_intervals_are_floating_point_numbers() {
        assert_eq!([0, 1, 127, 128, 0xff].map(seconds), [125, 1, 127, 128, 31_744]);
        assert_eq!(TIMES.membership(), Micros::from_secs(21));
    }
}
