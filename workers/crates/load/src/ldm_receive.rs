//! LDM downstreams that keep nothing: what came to each, how fast, and how long each was left waiting.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use downburst_ldm6::{
    Downstream, DownstreamConfig, DownstreamEvent, DownstreamInput, DownstreamOutput, Interest, Mode,
    ProductSpec, Taken,
};
use downburst_model::{Machine as _, Micros, Now, WallMicros};
use serde::Serialize;

use crate::Outcome;

/// The server, and the amount to request from it.
#[derive(clap::Args)]
pub(crate) struct LdmReceive {
    /// HOST:PORT of the server.
    #[arg(long)]
    from: String,
    /// The feed type.
    #[arg(long)]
    feed: String,
    /// How many connections, each with a request of its own.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// How many products each has to get.
    #[arg(long)]
    products: usize,
}

/// The products of one connection.
#[derive(Serialize)]
struct Received {
    products: usize,
    bytes: u64,
    doubled: usize,
    /// When it was accepted, when the first product was whole, and the last.
    accepted_us: i64,
    first_us: i64,
    last_us: i64,
    /// The longest time from the creation of a product to its last byte here. This is a latency if products
    /// are created during the run.
    worst_age_us: i64,
    longest_gap_us: i64,
}

impl LdmReceive {
    /// Takes everything; prints `ready` when all were accepted, and a line of JSON at the end.
    pub(crate) fn run(&self) -> Outcome {
        let (ready, accepted) = std::sync::mpsc::channel();
        let receive = |_| {
            let (from, products, ready) = (self.from.clone(), self.products, ready.clone());
            let spec = ProductSpec::new(self.feed.parse()?, ".*")?;
            Ok(thread::spawn(move || {
                receive(&from, spec, products, &ready).map_err(|error| error.to_string())
            }))
        };
        let threads: Vec<_> = (0..self.connections).map(receive).collect::<Outcome<_>>()?;
        for _ in 0..self.connections {
            accepted.recv_timeout(PATIENCE)?;
        }
        println!("ready");
        let mut all = Vec::new();
        for thread in threads {
            all.push(thread.join().map_err(|_| "a connection's thread died")??);
        }
        println!("{}", serde_json::to_string(&all)?);
        Ok(())
    }
}

fn receive(
    from: &str,
    spec: ProductSpec,
    products: usize,
    ready: &std::sync::mpsc::Sender<()>,
) -> Outcome<Received> {
    let began = Instant::now();
    let now = || Now {
        monotonic: Micros(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)),
        wall: wall(),
    };
    let mut machine = Downstream::new(DownstreamConfig {
        upstream: "hub".to_owned(),
        specs: vec![spec],
        interest: Interest::Products,
        mode: Mode::Primary,
        resume: None,
        time_offset: Micros::from_secs(86_400),
        oldest: Micros(u64::MAX),
        largest_bytes: u32::MAX,
        silence: Micros::from_secs(90),
        first_xid: 1,
    })?;
    let mut stream = TcpStream::connect(from)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tally = Tally::default();
    let mut buffer = vec![0; READ_BYTES];
    while tally.seen.len() < products {
        while let Some(output) = machine.poll(now()) {
            match output {
                DownstreamOutput::Connect => machine.handle(now(), DownstreamInput::Connected),
                DownstreamOutput::Send(bytes) => stream.write_all(&bytes)?,
                DownstreamOutput::Close => return Err("the server ended the connection".into()),
                DownstreamOutput::Event(DownstreamEvent::Accepted { .. }) => {
                    tally.accepted = wall();
                    let _ = ready.send(());
                }
                DownstreamOutput::Event(DownstreamEvent::Taken(taken)) => {
                    if let Some(signature) = tally.take(taken) {
                        machine.handle(now(), DownstreamInput::Settled(signature));
                    }
                }
                DownstreamOutput::Event(event) => return Err(format!("the server: {event:?}").into()),
            }
        }
        let length = stream.read(&mut buffer)?;
        let read = buffer.get(..length).unwrap_or_default();
        machine.handle(now(), DownstreamInput::Received(Bytes::copy_from_slice(read)));
    }
    Ok(tally.received())
}

/// Counts what comes.
#[derive(Default)]
struct Tally {
    begun: Option<downburst_ldm6::ProductInfo>,
    seen: BTreeSet<[u8; 16]>,
    doubled: usize,
    bytes: u64,
    accepted: WallMicros,
    first: Option<WallMicros>,
    last: WallMicros,
    worst_age_us: i64,
    longest_gap_us: i64,
}

impl Tally {
    fn take(&mut self, taken: Taken) -> Option<downburst_ldm6::Signature> {
        match taken {
            Taken::Begins(info) => self.begun = Some(info),
            Taken::Bytes(bytes) => self.bytes += bytes.len() as u64,
            Taken::Ends => {
                let info = self.begun.take()?;
                let at = wall();
                self.doubled += usize::from(!self.seen.insert(info.signature.0));
                if self.first.is_some() {
                    self.longest_gap_us = self.longest_gap_us.max(at.0 - self.last.0);
                }
                self.first.get_or_insert(at);
                self.last = at;
                self.worst_age_us = self.worst_age_us.max(at.0 - WallMicros::from(info.arrival).0);
                return Some(info.signature);
            }
            _ => {}
        }
        None
    }

    fn received(self) -> Received {
        Received {
            products: self.seen.len(),
            bytes: self.bytes,
            doubled: self.doubled,
            accepted_us: self.accepted.0,
            first_us: self.first.unwrap_or_default().0,
            last_us: self.last.0,
            worst_age_us: self.worst_age_us,
            longest_gap_us: self.longest_gap_us,
        }
    }
}

fn wall() -> WallMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallMicros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

const READ_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(60);
