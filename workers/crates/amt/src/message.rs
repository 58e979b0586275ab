//! The messages of RFC 7450, section 5.1. Reserved bits are sent as zero and ignored.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::code::Code;
use crate::ip::Malformed;
use crate::membership::Family;

/// A message of a gateway or a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Gateway: which relay is there?
    Discovery {
        /// Comes back in the answer.
        nonce: u32,
    },
    /// Relay: its address.
    Advertisement {
        /// The discovery's.
        nonce: u32,
        /// The address for requests.
        relay: IpAddr,
    },
    /// Gateway: a request for a query.
    Request {
        /// Comes back in the query.
        nonce: u32,
        /// The protocol of the query.
        family: Family,
    },
    /// Relay: a general query, as an IP packet.
    Query {
        /// True if the relay takes no further tunnel.
        is_full: bool,
        /// Of the gateway's endpoint and nonce.
        code: Code,
        /// The request's.
        nonce: u32,
        /// The packet.
        query: &'a [u8],
        /// The gateway's endpoint as the relay sees it.
        gateway: Option<SocketAddr>,
    },
    /// Gateway: a report, as an IP packet.
    Update {
        /// The query's.
        code: Code,
        /// The query's.
        nonce: u32,
        /// The packet.
        report: &'a [u8],
    },
    /// Relay: a multicast packet.
    Data(&'a [u8]),
    /// Gateway: the tunnel of an endpoint that was this gateway's ends.
    Teardown {
        /// Of the endpoint's last query.
        code: Code,
        /// Of the endpoint's last query.
        nonce: u32,
        /// The endpoint.
        gateway: SocketAddr,
    },
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Malformed`], if it is of another version or type, or ends before its fields.
    pub fn read(octets: &'a [u8]) -> Result<Self, Malformed> {
        let (first, rest) = octets.split_first().ok_or(Malformed::TooShort)?;
        match first {
            1 => Ok(Self::Discovery { nonce: number(rest, 3)? }),
            2 => Ok(Self::Advertisement { nonce: number(rest, 3)?, relay: address(rest.get(7..))? }),
            3 => Ok(Self::Request { nonce: number(rest, 3)?, family: family(*rest.first().unwrap_or(&0)) }),
            4 => read_query(rest),
            5 => Ok(Self::Update { code: code(rest)?, nonce: number(rest, 7)?, report: after(rest, 11)? }),
            6 => Ok(Self::Data(after(rest, 1)?)),
            7 => Ok(Self::Teardown {
                code: code(rest)?,
                nonce: number(rest, 7)?,
                gateway: endpoint(after(rest, 11)?)?,
            }),
            _ => Err(Malformed::OtherKind),
        }
    }

    /// The message in octets.
    pub fn write(&self) -> Vec<u8> {
        match *self {
            Self::Discovery { nonce } => [&[1, 0, 0, 0][..], &nonce.to_be_bytes()].concat(),
            Self::Advertisement { nonce, relay } => {
                let start = [&[2, 0, 0, 0][..], &nonce.to_be_bytes()].concat();
                match relay.to_canonical() {
                    IpAddr::V4(v4) => [start, v4.octets().to_vec()].concat(),
                    IpAddr::V6(v6) => [start, v6.octets().to_vec()].concat(),
                }
            }
            Self::Request { nonce, family } => {
                [&[3, u8::from(family == Family::V6), 0, 0][..], &nonce.to_be_bytes()].concat()
            }
            Self::Query { is_full, code, nonce, query, gateway } => {
                let flags = u8::from(is_full) << 1 | u8::from(gateway.is_some());
                let end = gateway.map(endpoint_octets).unwrap_or_default();
                [&[4, flags][..], &code, &nonce.to_be_bytes(), query, &end].concat()
            }
            Self::Update { code, nonce, report } => {
                [&[5, 0][..], &code, &nonce.to_be_bytes(), report].concat()
            }
            Self::Data(packet) => [&data_header()[..], packet].concat(),
            Self::Teardown { code, nonce, gateway } => {
                [&[7, 0][..], &code, &nonce.to_be_bytes(), &endpoint_octets(gateway)].concat()
            }
        }
    }
}

/// The octets before the packet of a [`Message::Data`].
pub const fn data_header() -> [u8; 2] {
    [6, 0]
}

fn read_query(rest: &[u8]) -> Result<Message<'_>, Malformed> {
    let flags = *rest.first().ok_or(Malformed::TooShort)?;
    let body = after(rest, 11)?;
    let (query, gateway) = if flags & 1 == 0 {
        (body, None)
    } else {
        let at = body.len().checked_sub(ENDPOINT_OCTETS).ok_or(Malformed::TooShort)?;
        (body.get(..at).unwrap_or_default(), Some(endpoint(after(body, at)?)?))
    };
    Ok(Message::Query { is_full: flags & 2 != 0, code: code(rest)?, nonce: number(rest, 7)?, query, gateway })
}

fn family(flags: u8) -> Family {
    if flags & 1 == 0 { Family::V4 } else { Family::V6 }
}

/// The code stands behind the flags.
fn code(rest: &[u8]) -> Result<Code, Malformed> {
    after(rest, 1)?.first_chunk().copied().ok_or(Malformed::TooShort)
}

fn number(octets: &[u8], at: usize) -> Result<u32, Malformed> {
    after(octets, at)?.first_chunk().copied().map(u32::from_be_bytes).ok_or(Malformed::TooShort)
}

fn after(octets: &[u8], at: usize) -> Result<&[u8], Malformed> {
    octets.get(at..).ok_or(Malformed::TooShort)
}

fn address(octets: Option<&[u8]>) -> Result<IpAddr, Malformed> {
    let octets = octets.ok_or(Malformed::TooShort)?;
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).map_err(|_| Malformed::TooShort)
}

/// An IPv4 address is the end of an address whose other bits are zero (section 5.1.4.9), or mapped into IPv6.
fn endpoint(octets: &[u8]) -> Result<SocketAddr, Malformed> {
    let (port, address) = octets.split_first_chunk::<2>().ok_or(Malformed::TooShort)?;
    let address = address.first_chunk::<16>().copied().ok_or(Malformed::TooShort)?;
    let (start, end) = (address.first_chunk::<12>(), address.last_chunk::<4>());
    let address = match (start, end) {
        (Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Some(v4)) if *v4 != [0, 0, 0, 1] => {
            IpAddr::V4(Ipv4Addr::from(*v4))
        }
        _ => IpAddr::V6(Ipv6Addr::from(address)).to_canonical(),
    };
    Ok(SocketAddr::new(address, u16::from_be_bytes(*port)))
}

fn endpoint_octets(endpoint: SocketAddr) -> Vec<u8> {
    let address = match endpoint.ip().to_canonical() {
        IpAddr::V4(v4) => [&[0; 12][..], &v4.octets()].concat(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    [&endpoint.port().to_be_bytes()[..], &address].concat()
}

/// The port of relays (RFC 7450, section 7.2).
pub const PORT: u16 = 2_268;

const ENDPOINT_OCTETS: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Message<'static>> {
        let (nonce, code) = (0x0102_0304, [9, 8, 7, 6, 5, 4]);
        let gateways = ["192.0.2.1:5000", "[2001:db8::1]:2268", "[::1]:9"].map(|text| text.parse().unwrap());
        let mut all = vec![
            Message::Discovery { nonce },
            Message::Advertisement { nonce, relay: "192.0.2.7".parse().unwrap() },
            Message::Advertisement { nonce, relay: "2001:db8::7".parse().unwrap() },
            Message::Request { nonce, family: Family::V4 },
            Message::Request { nonce, family: Family::V6 },
            Message::Query { is_full: true, code, nonce, query: b"query", gateway: None },
            Message::Update { code, nonce, report: b"report" },
            Message::Data(b"packet"),
        ];
        all.extend(gateways.map(|gateway| Message::Teardown { code, nonce, gateway }));
        let queries = gateways.map(|gateway| Message::Query {
            is_full: false,
            code,
            nonce,
            query: b"query",
            gateway: Some(gateway),
        });
        all.extend(queries);
        all
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        for message in all() {
            assert_eq!(Message::read(&message.write()), Ok(message));
        }
    }

    #[test]
    fn fields_have_the_places_of_the_rfc() {
        assert_eq!(Message::Discovery { nonce: 0x0102_0304 }.write(), [1, 0, 0, 0, 1, 2, 3, 4]);
        let request = Message::Request { nonce: 5, family: Family::V6 };
        assert_eq!(request.write(), [3, 1, 0, 0, 0, 0, 0, 5]);
        let gateway = "192.0.2.1:256".parse().ok();
        let query = Message::Query { is_full: true, code: [1; 6], nonce: 5, query: &[0x45], gateway };
        let expected = [
            4, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 5, 0x45, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1,
        ];
        assert_eq!(query.write(), expected);
        assert_eq!(Message::Data(&[0x45]).write(), [6, 0, 0x45]);
        let update = Message::Update { code: [1; 6], nonce: 5, report: &[0x45] };
        assert_eq!(update.write(), [5, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 5, 0x45]);
    }

    #[test]
    fn a_message_that_is_cut_is_refused() {
        for message in all().into_iter().filter(|message| !matches!(message, Message::Data(_))) {
            let octets = message.write();
            for length in 0..octets.len().min(8) {
                assert_eq!(
                    Message::read(&octets[..length]),
                    Err(Malformed::TooShort),
                    "{message:?} {length}"
                );
            }
        }
        assert_eq!(Message::read(&[0x11, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::OtherKind), "version 1");
        assert_eq!(Message::read(&[8, 0]), Err(Malformed::OtherKind));
    }
}
