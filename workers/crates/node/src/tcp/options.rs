//! The options of a connection that a TCP profile or a circuit sets, and the way back to the kernel's own values.
//!
//! Congestion control: the name that the connection had before is set again. Pacing: the unlimited rate is set again.
//! Buffers: setting a size ends the kernel's automatic sizing of the socket, so the size from before is set again and
//! the lock on it removed (`SO_BUF_LOCK`, Linux 5.14). A kernel without that option gets no buffers from a profile: a
//! trial that can't be taken back is none.
use std::os::fd::AsFd;

use downburst_hub::Knobs;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{GetSockOpt, SetSockOpt, getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use socket2::SockRef;
use tokio::net::TcpStream;

use super::{congestion_control, set_congestion_control};

/// The options that are set on a connection.
#[derive(Debug, Default)]
pub(crate) struct Options {
    knobs: Knobs,
    circuit_bps: Option<u64>,
    /// The values from before the first change.
    congestion: Option<String>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
}

impl Options {
    /// Sets the options of a profile, and returns those that it no longer sets to the kernel's values. Each change is
    /// tried once; the error names all that the kernel refused, with the remedies.
    pub(crate) fn apply(&mut self, stream: &TcpStream, knobs: &Knobs) -> Result<(), String> {
        if self.knobs == *knobs {
            return Ok(());
        }
        let former = std::mem::replace(&mut self.knobs, knobs.clone());
        let mut steps = Vec::new();
        if former.congestion != knobs.congestion {
            steps.push(self.set_congestion(stream));
        }
        if former.send_buffer_bytes != knobs.send_buffer_bytes {
            let (wanted, before) = (knobs.send_buffer_bytes, &mut self.send_buffer);
            steps.push(resize(stream, (SndBuf, SndBufForce, &SEND), wanted, before));
        }
        if former.receive_buffer_bytes != knobs.receive_buffer_bytes {
            let (wanted, before) = (knobs.receive_buffer_bytes, &mut self.receive_buffer);
            steps.push(resize(stream, (RcvBuf, RcvBufForce, &RECEIVE), wanted, before));
        }
        if former.pacing_bps != knobs.pacing_bps {
            steps.push(self.pace(stream));
        }
        let refused: Vec<String> = steps.into_iter().filter_map(Result::err).collect();
        if refused.is_empty() { Ok(()) } else { Err(refused.join("; ")) }
    }

    /// Limits the connection to its part of a circuit's rate, in bits per second of what TCP sends; needs no
    /// privilege. The lesser of this and the profile's rate holds.
    pub(crate) fn pace_circuit(&mut self, stream: &TcpStream, rate_bps: u64) {
        self.circuit_bps = Some(rate_bps);
        if let Err(sentence) = self.pace(stream) {
            tracing::warn!("{sentence}; its circuit may get more than its rate");
        }
    }

    fn set_congestion(&mut self, stream: &TcpStream) -> Result<(), String> {
        let before = self.congestion.get_or_insert_with(|| congestion_control(SockRef::from(stream)));
        let name = self.knobs.congestion.as_ref().unwrap_or(before);
        set_congestion_control(&SockRef::from(stream), name)
    }

    fn pace(&self, stream: &TcpStream) -> Result<(), String> {
        let rate_bps = self.circuit_bps.into_iter().chain(self.knobs.pacing_bps).min();
        let bytes = rate_bps.map_or(UNPACED, |rate| usize::try_from(rate / 8).unwrap_or(UNPACED).max(1));
        setsockopt(stream, PacedRate, &bytes).map_err(|error| format!("a connection can't be paced: {error}"))
    }
}

/// The size of the send buffer, as an option would set it.
pub(super) fn send_buffer_bytes(stream: &TcpStream) -> u64 {
    getsockopt(stream, SndBuf).map_or(0, |doubled| doubled as u64 / 2)
}

/// One of a socket's two buffers.
struct Buffer {
    lock_bit: u32,
    /// The setting of the largest size.
    limit: &'static str,
}

/// Sets a buffer's size, or gives it back to automatic sizing.
fn resize<Size, Force>(
    stream: &TcpStream,
    (size, force, buffer): (Size, Force, &Buffer),
    wanted: Option<u64>,
    before: &mut Option<usize>,
) -> Result<(), String>
where
    Size: GetSockOpt<Val = usize> + SetSockOpt<Val = usize> + Copy,
    Force: SetSockOpt<Val = usize> + Copy,
{
    let locks = getsockopt(stream, Locks).map_err(|error| {
        format!(
            "this kernel can't return a socket's buffer to automatic sizing: {error}; take the buffers out of the \
             profile, or run Linux 5.14 or later"
        )
    })?;
    let failed = |error: nix::Error| format!("a socket's buffer can't be set: {error}");
    // The kernel reports twice the size that was set, to allow for its own records.
    let present = |stream: &TcpStream| getsockopt(stream, size).map(|doubled| doubled / 2).map_err(failed);
    let Some(wanted) = wanted else {
        let Some(former) = before.take() else { return Ok(()) };
        set(stream, (size, force), former).map_err(failed)?;
        return setsockopt(stream, Locks, &(locks & !buffer.lock_bit)).map_err(failed);
    };
    if before.is_none() {
        *before = Some(present(stream)?);
    }
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    set(stream, (size, force), wanted).map_err(failed)?;
    let granted = present(stream)?;
    if granted >= wanted {
        return Ok(());
    }
    let limit = buffer.limit;
    Err(format!(
        "the kernel grants {granted} of {wanted} bytes for a socket's buffer; run: sysctl -w {limit}={wanted}"
    ))
}

/// Beyond the system's limit where the node has the right (`CAP_NET_ADMIN`), else up to it.
fn set<Size, Force>(stream: &TcpStream, (size, force): (Size, Force), bytes: usize) -> nix::Result<()>
where
    Size: SetSockOpt<Val = usize>,
    Force: SetSockOpt<Val = usize>,
{
    let stream = stream.as_fd();
    setsockopt(&stream, force, &bytes).or_else(|_| setsockopt(&stream, size, &bytes))
}

sockopt_impl!(
    /// The maximum rate of a connection, in bytes a second. TCP paces itself by it under any queueing
    /// discipline (Linux 4.13 and later).
    PacedRate,
    Both,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    usize
);

sockopt_impl!(
    /// The buffers whose size was set, which the kernel no longer adapts (Linux 5.14 and later).
    Locks,
    Both,
    libc::SOL_SOCKET,
    SO_BUF_LOCK,
    u32
);

/// In `asm-generic/socket.h`; libc does not have it for all platforms.
const SO_BUF_LOCK: libc::c_int = 72;

/// `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK`.
const SEND: Buffer = Buffer { lock_bit: 1, limit: "net.core.wmem_max" };
const RECEIVE: Buffer = Buffer { lock_bit: 2, limit: "net.core.rmem_max" };

const UNPACED: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use downburst_hub::{SessionLook, TcpProfiles, check_profiles};
    use downburst_model::Micros;
    use downburst_session::StreamId;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;
    use crate::tcp::progress;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        (stream, accepted)
    }

    fn name(stream: &TcpStream) -> String {
        congestion_control(SockRef::from(stream))
    }

    #[tokio::test]
    async fn a_congestion_control_is_set_on_a_live_connection_and_given_back() {
        let (stream, _accepted) = pair().await;
        let (usual, mut options) = (name(&stream), Options::default());
        let other = if usual == "reno" { "bbr" } else { "reno" };
        let knobs = Knobs { congestion: Some(other.to_owned()), ..Knobs::default() };
        if let Err(sentence) = options.apply(&stream, &knobs) {
            return eprintln!("SKIPPED: {sentence}");
        }
        assert_eq!(name(&stream), other);
        options.apply(&stream, &Knobs::default()).unwrap();
        assert_eq!(name(&stream), usual);
        let unknown = Knobs { congestion: Some("nonesuch".to_owned()), ..Knobs::default() };
        let sentence = options.apply(&stream, &unknown).unwrap_err();
        assert!(sentence.contains("nonesuch") && sentence.contains("modprobe"), "{sentence}");
        assert_eq!((name(&stream), options.apply(&stream, &unknown)), (usual, Ok(())), "tried once");
    }

    #[tokio::test]
    async fn the_lesser_of_two_rates_holds_and_none_is_unlimited() {
        let (stream, _accepted) = pair().await;
        let (mut options, rate) =
            (Options::default(), |stream: &TcpStream| getsockopt(stream, PacedRate).unwrap());
        let knobs = |pacing_bps| Knobs { pacing_bps, ..Knobs::default() };
        options.apply(&stream, &knobs(Some(80_000))).unwrap();
        assert_eq!(rate(&stream), 10_000);
        options.pace_circuit(&stream, 40_000);
        assert_eq!(rate(&stream), 5_000);
        options.pace_circuit(&stream, 800_000);
        assert_eq!(rate(&stream), 10_000);
        options.apply(&stream, &knobs(None)).unwrap();
        assert_eq!(rate(&stream), 100_000, "the circuit's rate stays");
        let (free, _accepted) = pair().await;
        let mut options = Options::default();
        options.apply(&free, &knobs(Some(80_000))).unwrap();
        options.apply(&free, &knobs(None)).unwrap();
        assert_eq!(rate(&free), UNPACED);
    }

    #[tokio::test]
    async fn buffers_go_back_to_automatic_sizing() {
        let (stream, _accepted) = pair().await;
        let Ok(locks) = getsockopt(&stream, Locks) else {
            return eprintln!("SKIPPED: this kernel has no SO_BUF_LOCK");
        };
        let sizes =
            |stream: &TcpStream| (getsockopt(stream, SndBuf).unwrap(), getsockopt(stream, RcvBuf).unwrap());
        let (before, mut options) = (sizes(&stream), Options::default());
        let knobs =
            Knobs { send_buffer_bytes: Some(20_000), receive_buffer_bytes: Some(30_000), ..Knobs::default() };
        options.apply(&stream, &knobs).unwrap();
        assert_eq!((sizes(&stream), getsockopt(&stream, Locks)), ((40_000, 60_000), Ok(locks | 3)));
        options.apply(&stream, &Knobs { receive_buffer_bytes: None, ..knobs.clone() }).unwrap();
        assert_eq!(getsockopt(&stream, Locks), Ok(locks | 1));
        options.apply(&stream, &Knobs::default()).unwrap();
        assert_eq!(getsockopt(&stream, Locks), Ok(locks), "the kernel adapts them again");
        let (send, receive) = sizes(&stream);
        assert!(
            send <= before.0 && send > 40_000 && receive <= before.1 && receive > 60_000,
            "{send} {receive}"
        );
        let huge = Knobs { send_buffer_bytes: Some(1 << 30), ..Knobs::default() };
        if let Err(sentence) = options.apply(&stream, &huge) {
            assert!(sentence.contains("sysctl -w net.core.wmem_max=1073741824"), "{sentence}");
        }
    }

    /// The connections of a session, driven by the machine as the node drives it.
    struct Scene {
        profiles: TcpProfiles,
        connections: Vec<(TcpStream, Options)>,
        seconds: u64,
    }

    impl Scene {
        fn list(&mut self, list: Value) {
            let lines: Vec<_> = serde_json::from_value(list).unwrap();
            check_profiles(&lines).unwrap();
            self.profiles.replace(lines);
        }

        /// A look and its result, as the names of the congestion controls.
        fn look(&mut self) -> Vec<String> {
            self.seconds += 1;
            let numbered = (0..).map(StreamId).zip(&self.connections);
            let looks = numbered.map(|(stream, (socket, _))| progress(socket, stream, false).unwrap());
            let connections = looks.collect();
            let at = Micros::from_secs(self.seconds);
            let look = SessionLook { session: 1, at, waiting_bytes: 0, bound_bps: None, connections };
            let looked = self.profiles.look(&look);
            for (stream, (socket, options)) in (0..).map(StreamId).zip(&mut self.connections) {
                let setting = looked.settings.iter().find(|setting| setting.stream == stream);
                options.apply(socket, &setting.map(|it| it.knobs.clone()).unwrap_or_default()).unwrap();
            }
            self.connections.iter().map(|(socket, _)| name(socket)).collect()
        }
    }

    #[tokio::test]
    async fn a_static_profile_holds_for_the_connections_of_its_prefix_until_it_is_removed() {
        let mut ends = Vec::new();
        let mut scene = Scene { profiles: TcpProfiles::default(), connections: Vec::new(), seconds: 0 };
        for address in ["127.0.0.1:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else {
                return eprintln!("SKIPPED: this host has no IPv6");
            };
            ends.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            scene.connections.push((listener.accept().await.unwrap().0, Options::default()));
        }
        let before = scene.look();
        let knobs = json!({"congestion": "reno"});
        let profile =
            |prefix: &str| json!([{"name": "near", "prefix": prefix, "mode": "static", "knobs": knobs}]);
        scene.list(profile("192.0.2.0/24"));
        assert_eq!(scene.look(), before, "another prefix");
        scene.list(profile("127.0.0.0/8"));
        assert_eq!(scene.look(), ["reno", "reno"], "also the address that is written as IPv6");
        scene.list(json!([]));
        assert_eq!(scene.look(), before);
    }
}
