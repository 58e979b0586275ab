//! A downstream and an upstream that exchange messages in virtual time.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use downburst_ldm6::*;
use downburst_model::{Machine, Micros, Now, Pattern, WallMicros};

/// The wall clock at monotonic zero: an hour after the start time of the golden request.
pub const START_WALL_US: i64 = (0x6b01_190d_i64 + 3_600) * 1_000_000 + 0xe_eca4;

pub fn at(seconds: f64) -> Now {
    at_micros(Micros((seconds * 1e6) as u64))
}

pub fn at_micros(monotonic: Micros) -> Now {
    Now { monotonic, wall: WallMicros(START_WALL_US + monotonic.0 as i64) }
}

pub fn spec(feeds: &str, pattern: &str) -> ProductSpec {
    ProductSpec::new(feeds.parse().unwrap(), pattern).unwrap()
}

pub fn downstream_config(specs: Vec<ProductSpec>) -> DownstreamConfig {
    DownstreamConfig {
        upstream: "up.example.org".to_owned(),
        specs,
        interest: Interest::Products,
        mode: Mode::Primary,
        resume: None,
        time_offset: Micros::from_secs(3_600),
        oldest: Micros::from_secs(7_200),
        largest_bytes: 10_000_000,
        silence: Micros::from_secs(90),
        first_xid: 0x11,
    }
}

pub fn access(feeds: &str, not: Option<&str>) -> Arc<Access> {
    let pattern = |text: &str| Pattern::parse(text).unwrap();
    let (feeds, not): (FeedType, _) = (feeds.parse().unwrap(), not.map(pattern));
    let allow = vec![Allow { site: 0, feeds, host: pattern(r"^192\.0\.2\."), ok: None, not }];
    let accept = vec![Accept { feeds, pattern: pattern("^rtstats|^s/"), host: pattern(".*") }];
    Arc::new(Access { allow, accept })
}

pub fn upstream_config(access: Arc<Access>) -> UpstreamConfig {
    UpstreamConfig {
        peer: vec!["down.example.org".to_owned(), "192.0.2.7".to_owned()],
        access,
        id: 0x1234,
        max_hereis: u32::MAX,
        oldest: Micros::from_secs(7_200),
        largest_bytes: 10_000_000,
        silence: Micros::from_secs(90),
        first_xid: 0x21,
    }
}

/// The product of the golden messages, with another number and size.
pub fn product(number: u32, size: u32) -> (ProductInfo, Bytes) {
    let info = ProductInfo {
        arrival: Timestamp { seconds: 0x6b01_190d, micros: 0xe_eca4 },
        signature: Signature([number as u8 ^ 0xa5; 16]),
        origin: LdmOrigin::new("ldm-up.test.org").unwrap(),
        feed: "EXP".parse().unwrap(),
        sequence: number,
        ident: Ident::new(format!("s/{number:05}")).unwrap(),
        size,
    };
    (info, (0..size).map(|at| (at % 251) as u8).collect())
}

/// An upstream with its queue and a record of its actions.
pub struct Server {
    pub machine: Upstream,
    pub queue: VecDeque<(ProductInfo, Bytes)>,
    pub events: Vec<UpstreamEvent>,
    pub said: Vec<u8>,
    pub is_closed: bool,
    current: Bytes,
    /// Bytes of a product per input.
    pub slice: usize,
}

impl Server {
    pub fn new(now: Now, config: UpstreamConfig, queue: Vec<(ProductInfo, Bytes)>) -> Self {
        let machine = Upstream::new(now, config);
        let (events, said) = (Vec::new(), Vec::new());
        Self {
            machine,
            queue: queue.into(),
            events,
            said,
            is_closed: false,
            current: Bytes::new(),
            slice: 700,
        }
    }

    pub fn hear(&mut self, now: Now, bytes: &[u8]) {
        self.machine.handle(now, UpstreamInput::Received(Bytes::copy_from_slice(bytes)));
        self.poll(now);
    }

