//! `ldm notify`: what a server gets, as `notifyme`.
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use downburst_ldm6::{
    Downstream, DownstreamConfig, DownstreamEvent, DownstreamInput, DownstreamOutput, Ending, Interest, Mode,
    ProductInfo, ProductSpec, Taken,
};
use downburst_model::{Machine as _, Micros, WallMicros};

use super::wire::{self, Came};
use super::{NotifyArguments, Outcome, Stop};
use crate::clock::Clock;
use crate::log_tools::moment;

pub(super) fn run(arguments: &NotifyArguments) -> Outcome {
    let mut watch = Watch::new(arguments)?;
    while !watch.is_over() {
        while let Some(output) = watch.machine.poll(watch.clock.now()) {
            watch.carry_out(output)?;
        }
        if !watch.is_over() {
            watch.wait();
        }
    }
    Ok(())
}

struct Watch<'a> {
    arguments: &'a NotifyArguments,
    clock: Clock,
    machine: Downstream,
    stream: Option<TcpStream>,
    was_accepted: bool,
    shown: u64,
}

impl<'a> Watch<'a> {
    fn new(arguments: &'a NotifyArguments) -> Result<Self, Stop> {
        let machine = Downstream::new(DownstreamConfig {
            upstream: wire::host(&arguments.server).to_owned(),
            specs: vec![ProductSpec::new(arguments.feed, &arguments.pattern)?],
            interest: Interest::Descriptions,
            mode: Mode::Primary,
            resume: None,
            time_offset: Micros::from_secs(u64::from(arguments.since)),
            oldest: Micros(u64::MAX),
            largest_bytes: u32::MAX,
            silence: SILENCE,
            first_xid: 1,
        })?;
        Ok(Self { arguments, clock: Clock::start(0), machine, stream: None, was_accepted: false, shown: 0 })
    }

    fn is_over(&self) -> bool {
        self.arguments.count.is_some_and(|count| self.shown >= count)
    }

    fn carry_out(&mut self, output: DownstreamOutput) -> Outcome {
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

    /// A server that was never reached is told at once; one that was is tried again.
    fn connect(&mut self) -> Outcome {
        match wire::connect(&self.arguments.server, CONNECT_WITHIN) {
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

    fn happened(&mut self, event: DownstreamEvent) -> Outcome {
        let server = &self.arguments.server;
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
            DownstreamEvent::Taken(Taken::Notified(info)) => self.show(&info)?,
            DownstreamEvent::Taken(_) => {}
        }
        Ok(())
    }

    fn show(&mut self, info: &ProductInfo) -> Outcome {
        if self.is_over() {
            return Ok(());
        }
        self.shown = self.shown.saturating_add(1);
        let mut out = io::stdout().lock();
        let arrival = WallMicros::from(info.arrival);
        if self.arguments.json {
            writeln!(out, "{}", as_json(info, arrival))?;
        } else {
            let (time, made) = (moment::log_time(self.clock.wall()), moment::creation_time(arrival));
            let ProductInfo { size, feed, sequence, ident, .. } = info;
            writeln!(out, "{time} {size:>8} {made} {feed:>7} {sequence:03}  {ident}")?;
        }
        Ok(out.flush()?)
    }
}

fn as_json(info: &ProductInfo, arrival: WallMicros) -> serde_json::Value {
    serde_json::json!({
        "feed": info.feed.to_string(),
        "id": info.ident.to_string(),
        "size": info.size,
        "created_us": arrival.0,
        "origin": info.origin.to_string(),
        "sequence": info.sequence,
        "signature": info.signature.to_string(),
    })
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Three heartbeats of an LDM.
const SILENCE: Micros = Micros::from_secs(90);
