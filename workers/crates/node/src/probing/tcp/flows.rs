//! Greedy flows beside each other, at one end.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use downburst_model::Micros;
use downburst_probe::{Flow, FlowFigures, Key, LARGEST_TAKE_BYTES, Purpose, TokenBucket, payload_bps};
use socket2::SockRef;
use tokio::sync::oneshot;

use super::entrance::connect;
use crate::clock::Clock;
use crate::probing::{PATIENCE, is_quiet};
use crate::tcp::flow_facts;

/// This end of a trial that runs, a thread for each flow; it ends when this is dropped.
pub(crate) struct Flows {
    is_over: Arc<AtomicBool>,
    results: Vec<oneshot::Receiver<FlowFigures>>,
}

/// The time of a trial, and the limit of the flows that this end sends.
struct Run {
    clock: Clock,
    begin: Micros,
    end: Micros,
    bucket: Mutex<TokenBucket>,
    is_over: Arc<AtomicBool>,
}

/// Opens the site's connections of a trial, in the order of its flows.
///
/// # Errors
/// A congestion control is not available, or the node is not reached; one sentence without its place.
pub(crate) fn open_flows(
    node: SocketAddr,
    key: &Key,
    trial: u16,
    flows: &[Flow],
) -> Result<Vec<TcpStream>, String> {
    let open = |(flow, Flow { control, from_site }): (u8, &Flow)| {
        connect(node, key, Purpose::Flow { trial, flow }, from_site.then_some(*control))
    };
    (0..).zip(flows).map(open).collect()
}

impl Flows {
    /// Begins. `streams`: with whether this end sends; `rate_bps`: of all frames that it sends.
    pub(crate) fn begin(
        streams: Vec<(TcpStream, bool)>,
        rate_bps: u64,
        length: Micros,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let begin = clock.monotonic();
        let bucket = Mutex::new(TokenBucket::new(begin, payload_rate(&streams, rate_bps)));
        let is_over = Arc::new(AtomicBool::new(false));
        let run =
            Arc::new(Run { clock, begin, end: begin.plus(length), bucket, is_over: Arc::clone(&is_over) });
        let start = |(stream, sends)| {
            let (tell, result) = oneshot::channel();
            let run = Arc::clone(&run);
            let thread = std::thread::Builder::new().name("probe-flow".to_owned());
            thread.spawn(move || {
                let figures = if sends { run.send(&stream) } else { run.receive(&stream) };
                // The bytes that are left would delay the next trial.
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                let _ = tell.send(figures);
            })?;
            Ok(result)
        };
        let results: std::io::Result<Vec<_>> = streams.into_iter().map(start).collect();
        Ok(Self { is_over, results: results? })
    }

