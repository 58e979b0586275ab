//! A TCP connection to an LDM server, for single-threaded tools.
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use bytes::Bytes;
use downburst_model::{Micros, Now};

use super::super::address;
use super::Stop;

/// The result of waiting.
pub(super) enum Came {
    Bytes(Bytes),
    /// The peer or the network is gone.
    End,
    /// Nothing arrived in the time allowed.
    Nothing,
}

/// Connects to `HOST[:PORT]` through any of its addresses.
pub(super) fn connect(server: &str, within: Duration) -> Result<TcpStream, Stop> {
    let failed =
        |why: String| Stop::Failed(format!("{server} can't be reached: {why}; is LDM running there?"));
    let addresses =
        address::with_port(server).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
                return Ok(stream);
            }
            Err(error) => last = format!("{error} ({address})"),
        }
    }
    Err(failed(last))
}

/// Waits for bytes until the deadline, at most a second, so that a tool can do its other work.
pub(super) fn wait(stream: &mut TcpStream, now: Now, deadline: Option<Micros>) -> Came {
    let mut buffer = vec![0; READ_BYTES];
    let set = stream.set_read_timeout(Some(pause(now, deadline)));
    match set.and_then(|()| stream.read(&mut buffer)) {
        Ok(0) => Came::End,
        Ok(length) => {
            buffer.truncate(length);
            Came::Bytes(buffer.into())
        }
        Err(error) if is_timeout(&error) => Came::Nothing,
        Err(_) => Came::End,
    }
}

/// True if all was sent.
pub(super) fn send(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// The time until the deadline, within limits.
pub(super) fn pause(now: Now, deadline: Option<Micros>) -> Duration {
    let left =
        deadline.map_or(LONGEST_PAUSE, |deadline| Duration::from_micros(deadline.since(now.monotonic).0));
    left.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

const READ_BYTES: usize = 64 << 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The shortest timeout that a socket accepts.
const SHORTEST_PAUSE: Duration = Duration::from_micros(100);
