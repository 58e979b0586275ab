use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::uio::pwritev;
use quinn_udp::{RecvMeta, UdpSocketState};
use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};

use super::packet::Packets;
use crate::Outcome;
use crate::fill::now;

/// Arguments of the receiver: the file that is expected, and its use.
#[derive(clap::Args)]
pub(crate) struct Receive {
    /// The group and its port.
    #[arg(long)]
    group: SocketAddrV4,
    /// The length of the file.
    #[arg(long)]
    bytes: u64,
    /// Where to write it; without it the bytes are counted and dropped.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Datagrams are encrypted.
    #[arg(long)]
    seal: bool,
    /// Hash the file as it comes.
    #[arg(long)]
    hash: bool,
}

impl Receive {
    /// Receives until the file is complete or nothing comes any more.
    pub(crate) fn run(&self) -> Outcome {
        let socket = self.join()?;
        let state = UdpSocketState::new((&socket).into())?;
        let mut copy = Copy::new(self)?;
        let mut buffers = vec![vec![0; GRO_BYTES]; quinn_udp::BATCH_SIZE];
        println!("ready");
        io::stdout().flush()?;
        let mut patience_ms = START_PATIENCE_MS;
        while copy.bytes < self.bytes && waits(&socket, patience_ms)? {
            patience_ms = PATIENCE_MS;
            let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
            let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|it| IoSliceMut::new(it)).collect();
            let received = state.recv((&socket).into(), &mut slices, &mut metas)?;
            for (buffer, meta) in buffers.iter_mut().zip(metas).take(received) {
                copy.take(buffer.get_mut(..meta.len).unwrap_or_default(), meta.stride)?;
            }
        }
        copy.tell()
    }

    /// Joins on the interface that the route to the group names, with a buffer for the whole file.
    fn join(&self) -> Outcome<UdpSocket> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&self.group.into())?;
        socket.join_multicast_v4(self.group.ip(), &Ipv4Addr::UNSPECIFIED)?;
        let room =
            usize::try_from(self.bytes.saturating_mul(2))?.clamp(SMALLEST_BUFFER_BYTES, LARGEST_BUFFER_BYTES);
        if setsockopt(&socket, sockopt::RcvBufForce, &room).is_err() {
            socket.set_recv_buffer_size(room)?;
        }
        Ok(socket.into())
    }
}

/// The part that has arrived so far.
struct Copy {
    packets: Packets,
    file: Option<File>,
    hasher: Option<Hasher>,
    bytes: u64,
    /// The hash needs the bytes in order.
    next: u64,
    began_us: i64,
}

impl Copy {
    fn new(options: &Receive) -> Outcome<Self> {
        Ok(Self {
            packets: Packets::new(options.seal)?,
            file: options.file.as_ref().map(File::create).transpose()?,
            hasher: options.hash.then(Hasher::default),
            bytes: 0,
            next: 0,
            began_us: 0,
        })
    }

    /// Takes a train of datagrams; those that lie side by side in the file are written in one piece.
    fn take(&mut self, train: &mut [u8], stride: usize) -> Outcome {
        if self.bytes == 0 {
            self.began_us = now().0;
        }
        let (mut pieces, mut start, mut end) = (Vec::new(), 0, 0);
        for datagram in train.chunks_mut(stride.max(1)) {
            let Some((offset, content)) = self.packets.read(datagram) else { continue };
            if offset != end {
                write(self.file.as_ref(), start, &pieces)?;
                pieces.clear();
                start = offset;
            }
            if offset == self.next {
                if let Some(hasher) = &mut self.hasher {
                    hasher.update(content);
                }
                self.next += content.len() as u64;
            }
            end = offset + content.len() as u64;
            self.bytes += content.len() as u64;
            pieces.push(IoSlice::new(content));
        }
        write(self.file.as_ref(), start, &pieces)
    }

