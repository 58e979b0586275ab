use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quinn_udp::{Transmit, UdpSocketState};
use serde_json::json;

use super::packet::{DATAGRAM_BYTES, Packets};
use crate::Outcome;
use crate::fill::now;

/// Arguments of the sender: the file and its rate.
#[derive(clap::Args)]
pub(crate) struct Send {
    /// The group and its port.
    #[arg(long)]
    group: SocketAddrV4,
    /// The file.
    #[arg(long)]
    file: PathBuf,
    /// Encrypt every datagram.
    #[arg(long)]
    seal: bool,
    /// At most so many bits of the file a second; without it as fast as it goes.
    #[arg(long)]
    rate_bps: Option<u64>,
}

impl Send {
    /// Sends the file once, by the interface that the route to the group names.
    pub(crate) fn run(&self) -> Outcome {
        let packets = Packets::new(self.seal)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        let mut file = File::open(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        let segments = state.max_gso_segments().clamp(1, TRAIN_DATAGRAMS);
        let (mut content, mut train) = (vec![0; segments * packets.content_bytes()], Vec::new());
        let (began, began_us, mut offset) = (Instant::now(), now(), 0);
        loop {
            let read = fill(&mut file, &mut content)?;
            if read == 0 {
                break;
            }
            self.wait(began, offset);
            train.clear();
            for piece in content.get(..read).unwrap_or_default().chunks(packets.content_bytes()) {
                packets.write(offset, piece, &mut train)?;
                offset += piece.len() as u64;
            }
            self.push(&socket, &state, &train)?;
        }
        println!("{}", json!({"bytes": offset, "began_us": began_us, "ended_us": now()}));
        Ok(())
    }

    fn wait(&self, began: Instant, sent_bytes: u64) {
        let Some(rate_bps) = self.rate_bps else { return };
        let due_us = sent_bytes.saturating_mul(8_000_000) / rate_bps.max(1);
        std::thread::sleep(Duration::from_micros(due_us).saturating_sub(began.elapsed()));
    }

    fn push(&self, socket: &UdpSocket, state: &UdpSocketState, train: &[u8]) -> io::Result<()> {
        let segment_size = (train.len() > DATAGRAM_BYTES).then_some(DATAGRAM_BYTES);
        let transmit = Transmit {
            destination: self.group.into(),
            ecn: None,
            contents: train,
            segment_size,
            src_ip: None,
        };
        loop {
            match state.try_send(socket.into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
                    poll(&mut fds, PollTimeout::from(SEND_PATIENCE_MS)).map_err(io::Error::from)?;
                }
                result => return result,
            }
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    loop {
        match file.read(buffer.get_mut(filled..).unwrap_or_default())? {
            0 => return Ok(filled),
            read => filled += read,
        }
    }
}

/// 44 datagrams of 1,452 bytes are what one send can carry.
const TRAIN_DATAGRAMS: usize = 44;
const SEND_PATIENCE_MS: u16 = 100;
