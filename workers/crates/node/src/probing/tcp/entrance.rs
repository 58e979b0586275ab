//! How the connections of a probe come about: the node listens, the site connects.
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use downburst_probe::{Control, Key, OPENING_BYTES, Opening, Purpose};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::probing::PATIENCE;
use crate::tcp::{prepare_probe, use_control};

/// The far end of a probe, at the node.
#[derive(Clone, Copy)]
pub(crate) struct Far {
    /// This node's own address.
    pub(crate) at: IpAddr,
    /// That of the site's session: connections from elsewhere are closed.
    pub(crate) site: IpAddr,
    pub(crate) key: Key,
}

/// A port of the node for one probe; closed when this is dropped.
pub(super) struct Entrance {
    number: u16,
    is_over: Arc<AtomicBool>,
}

/// Connections whose opening has yet to come.
struct Waiting(Arc<AtomicUsize>);

impl Entrance {
    /// Opens the port. `take` gets each connection that shows the key, in a thread of its own.
    pub(super) fn open(
        far: Far,
        take: impl Fn(Purpose, TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(far.at, 0))?;
        listener.set_nonblocking(true)?;
        let number = listener.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("probe-accept".to_owned());
        thread.spawn(move || accept(&listener, far, &Arc::new(take), &ends))?;
        Ok(Self { number, is_over })
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection of the site to a port of the node, with the congestion control of its sender.
///
/// # Errors
/// The kernel does not have the congestion control, or there is no connection; one sentence without its place.
pub(super) fn connect(
    node: SocketAddr,
    key: &Key,
    purpose: Purpose,
    control: Option<Control>,
) -> Result<TcpStream, String> {
    let socket = socket_with(node, control)?;
    let stream = connected(socket, node).and_then(|stream| show(&stream, key, purpose).map(|()| stream));
    stream.map_err(|error| format!("TCP to port {} of the hub fails: {error}", node.port()))
}

/// Checks that this host can send by a congestion control.
///
/// # Errors
/// It can't; the error is the begin of a sentence, before the place.
pub(crate) fn check_control(control: Control) -> Result<(), String> {
    socket_with(SocketAddr::from(([127, 0, 0, 1], 0)), Some(control)).map(|_| ())
}

/// A socket that is not connected, with a congestion control.
pub(super) fn socket_with(node: SocketAddr, control: Option<Control>) -> Result<Socket, String> {
    let socket = Socket::new(Domain::for_address(node), Type::STREAM, Some(Protocol::TCP));
    let socket = socket.map_err(|error| format!("the system gives no socket: {error}"))?;
    control.into_iter().try_for_each(|control| use_control(&socket, control))?;
    Ok(socket)
}

/// Connects such a socket; the node hears of it once it shows the key.
pub(super) fn connected(socket: Socket, node: SocketAddr) -> io::Result<TcpStream> {
    socket.connect_timeout(&node.into(), CONNECT_PATIENCE)?;
    let stream = TcpStream::from(socket);
    prepare_probe(&stream, PATIENCE)?;
    Ok(stream)
}

/// Shows the key on a connection to the node.
pub(super) fn show(mut stream: &TcpStream, key: &Key, purpose: Purpose) -> io::Result<()> {
    stream.write_all(&Opening(purpose).bytes(key))
}

fn accept<T>(listener: &TcpListener, far: Far, take: &Arc<T>, is_over: &AtomicBool)
where
    T: Fn(Purpose, TcpStream) + Send + Sync + 'static,
{
    let waiting = Arc::new(AtomicUsize::new(0));
    let patience = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if !poll(&mut ready, patience).is_ok_and(|many| many > 0) {
            continue;
        }
        let Ok((stream, from)) = listener.accept() else {
            std::thread::sleep(REFUSED_PAUSE);
            continue;
        };
        let is_full = waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING;
        let waits = Waiting(Arc::clone(&waiting));
        if is_full || from.ip().to_canonical() != far.site.to_canonical() {
            continue;
        }
        let take = Arc::clone(take);
        let thread = std::thread::Builder::new().name("probe".to_owned());
        let _ = thread.spawn(move || {
            let purpose = shown(&stream, &far.key);
            drop(waits);
            if let Some(purpose) = purpose {
                take(purpose, stream);
            }
        });
    }
}

/// The purpose that a connection shows with the probe's key.
fn shown(mut stream: &TcpStream, key: &Key) -> Option<Purpose> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(OPENING_PATIENCE)).ok()?;
    let mut bytes = [0; OPENING_BYTES];
    stream.read_exact(&mut bytes).ok()?;
    let Opening(purpose) = Opening::read(key, &bytes)?;
    prepare_probe(stream, PATIENCE).ok()?;
    Some(purpose)
}

const CONNECT_PATIENCE: Duration = Duration::from_secs(4);
const OPENING_PATIENCE: Duration = Duration::from_secs(2);
const REFUSED_PAUSE: Duration = Duration::from_millis(5);
/// A stranger at the site's address can hold no more threads.
const MOST_WAITING: usize = 16;
