//! Options of the TCP connections between hub and sites, shared by both sides.
//!
//! Buffer sizes are left to the kernel, which adapts them to the path: a fixed size is too small
//! for one site and too large for another. A TCP profile may set them for a prefix.
use std::fs;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

use downburst_hub::{ConnectionLook, PathFacts};
use downburst_model::Micros;
use downburst_session::{LIVENESS_LIMIT, StreamId};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

mod flow;
mod options;

pub(crate) use flow::{control_of, flow_facts, prepare_probe, round_trip, use_control};
pub(crate) use options::Options;

/// Prepares a new connection, on either side. Options that the kernel does not support are skipped.
pub fn prepare(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    // Frames are sent as they are written; the machines combine those that belong together.
    let _ = socket.set_tcp_nodelay(true);
    // A peer that acknowledges nothing for so long is dead to the session as well: the close frees its buffers.
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_micros(LIVENESS_LIMIT.0)));
    let _ = socket.set_tcp_notsent_lowat(NOT_SENT_LIMIT_BYTES);
}

/// Has the kernel measure a connection's path again, as for a new connection; bytes in flight stay in flight.
///
/// A congestion control with a model of the path mistakes the throughput beside a flood for a policer's rate,
/// and BBR keeps to that for 48 round trips (`bbr_lt_bw_max_rtts`), which are long by then: ten seconds
/// at a hundredth of the path's rate were observed.
pub(crate) fn measure_anew(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let name = congestion_control(SockRef::from(stream));
    if !KEEPS_ITS_RATE.contains(&name.as_str()) {
        return;
    }
    let changed =
        socket.set_tcp_congestion(ALWAYS_THERE).and_then(|()| socket.set_tcp_congestion(name.as_bytes()));
    if let Err(error) = changed {
        tracing::warn!("a connection can't be measured again by {name}: {error}");
    }
}

/// True while a connection is in exponential backoff of its retransmissions.
pub(crate) fn waits_to_resend(stream: &TcpStream) -> bool {
    let info = nix::sys::socket::getsockopt(stream, Info);
    info.is_ok_and(|info| info.get(UNANSWERED_TIMERS_AT).is_some_and(|timers| *timers > 0))
}

/// Limits the wait before a retransmission to a second, or to the system's limit. Kernels before 6.15
/// can't, and double the wait each time: at worst, it adds the length of the flood once more.
pub(crate) fn try_again_each_second(stream: &TcpStream, each_second: bool) {
    let longest_ms = if each_second {
        1_000
    } else {
        let system = read_setting("tcp_rto_max_ms").and_then(|value| value.parse().ok());
        system.unwrap_or(LONGEST_RESEND_MS)
    };
    let _ = nix::sys::socket::setsockopt(stream, LongestResend, &longest_ms);
}

/// The shortest round trip of the last minutes, as the kernel measured it from the first packet on. It
/// excludes the wait in buffers and for a processor at either end. `None`: the kernel does not report it.
pub(crate) fn least_round_trip(stream: &TcpStream) -> Option<Micros> {
    let info = nix::sys::socket::getsockopt(stream, Info).ok()?;
    let field = info.get(LEAST_ROUND_TRIP)?.first_chunk()?;
    Some(u32::from_ne_bytes(*field)).filter(|us| *us != u32::MAX).map(|us| Micros(us.into()))
}

/// The kernel's measurements of a connection's path from this side; `None` if it does not report them.
pub(crate) fn path_facts(stream: &TcpStream) -> Option<PathFacts> {
    let info = nix::sys::socket::getsockopt(stream, Info).ok()?;
    let count = |at: Range<usize>| Some(u64::from(u32::from_ne_bytes(*info.get(at)?.first_chunk()?)));
    Some(PathFacts {
        least_round_trip_us: count(LEAST_ROUND_TRIP).filter(|us| *us != u64::from(u32::MAX)),
        sent_segments: count(SENT)?,
        resent_segments: count(RESENT)?,
        rate_bps: u64::from_ne_bytes(*info.get(DELIVERY_RATE)?.first_chunk()?).saturating_mul(8),
        is_lower_bound: info.get(APP_LIMITED_AT)? & 1 == 1,
        congestion: congestion_control(SockRef::from(stream)),
        path_mtu_bytes: path_mtu_bytes(stream, &count),
    })
}

