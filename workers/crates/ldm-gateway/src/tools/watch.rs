//! A request to an LDM server over TCP, for single-threaded tools, which take its events one by one.
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use downburst_clock::Clock;
use downburst_ldm6::{
    Downstream, DownstreamConfig, DownstreamEvent, DownstreamInput, DownstreamOutput, Ending, FeedType,
    Interest, Mode, ProductSpec, Signature, Taken,
};
use downburst_model::{Machine as _, Micros, WallMicros};

use super::super::address;
use super::Stop;
use super::wire::{self, Came};

/// The request of a tool.
pub(super) struct Wish<'a> {
    pub(super) server: &'a str,
    pub(super) feed: FeedType,
    pub(super) pattern: &'a str,
    pub(super) interest: Interest,
    /// Start after this product, if the server knows it.
    pub(super) resume: Option<Signature>,
    /// Otherwise start with products created this long ago.
    pub(super) since: Micros,
}

pub(super) struct Watch {
    server: String,
    clock: Clock,
    machine: Downstream,
    stream: Option<TcpStream>,
    was_accepted: bool,
}

impl Watch {
    pub(super) fn new(wish: &Wish<'_>) -> Result<Self, Stop> {
        let machine = Downstream::new(DownstreamConfig {
            upstream: address::host(wish.server).to_owned(),
            specs: vec![ProductSpec::new(wish.feed, wish.pattern)?],
            interest: wish.interest,
            mode: Mode::Primary,
            resume: wish.resume,
            time_offset: wish.since,
            oldest: Micros(u64::MAX),
            largest_bytes: u32::MAX,
            silence: SILENCE,
            first_xid: 1,
        })?;
        let server = wish.server.to_owned();
        Ok(Self { server, clock: Clock::start(0), machine, stream: None, was_accepted: false })
    }

    /// Waits for the next event. A lost connection is made again.
    pub(super) fn next(&mut self) -> Result<Taken, Stop> {
        loop {
            match self.machine.poll(self.clock.now()) {
                Some(DownstreamOutput::Event(DownstreamEvent::Taken(taken))) => return Ok(taken),
                Some(output) => self.carry_out(output)?,
                None => self.wait(),
            }
        }
    }

    /// Reports to the machine that the product is stored.
    pub(super) fn settled(&mut self, signature: Signature) {
        self.machine.handle(self.clock.now(), DownstreamInput::Settled(signature));
    }

    /// Accepts or declines the offered product.
    pub(super) fn decided(&mut self, wanted: bool) {
        self.machine.handle(self.clock.now(), DownstreamInput::Decided(wanted));
    }

    /// The wall clock.
    pub(super) fn wall(&self) -> WallMicros {
        self.clock.wall()
    }

    fn carry_out(&mut self, output: DownstreamOutput) -> Result<(), Stop> {
        match output {
            DownstreamOutput::Connect => self.connect()?,
            DownstreamOutput::Send(bytes) => {
                if !self.stream.as_mut().is_some_and(|stream| wire::send(stream, &bytes)) {
                    self.gone();
                }
            }
            DownstreamOutput::Close => self.stream = None,
            DownstreamOutput::Event(event) => self.happened(event)?,
        }
        Ok(())
    }

    /// Connects. Before the first accepted request a failure ends the tool; later, the machine tries again.
    fn connect(&mut self) -> Result<(), Stop> {
        match wire::connect(&self.server, CONNECT_WITHIN) {
            Ok(stream) => {
                self.stream = Some(stream);
                self.machine.handle(self.clock.now(), DownstreamInput::Connected);
            }
            Err(_) if self.was_accepted => self.gone(),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    fn gone(&mut self) {
        self.stream = None;
        self.machine.handle(self.clock.now(), DownstreamInput::Disconnected);
    }

    fn wait(&mut self) {
        let (now, deadline) = (self.clock.now(), self.machine.deadline());
        let Some(stream) = &mut self.stream else {
            thread::sleep(wire::pause(now, deadline));
            return;
        };
        match wire::wait(stream, now, deadline) {
            Came::Bytes(bytes) => self.machine.handle(self.clock.now(), DownstreamInput::Received(bytes)),
            Came::End => self.gone(),
            Came::Nothing => {}
        }
    }

    fn happened(&mut self, event: DownstreamEvent) -> Result<(), Stop> {
        let server = &self.server;
        match event {
            DownstreamEvent::Accepted { .. } => self.was_accepted = true,
            DownstreamEvent::Reduced(specs) => {
                let feeds: Vec<String> = specs.iter().map(|spec| spec.feeds.to_string()).collect();
                eprintln!("downburst-node: {server} allows this host {}", feeds.join(", "));
            }
            DownstreamEvent::Refused(refusal) => return Err(Stop::Refused(format!("{server}: {refusal}"))),
            DownstreamEvent::Lost { why: Ending::OlderVersion, .. } => {}
            DownstreamEvent::Lost { why, .. } if !self.was_accepted => {
                return Err(Stop::Failed(format!("{server}: {why}")));
            }
            DownstreamEvent::Lost { why, .. } => {
                eprintln!("downburst-node: {server}: {why}; connecting again");
            }
            DownstreamEvent::Taken(_) => {}
        }
        Ok(())
    }
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Three heartbeats of an LDM.
const SILENCE: Micros = Micros::from_secs(90);