    /// Waits for the end; the figures are in the order of the flows. Cancelling the wait ends nothing.
    pub(crate) async fn ended(&mut self) -> Vec<FlowFigures> {
        let mut all = Vec::new();
        for result in &mut self.results {
            all.push(result.await.unwrap_or_default());
        }
        all
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Run {
    fn send(&self, mut stream: &TcpStream) -> FlowFigures {
        let bytes = vec![0x5a; LARGEST_TAKE_BYTES as usize];
        let (mut held, mut round_trips) = (Micros(0), RoundTrips::default());
        while let Some(now) = self.goes_on() {
            round_trips.look(now, stream);
            let taken = self.bucket().take(now, bytes.len() as u64);
            if let Err(wait) = taken {
                std::thread::sleep(Duration::from_micros(wait.min(LONGEST_HOLD).0));
                // While the kernel still has bytes to send, the path is the bottleneck.
                if flow_facts(stream).is_none_or(|facts| facts.unsent_bytes == 0) {
                    held = held.plus(self.clock.monotonic().since(now));
                }
                continue;
            }
            let written = match stream.write(&bytes) {
                Ok(written) => written,
                Err(error) if is_quiet(&error) => 0,
                Err(_) => break,
            };
            self.bucket().give_back(bytes.len().saturating_sub(written) as u64);
        }
        let facts = flow_facts(stream);
        FlowFigures {
            received_bytes: 0,
            elapsed_us: self.clock.monotonic().since(self.begin).0,
            retransmits: facts.map(|facts| facts.retransmits),
            least_round_trip_us: facts.and_then(|facts| facts.least_round_trip_us),
            mean_round_trip_us: round_trips.mean_us(),
            held_us: held.0,
        }
    }

    fn receive(&self, mut stream: &TcpStream) -> FlowFigures {
        let mut buffer = vec![0; READ_BYTES];
        let (mut received_bytes, mut seen) = (0_u64, self.begin);
        while let Some(now) = self.goes_on() {
            seen = now;
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => received_bytes = received_bytes.saturating_add(length as u64),
                Err(error) if is_quiet(&error) => {}
                Err(_) => break,
            }
        }
        // A flow that broke has carried nothing for the rest of the time.
        let end = if self.is_over.load(Ordering::Relaxed) { seen } else { self.end };
        FlowFigures { received_bytes, elapsed_us: end.since(self.begin).0, ..FlowFigures::default() }
    }

    /// The time, until the end.
    fn goes_on(&self) -> Option<Micros> {
        let now = self.clock.monotonic();
        (now < self.end && !self.is_over.load(Ordering::Relaxed)).then_some(now)
    }

    fn bucket(&self) -> std::sync::MutexGuard<'_, TokenBucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The smoothed round trips of a flow, looked at now and then.
#[derive(Default)]
struct RoundTrips {
    sum_us: u64,
    looks: u64,
    due: Micros,
}

impl RoundTrips {
    fn look(&mut self, now: Micros, stream: &TcpStream) {
        if now < self.due {
            return;
        }
        self.due = now.plus(LOOK_INTERVAL);
        if let Some(facts) = flow_facts(stream) {
            self.sum_us = self.sum_us.saturating_add(facts.round_trip_us);
            self.looks += 1;
        }
    }

    fn mean_us(&self) -> Option<u64> {
        self.sum_us.checked_div(self.looks)
    }
}

/// The payload of the asked rate of frames, by the segments of a flow that this end sends.
fn payload_rate(streams: &[(TcpStream, bool)], rate_bps: u64) -> u64 {
    let sender = streams.iter().find(|(_, sends)| *sends);
    let segment_bytes = sender.and_then(|(stream, _)| flow_facts(stream)).map_or(0, |it| it.segment_bytes);
    let peer = sender.and_then(|(stream, _)| stream.peer_addr().ok());
    let is_ipv6 = peer.is_some_and(|peer| peer.ip().to_canonical().is_ipv6());
    payload_bps(rate_bps, segment_bytes.max(SMALLEST_SEGMENT_BYTES), is_ipv6)
}

const SMALLEST_SEGMENT_BYTES: u64 = 500;
const LONGEST_HOLD: Micros = Micros(PATIENCE.as_micros() as u64);
const LOOK_INTERVAL: Micros = Micros::from_millis(100);
const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use downburst_probe::{Control, Trial};

    use super::super::{Far, Gathering};
    use super::*;

    const KEY: Key = Key([6; 32]);
    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const LENGTH: Micros = Micros::from_millis(400);

    fn flow(name: &str, from_site: bool) -> Flow {
        Flow { control: Control::parse(name).unwrap(), from_site }
    }

    async fn ran(flows: &[Flow], rate_bps: u64) -> Vec<FlowFigures> {
        let clock = Clock::start(0);
        let node = Gathering::listen(Far { at: HOME, site: HOME, key: KEY }).unwrap();
        node.expect(3, flows.len());
        let at = SocketAddr::new(HOME, node.number());
        let at_site = open_flows(at, &KEY, 3, flows).unwrap();
        let at_node = node.all().await;
        let begin = |streams: Vec<TcpStream>, is_site: bool| {
            let streams = streams.into_iter().zip(flows).map(|(it, flow)| (it, flow.from_site == is_site));
            Flows::begin(streams.collect(), rate_bps, LENGTH, clock).unwrap()
        };
        let (mut node, mut site) = (begin(at_node, false), begin(at_site, true));
        let (node, site) = (node.ended().await, site.ended().await);
        let ends = flows.iter().zip(node.into_iter().zip(site));
        let merged = ends.map(|(flow, (node, site))| match flow.from_site {
            true => FlowFigures::merged(site, node),
            false => FlowFigures::merged(node, site),
        });
        merged.collect()
    }

    #[tokio::test]
    async fn flows_of_a_direction_share_the_limit_and_those_of_the_other_have_their_own() {
        let figures = ran(&[flow("reno", false), flow("reno", false), flow("reno", true)], 40_000_000).await;
        let rates: Vec<u64> = figures.iter().map(FlowFigures::goodput_bps).collect();
        println!("{rates:?} {figures:?}");
        assert!(rates[0] + rates[1] <= 44_000_000 && rates[2] <= 44_000_000, "{rates:?}");
        assert!(rates.iter().all(|rate| *rate > 0) && figures.iter().all(|it| it.retransmits.is_some()));
        let trial = Trial { flows: figures.into_iter().map(|it| (it, false)).collect() };
        assert!(trial.is_limited(), "loopback is faster");
    }

    #[tokio::test]
    async fn flows_of_another_trial_are_not_expected() {
        let node = Gathering::listen(Far { at: HOME, site: HOME, key: KEY }).unwrap();
        node.expect(4, 1);
        let at = SocketAddr::new(HOME, node.number());
        let _others = open_flows(at, &KEY, 3, &[flow("reno", true)]).unwrap();
        let _beyond = open_flows(at, &KEY, 4, &[flow("reno", true); 2]).unwrap();
        let all = tokio::time::timeout(Duration::from_secs(5), node.all()).await.unwrap();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let refused = open_flows(SocketAddr::new(HOME, 9), &KEY, 0, &[flow("nonesuch", true)]);
        assert!(refused.unwrap_err().contains("nonesuch is not available"));
    }
}