/// The progress of a connection, for its TCP profile. The stream and its queue are the caller's.
pub(crate) fn progress(stream: &TcpStream, id: StreamId, queued: bool) -> Option<ConnectionLook> {
    let info = nix::sys::socket::getsockopt(stream, Info).ok()?;
    let count = |at: Range<usize>| Some(u64::from_ne_bytes(*info.get(at)?.first_chunk()?));
    Some(ConnectionLook {
        stream: id,
        peer: stream.peer_addr().ok()?.ip(),
        acked_bytes: count(ACKED)?,
        queued,
        busy_us: count(BUSY)?,
        buffer_limited_us: count(BUFFER_LIMITED)?,
        send_buffer_bytes: options::send_buffer_bytes(stream),
    })
}

/// The congestion controls of this host's kernel, and the one that connections have if nothing sets another.
pub(crate) fn congestion_controls() -> (Vec<String>, String) {
    let available = read_setting("tcp_available_congestion_control").unwrap_or_default();
    let names = available.split_whitespace().map(str::to_owned).collect();
    (names, read_setting("tcp_congestion_control").unwrap_or_default())
}

/// The longest IP packet that the path carries: the lesser of the path MTU that the kernel discovered and of the
/// segments that the peer accepts, which reflect its link.
fn path_mtu_bytes(stream: &TcpStream, count: &impl Fn(Range<usize>) -> Option<u64>) -> Option<u64> {
    let is_v4 = stream.peer_addr().ok()?.ip().to_canonical().is_ipv4();
    let headers = if is_v4 { 20 } else { 40 } + 20;
    Some(count(PATH_MTU)?.min(count(SEGMENT)? + headers + TIME_STAMP_BYTES))
}

/// Sets the congestion control of a socket, or of a listener's connections; the error includes the remedy.
pub(crate) fn use_congestion_control(socket: &impl AsFd, name: &str) -> Result<(), String> {
    set_congestion_control(&SockRef::from(socket), name)
}

fn set_congestion_control(socket: &SockRef<'_>, name: &str) -> Result<(), String> {
    socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
        let known = read_setting("tcp_available_congestion_control").unwrap_or_else(|| "unknown".to_owned());
        format!(
            "the congestion control {name:?} can't be used: {error}; the kernel has: {known}; load its module \
             (modprobe tcp_{name}), allow it in net.ipv4.tcp_allowed_congestion_control, or correct the setting"
        )
    })
}

/// This host's kernel setting that slows idle connections down, in a sentence with the remedy; `None` if
/// there is none.
pub(crate) fn slow_start_after_idle(listener: &TcpListener) -> Option<String> {
    let name = congestion_control(SockRef::from(listener));
    let restarts = read_setting("tcp_slow_start_after_idle").is_some_and(|value| value != "0");
    (restarts && !KEEPS_ITS_RATE.contains(&name.as_str())).then(|| {
        format!(
            "this host's kernel slows connections down after a moment of silence (congestion control {name}): the \
             first large product after a pause takes several more round trips; run: sysctl -w \
             net.ipv4.tcp_slow_start_after_idle=0, or set the hub's congestion control to bbr"
        )
    })
}

fn congestion_control(socket: SockRef<'_>) -> String {
    let name = socket.tcp_congestion().unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

fn read_setting(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok().map(|value| value.trim().to_owned())
}

sockopt_impl!(
    /// The kernel's record of a connection, up to the times of its limits (Linux 4.10). Further fields of later
    /// kernels are not read.
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; BUFFER_LIMITED.end]
);

sockopt_impl!(
    /// The longest wait before a retransmission, in milliseconds, 1,000 to 120,000 (Linux 6.15 and later).
    LongestResend,
    Both,
    libc::IPPROTO_TCP,
    TCP_RTO_MAX_MS,
    u32
);

/// In `linux/tcp.h`; libc does not have it yet.
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// The kernel's default (RFC 6298 requires 60 s at least).
const LONGEST_RESEND_MS: u32 = 120_000;

/// Offset of `tcpi_retransmits`: timeouts since the last acknowledgement.
const UNANSWERED_TIMERS_AT: usize = 2;

/// Offset of `tcpi_min_rtt`, in microseconds, in the kernel's `struct tcp_info` (Linux 4.6 and later).
/// New fields are only ever appended.
const LEAST_ROUND_TRIP: Range<usize> = 148..152;

/// `tcpi_total_retrans`, and `tcpi_data_segs_out` (Linux 4.6 and later).
const RESENT: Range<usize> = 100..104;
const SENT: Range<usize> = 156..160;

/// `tcpi_snd_mss` and `tcpi_pmtu`.
const SEGMENT: Range<usize> = 16..20;
const PATH_MTU: Range<usize> = 60..64;

