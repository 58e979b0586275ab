//! TAP devices, opened inside a network namespace, and the few system calls that the wire needs.
#![allow(unsafe_code)] // ioctl and sched_setscheduler have no safe wrapper in `nix`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);

/// Opens a TAP device in the named network namespace; the device exists while the file is open. An empty namespace
/// means that of the caller.
pub(crate) fn open(namespace: &str, device: &str) -> io::Result<File> {
    let home = File::open("/proc/self/ns/net")?;
    if !namespace.is_empty() {
        enter(&Path::new("/run/netns").join(namespace))?;
    }
    let opened = open_here(device);
    setns(&home, CloneFlags::CLONE_NEWNET)?;
    opened
}

/// Requests a real-time priority, so that other processes do not delay the wire. Returns true if it was granted.
pub(crate) fn ask_for_real_time() -> bool {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the pointer is to a live, initialised struct, and pid 0 is the caller.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Takes over standard input, which ends when the parent dies.
pub(crate) fn standard_input() -> OwnedFd {
    // SAFETY: nothing else in this process uses descriptor 0.
    unsafe { OwnedFd::from_raw_fd(0) }
}

fn enter(namespace: &Path) -> io::Result<()> {
    let target = File::open(namespace).map_err(|error| {
        io::Error::new(error.kind(), format!("network namespace {}: {error}", namespace.display()))
    })?;
    Ok(setns(target, CloneFlags::CLONE_NEWNET)?)
}

fn open_here(device: &str) -> io::Result<File> {
    let tap =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let request = interface_request(device)?;
    // SAFETY: the descriptor is an open /dev/net/tun and the request is initialised.
    unsafe { set_interface(tap.as_raw_fd(), &raw const request) }?;
    Ok(tap)
}

fn interface_request(device: &str) -> io::Result<libc::ifreq> {
    let name = device.as_bytes();
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        let sentence = format!("interface name '{device}' must have 1 to {} bytes", libc::IFNAMSIZ - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
    }
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    Ok(request)
}

const PRIORITY: libc::c_int = 20;
