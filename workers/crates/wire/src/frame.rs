//! Distinguishes data from the frames that keep a link alive.

/// True if a frame carries a UDP datagram or TCP bytes. Address resolution, neighbour discovery, ICMP and bare
/// TCP acknowledgements are not data.
pub(crate) fn carries_data(frame: &[u8]) -> bool {
    payload_bytes(frame).is_some_and(|bytes| bytes > 0)
}

fn payload_bytes(frame: &[u8]) -> Option<usize> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    match (ethernet.get(12)?, ethernet.get(13)?) {
        (0x08, 0x00) => ipv4_payload(packet),
        (0x86, 0xdd) => ipv6_payload(packet),
        _ => None,
    }
}

fn ipv4_payload(packet: &[u8]) -> Option<usize> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let total_bytes = usize::from(big_endian(packet, 2)?);
    let protocol = *packet.get(9)?;
    transport_payload(protocol, packet.get(header_bytes..total_bytes)?)
}

fn ipv6_payload(packet: &[u8]) -> Option<usize> {
    let length = usize::from(big_endian(packet, 4)?);
    let protocol = *packet.get(6)?;
    transport_payload(protocol, packet.get(IPV6_BYTES..IPV6_BYTES + length)?)
}

fn transport_payload(protocol: u8, segment: &[u8]) -> Option<usize> {
    match protocol {
        UDP => Some(segment.len()),
        TCP => segment.len().checked_sub(usize::from(segment.get(12)? >> 4) * 4),
        _ => None,
    }
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

const ETHERNET_BYTES: usize = 14;
const IPV6_BYTES: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn udp_frame(payload_bytes: usize) -> Vec<u8> {
        ipv4_frame(UDP, 8 + payload_bytes)
    }

    fn ipv4_frame(protocol: u8, segment_bytes: usize) -> Vec<u8> {
        let total = u16::try_from(20 + segment_bytes).expect("a packet's length");
        let mut frame = vec![0_u8; 14 + usize::from(total)];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[23] = protocol;
        frame
    }

    fn tcp_frame(payload_bytes: usize) -> Vec<u8> {
        let mut frame = ipv4_frame(TCP, 20 + payload_bytes);
        frame[34 + 12] = 5 << 4;
        frame
    }

    #[test]
    fn datagrams_and_tcp_bytes_are_data() {
        assert!(carries_data(&udp_frame(100)));
        assert!(carries_data(&tcp_frame(1)));
    }

    #[test]
    fn acknowledgements_and_icmp_are_not() {
        assert!(!carries_data(&tcp_frame(0)));
        assert!(!carries_data(&ipv4_frame(1, 64)));
    }

    #[test]
    fn padding_of_short_frames_is_not_data() {
        let mut padded = tcp_frame(0);
        padded.resize(60, 0);
        assert!(!carries_data(&padded));
    }

    #[test]
    fn ipv6_is_read_too() {
        let mut frame = vec![0_u8; 14 + 40 + 9];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[19] = 9;
        frame[20] = UDP;
        assert!(carries_data(&frame));
        frame[20] = 58;
        assert!(!carries_data(&frame));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            carries_data(&bytes);
        }
    }
}