/// With its padding; the kernel subtracts it from a segment.
const TIME_STAMP_BYTES: u64 = 12;

/// `tcpi_delivery_rate`, in bytes per second (Linux 4.9 and later), and the byte whose lowest bit is
/// `tcpi_delivery_rate_app_limited`.
const DELIVERY_RATE: Range<usize> = 160..168;
const APP_LIMITED_AT: usize = 7;

/// `tcpi_bytes_acked`, and `tcpi_busy_time` and `tcpi_sndbuf_limited` in microseconds (Linux 4.10 and later).
const ACKED: Range<usize> = 120..128;
const BUSY: Range<usize> = 168..176;
const BUFFER_LIMITED: Range<usize> = 184..192;

/// The amount that the kernel accepts beyond the bytes in flight. A warning can still overtake products in our
/// queue, but not those in the kernel. Half of it is drained before the session is woken again.
const NOT_SENT_LIMIT_BYTES: u32 = 128 << 10;

/// Congestion controls with a model of the path, to which the kernel does not apply the slow start after idle.
const KEEPS_ITS_RATE: [&str; 2] = ["bbr", "bbr3"];

/// Present in every kernel, and allowed for every user.
const ALWAYS_THERE: &[u8] = b"reno";

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn options_are_set_on_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        for stream in [&stream, &accepted] {
            prepare(stream);
            let socket = SockRef::from(stream);
            assert!(socket.tcp_nodelay().unwrap());
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_micros(LIVENESS_LIMIT.0)));
            assert_eq!(socket.tcp_notsent_lowat().unwrap(), NOT_SENT_LIMIT_BYTES);
        }
    }

    #[tokio::test]
    async fn the_wait_before_sending_again_is_bounded_and_goes_back_to_what_the_system_says() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let Ok(usual) = nix::sys::socket::getsockopt(&stream, LongestResend) else {
            return assert!(
                read_setting("tcp_rto_max_ms").is_none(),
                "a kernel with the setting has the option"
            );
        };
        try_again_each_second(&stream, true);
        assert_eq!(nix::sys::socket::getsockopt(&stream, LongestResend), Ok(1_000));
        try_again_each_second(&stream, false);
        assert_eq!(nix::sys::socket::getsockopt(&stream, LongestResend), Ok(usual));
        assert!(!waits_to_resend(&stream));
    }

    #[tokio::test]
    async fn the_kernel_knows_the_round_trip_of_a_path() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let round_trip = least_round_trip(&stream).unwrap();
        assert!((1..100_000).contains(&round_trip.0), "{round_trip:?}");
    }

    #[tokio::test]
    async fn the_kernel_counts_what_a_connection_sent_and_how_fast_it_was_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        let (sent, taken) = tokio::join!(stream.write_all(&[7; 100_000]), async {
            accepted.read_exact(&mut vec![0; 100_000]).await
        });
        sent.unwrap();
        taken.unwrap();
        let facts = path_facts(&stream).unwrap();
        assert!(facts.sent_segments >= 2 && facts.resent_segments <= facts.sent_segments, "{facts:?}");
        assert!(facts.rate_bps > 1_000_000 && !facts.congestion.is_empty(), "{facts:?}");
        let both = facts.clone().with(facts.clone());
        assert_eq!((both.sent_segments, both.rate_bps), (2 * facts.sent_segments, 2 * facts.rate_bps));
    }

    #[tokio::test]
    async fn a_path_is_measured_anew_by_the_same_congestion_control() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for name in ["bbr", "reno"] {
            if let Err(sentence) = use_congestion_control(&listener, name) {
                eprintln!("SKIPPED: {sentence}");
                continue;
            }
            let _stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            measure_anew(&accepted);
            assert_eq!(congestion_control(SockRef::from(&accepted)), name);
        }
    }

    #[tokio::test]
    async fn a_congestion_control_is_inherited_and_an_unknown_one_refused_with_a_way_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        use_congestion_control(&listener, "reno").unwrap();
        let _stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert!(SockRef::from(&accepted).tcp_congestion().unwrap().starts_with(b"reno"));
        let sentence = use_congestion_control(&listener, "nonesuch").unwrap_err();
        assert!(sentence.contains("nonesuch") && sentence.contains("modprobe"), "{sentence}");
        let restarts = read_setting("tcp_slow_start_after_idle").unwrap() != "0";
        assert_eq!(slow_start_after_idle(&listener).is_some(), restarts, "reno is slowed down");
    }
}