    fn tell(self) -> Outcome {
        drop(self.file);
        let digest = self.hasher.map(Hasher::finish);
        let account = json!({
            "bytes": self.bytes, "in_order_bytes": self.next, "digest": digest,
            "began_us": self.began_us, "ended_us": now(),
        });
        println!("{account}");
        Ok(())
    }
}

/// Hashes many datagrams at a time: a datagram alone is too short for the wide instructions that BLAKE3 uses.
#[derive(Default)]
struct Hasher {
    hasher: blake3::Hasher,
    waiting: Vec<u8>,
}

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= HASHED_BYTES {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    fn finish(mut self) -> String {
        self.hasher.update(&self.waiting).finalize().to_hex().to_string()
    }
}

fn write(file: Option<&File>, offset: u64, pieces: &[IoSlice<'_>]) -> Outcome {
    let Some(file) = file.filter(|_| !pieces.is_empty()) else { return Ok(()) };
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    if pwritev(file, pieces, i64::try_from(offset)?)? == length {
        Ok(())
    } else {
        Err("the file could not be written in full: is the disk full?".into())
    }
}

fn waits(socket: &UdpSocket, patience_ms: u16) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut fds, PollTimeout::from(patience_ms)).map_err(io::Error::from)? > 0)
}

/// Several times the widest instructions' sixteen chunks of 1 KiB.
const HASHED_BYTES: usize = 64 << 10;
/// The most that one receive can carry.
const GRO_BYTES: usize = 65_536;
const SMALLEST_BUFFER_BYTES: usize = 16 << 20;
/// Half of what a socket option can say; the kernel doubles it.
const LARGEST_BUFFER_BYTES: usize = 1 << 30;
/// Until the sender begins.
const START_PATIENCE_MS: u16 = 30_000;
/// The file is not complete and nothing comes: the rest is lost.
const PATIENCE_MS: u16 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn received(seal: bool, change: impl Fn(&mut Vec<Vec<u8>>)) -> (Vec<u8>, u64, Option<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let options = Receive {
            group: "239.1.2.3:7400".parse().unwrap(),
            bytes: 0,
            file: Some(path.clone()),
            seal,
            hash: true,
        };
        let mut copy = Copy::new(&options).unwrap();
        let mut trains: Vec<Vec<u8>> = trains(&copy.packets);
        change(&mut trains);
        for mut train in trains {
            copy.take(&mut train, super::super::packet::DATAGRAM_BYTES).unwrap();
        }
        let digest = copy.hasher.map(Hasher::finish);
        (std::fs::read(path).unwrap(), copy.bytes, digest)
    }

    fn content() -> Vec<u8> {
        (0..10_000u32).flat_map(u32::to_le_bytes).collect()
    }

    /// Ten datagrams a train.
    fn trains(packets: &Packets) -> Vec<Vec<u8>> {
        let (content, mut trains, mut offset) = (content(), Vec::new(), 0);
        for pieces in content.chunks(10 * packets.content_bytes()) {
            let mut train = Vec::new();
            for piece in pieces.chunks(packets.content_bytes()) {
                packets.write(offset, piece, &mut train).unwrap();
                offset += piece.len() as u64;
            }
            trains.push(train);
        }
        trains
    }

    #[test]
    fn trains_become_the_file_and_its_digest() {
        for seal in [false, true] {
            let (file, bytes, digest) = received(seal, |_| {});
            assert_eq!(file, content());
            assert_eq!(bytes, 40_000);
            assert_eq!(digest, Some(blake3::hash(&content()).to_hex().to_string()));
        }
    }

    #[test]
    fn a_lost_train_is_seen_in_the_count_and_in_the_digest() {
        let (file, bytes, digest) = received(true, |trains| drop(trains.remove(1)));
        assert_eq!(file.len(), 40_000, "what came behind it stands in its place");
        assert!(bytes < 40_000);
        assert_ne!(digest, Some(blake3::hash(&content()).to_hex().to_string()));
    }
}
