//! The room of a receive buffer: its limit, and the datagrams that found none in it, by the kernel's counter.
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, setsockopt, sockopt};
use nix::{getsockopt_impl, sockopt_impl};

/// A message of the kernel: a datagram, or a train of them.
pub(super) struct Counted {
    pub(super) bytes: usize,
    /// The length of each datagram but the last one.
    pub(super) segment_bytes: usize,
    /// The counter of drops as the message was queued, of 32 bits; `None`: there were none, or the kernel counts none.
    pub(super) drops: Option<u32>,
}

/// Has the kernel put its counter beside each message (SO_RXQ_OVFL).
///
/// Other reads of the socket leave 88 bytes for control messages (`quinn-udp`): the counter, the length of a train's
/// datagrams and the address fit, in this order. Beside a train the ECN bits do not, which nothing here uses.
pub(super) fn count_beside_messages(socket: &UdpSocket) {
    // A kernel without it may still answer `drops`.
    let _ = setsockopt(socket, sockopt::RxqOvfl, &1);
}

/// Reads one message with the counter beside it; `None`: none waits.
pub(super) fn receive_counted(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Counted>> {
    let mut space = vec![0; CONTROL_BYTES];
    let mut parts = [IoSliceMut::new(buffer)];
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty()) {
        Ok(message) => message,
        // The host of a relay refuses packets while nothing listens there.
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut counted = Counted { bytes: message.bytes, segment_bytes: message.bytes, drops: None };
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::RxqOvfl(drops) => counted.drops = Some(drops),
            ControlMessageOwned::UdpGroSegments(bytes) => {
                counted.segment_bytes = usize::try_from(bytes).unwrap_or(message.bytes);
            }
            _ => {}
        }
    }
    Ok(Some(counted))
}

/// The counter of drops by itself: no later message has to bring it. `None`: the kernel does not say.
pub(crate) fn drops(socket: &UdpSocket) -> Option<u32> {
    getsockopt(socket, MemInfo).ok()?.get(DROPS).copied()
}

/// The largest buffer that any program may request, in bytes; `None`: it can't be read.
pub(crate) fn receive_limit_bytes() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?.trim().parse().ok()
}

sockopt_impl!(
    /// The memory of a socket, and its drops.
    MemInfo,
    GetOnly,
    libc::SOL_SOCKET,
    libc::SO_MEMINFO,
    [u32; 9]
);

const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
/// More than all control messages of a datagram take.
const CONTROL_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use quinn_udp::{Transmit, UdpSocketState};

    use super::*;
    use crate::udp::GroupReceiver;

    /// A socket with the smallest buffer, after more datagrams than it takes.
    fn overflowed() -> (UdpSocket, UdpSocket) {
        let (sender, receiver) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        receiver.set_nonblocking(true).unwrap();
        count_beside_messages(&receiver);
        setsockopt(&receiver, sockopt::RcvBuf, &2_048).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        for _ in 0..50 {
            sender.send(&[7; 500]).unwrap();
        }
        (sender, receiver)
    }

    #[test]
    fn drops_are_counted_beside_the_next_message_and_by_themselves() {
        let (sender, receiver) = overflowed();
        let (mut buffer, mut taken) = ([0; 1_000], 0);
        while let Some(counted) = receive_counted(&receiver, &mut buffer).unwrap() {
            assert_eq!((counted.bytes, counted.segment_bytes, counted.drops), (500, 500, None));
            taken += 1;
        }
        assert!((1..50).contains(&taken));
        assert_eq!(drops(&receiver), Some(50 - taken), "no message came after them");
        sender.send(&[8; 400]).unwrap();
        let next = receive_counted(&receiver, &mut buffer).unwrap().unwrap();
        assert_eq!((next.bytes, next.drops), (400, Some(50 - taken)));
    }

    #[test]
    fn trains_are_read_whole_beside_the_counter() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let sender = UdpSocket::bind(address).unwrap();
            let mut receiver = GroupReceiver::of_relay(sender.local_addr().unwrap(), true, 2_048).unwrap();
            receiver.tell_relay(b"here");
            let (_, from) = sender.recv_from(&mut [0; 10]).unwrap();
            sender.connect(from).unwrap();
            let state = UdpSocketState::new((&sender).into()).unwrap();
            let train = |bytes: &[u8]| {
                let segment_size = (bytes.len() > 500).then_some(500);
                let transmit =
                    Transmit { destination: from, ecn: None, contents: bytes, segment_size, src_ip: None };
                state.send((&sender).into(), &transmit).unwrap();
            };
            (0..50).for_each(|_| train(&[7; 1_400]));
            receiver.receive(|_| {}).unwrap();
            receiver.receive(|_| {}).unwrap();
            let dropped = receiver.receive_counted(|_| {}).unwrap().unwrap();
            assert!(dropped > 0);
            for is_counted in [true, false] {
                let mut lengths = Vec::new();
                train(&[8; 1_400]);
                if is_counted {
                    let drops = receiver.receive_counted(|datagram| lengths.push(datagram.len())).unwrap();
                    assert_eq!(drops, Some(dropped), "{address}");
                }
                receiver.receive(|datagram| lengths.push(datagram.len())).unwrap();
                assert_eq!(lengths, [500, 500, 400], "{address} {is_counted}");
            }
        }
    }

    #[test]
    fn the_limit_of_buffers_is_known_where_the_kernel_shows_it() {
        assert!(receive_limit_bytes().is_none_or(|limit_bytes| limit_bytes >= 2_048));
    }
}