    pub fn poll(&mut self, now: Now) {
        while let Some(output) = self.machine.poll(now) {
            match output {
                UpstreamOutput::Send(bytes) => self.said.extend_from_slice(&bytes),
                UpstreamOutput::Want(want) => self.give(now, want),
                UpstreamOutput::Close => self.is_closed = true,
                UpstreamOutput::Event(event) => {
                    if let UpstreamEvent::AskedAlive(id) = event {
                        self.machine.handle(now, UpstreamInput::Alive(id == 0x1234));
                    }
                    if let UpstreamEvent::Taken(Taken::Offered(_)) = event {
                        self.machine.handle(now, UpstreamInput::Decided(true));
                    }
                    self.events.push(event);
                }
            }
        }
    }

    fn give(&mut self, now: Now, want: Want) {
        let input = match want {
            Want::Product => match self.queue.pop_front() {
                None => UpstreamInput::NoProduct,
                Some((info, bytes)) => {
                    self.current = bytes;
                    UpstreamInput::Product(info)
                }
            },
            Want::Bytes(at_most) => {
                let bytes = self.current.len().min(at_most as usize).min(self.slice);
                UpstreamInput::Bytes(self.current.split_to(bytes))
            }
        };
        self.machine.handle(now, input);
    }

    pub fn take_said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said)
    }
}

/// A downstream and the products that it received.
pub struct Client {
    pub machine: Downstream,
    pub events: Vec<DownstreamEvent>,
    pub products: Vec<(ProductInfo, Vec<u8>)>,
    pub said: Vec<u8>,
    pub connects: usize,
    pub is_closed: bool,
    /// True if the offered product with this number is wanted.
    pub wants: fn(u32) -> bool,
    begun: Option<(ProductInfo, Vec<u8>)>,
}

impl Client {
    pub fn new(config: DownstreamConfig) -> Self {
        Self {
            machine: Downstream::new(config).unwrap(),
            events: Vec::new(),
            products: Vec::new(),
            said: Vec::new(),
            connects: 0,
            is_closed: false,
            wants: |_| true,
            begun: None,
        }
    }

    /// Establishes the first connection.
    pub fn connect(&mut self, now: Now) -> Vec<u8> {
        self.poll(now);
        self.handle(now, DownstreamInput::Connected);
        self.take_said()
    }

    pub fn hear(&mut self, now: Now, bytes: &[u8]) {
        self.handle(now, DownstreamInput::Received(Bytes::copy_from_slice(bytes)));
    }

    pub fn handle(&mut self, now: Now, input: DownstreamInput) {
        self.machine.handle(now, input);
        self.poll(now);
    }

    pub fn poll(&mut self, now: Now) {
        while let Some(output) = self.machine.poll(now) {
            match output {
                DownstreamOutput::Connect => self.connects += 1,
                DownstreamOutput::Send(bytes) => self.said.extend_from_slice(&bytes),
                DownstreamOutput::Close => self.is_closed = true,
                DownstreamOutput::Event(event) => self.happened(now, event),
            }
        }
    }

    fn happened(&mut self, now: Now, event: DownstreamEvent) {
        if let DownstreamEvent::Taken(taken) = &event {
            match taken {
                Taken::Offered(info) => {
                    let wanted = (self.wants)(info.sequence);
                    self.machine.handle(now, DownstreamInput::Decided(wanted));
                }
                Taken::Begins(info) => self.begun = Some((info.clone(), Vec::new())),
                Taken::Bytes(bytes) => self.begun.as_mut().unwrap().1.extend_from_slice(bytes),
                Taken::Ends => {
                    let whole = self.begun.take().unwrap();
                    self.machine.handle(now, DownstreamInput::Settled(whole.0.signature));
                    self.products.push(whole);
                }
                Taken::Broken => assert!(self.begun.take().is_some(), "nothing was begun"),
                Taken::Dropped(..) | Taken::Notified(_) => {}
            }
        }
        self.events.push(event);
    }

    pub fn take_said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said)
    }
}

/// Exchanges the output of both machines, in parts of `split` bytes, until neither has any more.
pub fn talk(now: Now, client: &mut Client, server: &mut Server, split: usize) {
    client.poll(now);
    server.poll(now);
    loop {
        let (up, down) = (client.take_said(), server.take_said());
        if up.is_empty() && down.is_empty() {
            return;
        }
        up.chunks(split).for_each(|part| server.hear(now, part));
        down.chunks(split).for_each(|part| client.hear(now, part));
    }
}
