//! Datagrams with the time at which the kernel took them, and those that the socket had no room for.
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use downburst_model::{Now, WallMicros};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// Reads a socket.
pub(super) struct Arrivals<'a> {
    socket: &'a UdpSocket,
    clock: Clock,
    space: Vec<u8>,
}

impl<'a> Arrivals<'a> {
    pub(super) fn of(socket: &'a UdpSocket, clock: Clock) -> Self {
        // A kernel without stamps leaves the time at which this thread woke.
        let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
        Self { socket, clock, space: nix::cmsg_space!(TimeSpec) }
    }

    /// The next datagram: its length, its sender, and its arrival.
    pub(super) fn next(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Now)> {
        let mut parts = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut self.space), MsgFlags::empty())?;
        let now = self.clock.now();
        let stamped = message.cmsgs().into_iter().flatten().find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => {
                Some(stamp.tv_sec().saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec()))
            }
            _ => None,
        });
        let wall = stamped.map(|nanos| WallMicros(self.clock.kernel_nanos(nanos).div_euclid(1_000)));
        let from = message.address.as_ref().and_then(address_of).ok_or(io::ErrorKind::InvalidData)?;
        Ok((message.bytes, from, wall.map_or(now, |wall| arrived(now, wall))))
    }
}

/// Both clocks at an arrival before `now`. A stamp from the future, or one of long ago, shows that the wall clock was
/// set; then the time of the reading is the better one.
fn arrived(now: Now, wall: WallMicros) -> Now {
    match u64::try_from(now.wall.0.saturating_sub(wall.0)) {
        Ok(waited_us) if waited_us <= LONGEST_WAIT_US => {
            Now { monotonic: downburst_model::Micros(now.monotonic.0.saturating_sub(waited_us)), wall }
        }
        _ => now,
    }
}

/// The datagrams that the socket had no room for, since it was opened; 0 where the kernel does not say.
pub(super) fn dropped(socket: &UdpSocket) -> u64 {
    crate::udp::drops(socket).map_or(0, u64::from)
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::from((address.ip(), address.port())));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::from((address.ip(), address.port()))))
}

/// A full buffer of the slowest probe is read by then.
const LONGEST_WAIT_US: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use downburst_model::Micros;

    use super::*;

    #[test]
    fn an_arrival_is_before_its_reading_by_both_clocks() {
        let now = Now { monotonic: Micros(5_000_000), wall: WallMicros(70_000_000) };
        let at = |wall| {
            let Now { monotonic, wall } = arrived(now, WallMicros(wall));
            (monotonic.0, wall.0)
        };
        assert_eq!(at(69_999_000), (4_999_000, 69_999_000));
        assert_eq!(at(70_000_001), (5_000_000, 70_000_000), "from the future");
        assert_eq!(at(59_999_999), (5_000_000, 70_000_000), "of long ago");
        assert_eq!(at(i64::MIN), (5_000_000, 70_000_000));
    }

    #[test]
    fn the_kernel_stamps_a_datagram_when_it_comes() {
        let clock = Clock::start(0);
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut arrivals = Arrivals::of(&b, clock);
        // The kernel begins to stamp some time after the first socket asks for it.
        let is_stamped = (0..100).any(|_| {
            a.send_to(b"hello", b.local_addr().unwrap()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let read = clock.now();
            let (length, from, at) = arrivals.next(&mut [0; 64]).unwrap();
            assert_eq!((length, from), (5, a.local_addr().unwrap()));
            at.monotonic.plus(Micros::from_millis(15)) < read.monotonic
        });
        assert!(is_stamped);
    }
}
