//! One request to one upstream LDM, across connections.
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use downburst_ldm6::{
    AutoShift, Downstream, DownstreamConfig, DownstreamEvent, DownstreamInput, DownstreamOutput, Ending,
    Interest, Mode, ProductSpec, Taken,
};
use downburst_model::{Machine as _, Micros, file_names};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::resume_point::ResumePoint;
use super::status::UpstreamStatus;
use crate::complaints::Offender;
use crate::config::LdmSourceLine;
use crate::context::Context;
use crate::hub::{Event, word};
use crate::intake::{Intake, Settled};
use crate::{address, lock};

/// The parts of a request.
pub(super) struct Parts {
    pub(super) context: Context,
    pub(super) line: LdmSourceLine,
    /// Index of the upstream in the source's list.
    pub(super) at: usize,
    pub(super) shift: Arc<Mutex<AutoShift>>,
    pub(super) link: Arc<UpstreamStatus>,
    pub(super) stop: watch::Receiver<bool>,
}

pub(super) struct Request {
    context: Context,
    source: String,
    upstream: String,
    at: usize,
    machine: Downstream,
    mode: Mode,
    stream: Option<TcpStream>,
    /// The reason of a failed connection, for the report of the loss.
    unreachable: Option<String>,
    buffer: BytesMut,
    intake: Intake,
    resume_point: ResumePoint,
    shift: Arc<Mutex<AutoShift>>,
    link: Arc<UpstreamStatus>,
    stop: watch::Receiver<bool>,
}

impl Request {
    pub(super) fn new(parts: Parts) -> Result<Self, String> {
        let Parts { context, line, at, shift, link, stop } = parts;
        let upstream = line.upstreams.get(at).cloned().unwrap_or_default();
        let feeds = line.feeds.parse().map_err(|error| format!("{error}"))?;
        let spec = ProductSpec::new(feeds, &line.pattern).map_err(|error| error.to_string())?;
        let directory =
            context.hub.data_dir().join("ldm").join("places").join(file_names::encode(&line.source));
        let resume_point = ResumePoint::open(directory, &upstream, format!("{feeds} {}", line.pattern));
        let mode = lock(&shift).mode(at);
        let machine = Downstream::new(DownstreamConfig {
            upstream: address::host(&upstream).trim_matches(['[', ']']).to_owned(),
            specs: vec![spec],
            interest: Interest::Products,
            mode,
            resume: resume_point.signature(),
            time_offset: line.max_age(),
            oldest: line.max_age(),
            largest_bytes: u32::MAX,
            silence: SILENCE,
            first_xid: 1,
        })
        .map_err(|error| error.to_string())?;
        let intake = Intake::new(&context, &upstream, feeds, Arc::clone(&link.counts));
        let (source, buffer) = (line.source, BytesMut::new());
        Ok(Self {
            context,
            source,
            upstream,
            at,
            machine,
            mode,
            stream: None,
            unreachable: None,
            buffer,
            intake,
            resume_point,
            shift,
            link,
            stop,
        })
    }

    /// Requests and receives products until stopped; then stores the complete ones before it ends.
    pub(super) async fn run(mut self) {
        while !*self.stop.borrow() {
            self.turn_with_the_others();
            while let Some(output) = self.machine.poll(self.context.clock.now()) {
                self.carry_out(output).await;
            }
            self.wait().await;
        }
        self.intake.forget();
        let last = async {
            while !self.intake.is_empty() {
                let settled = self.intake.settled().await;
                self.settled(settled);
            }
        };
        let _ = tokio::time::timeout(STOP_PATIENCE, last).await;
        self.resume_point.keep(self.context.clock.monotonic());
        self.link.is_away("the source was removed");
    }

    /// Applies the mode of this upstream. The decision is common to all upstreams of a source: the primary sends
    /// products without an offer, alternates offer them first.
    fn turn_with_the_others(&mut self) {
        let now = self.context.clock.now();
        let mode = {
            let mut shift = lock(&self.shift);
            if now.monotonic >= shift.deadline() {
                shift.turn(now.monotonic);
            }
            shift.mode(self.at)
        };
        if std::mem::replace(&mut self.mode, mode) != mode {
            self.machine.handle(now, DownstreamInput::Shift(mode));
        }
    }

    async fn wait(&mut self) {
        let deadline = [self.machine.deadline(), self.resume_point.due(), Some(lock(&self.shift).deadline())];
        let until = deadline.into_iter().flatten().min().unwrap_or_default();
        let left = Duration::from_micros(until.since(self.context.clock.monotonic()).0);
        let can_read = !self.intake.is_full();
        tokio::select! {
            settled = self.intake.settled() => self.settled(settled),
            came = read(&mut self.stream, &mut self.buffer), if can_read => self.came(came),
            () = tokio::time::sleep(left.max(SHORTEST_PAUSE)) => {
                let now = self.context.clock.monotonic();
                if self.resume_point.due().is_some_and(|due| now >= due) {
                    self.resume_point.keep(now);
                }
            }
            () = told(&mut self.stop) => {}
        }
    }

    fn came(&mut self, came: io::Result<Bytes>) {
        let now = self.context.clock.now();
        match came {
            Ok(bytes) if !bytes.is_empty() => self.machine.handle(now, DownstreamInput::Received(bytes)),
            _ => self.gone(),
        }
    }

    fn gone(&mut self) {
        self.stream = None;
        self.machine.handle(self.context.clock.now(), DownstreamInput::Disconnected);
    }

    fn settled(&mut self, settled: Settled) {
        let now = self.context.clock.now();
        let signature = match settled {
            Settled::First(signature) => {
                lock(&self.shift).count(self.at, true);
                signature
            }
            Settled::Again(signature) => {
                lock(&self.shift).count(self.at, false);
                signature
            }
            Settled::Nothing(signature) => signature,
            Settled::Unstored => return self.machine.handle(now, DownstreamInput::Unstored),
        };
        self.machine.handle(now, DownstreamInput::Settled(signature));
        self.resume_point.is_behind(now.monotonic, signature);
    }

    async fn carry_out(&mut self, output: DownstreamOutput) {
        match output {
            DownstreamOutput::Connect => self.connect().await,
            DownstreamOutput::Send(bytes) => self.send(&bytes).await,
            DownstreamOutput::Close => self.stream = None,
            DownstreamOutput::Event(event) => self.happened(event),
        }
    }

    async fn connect(&mut self) {
        let connected = tokio::select! {
            connected = tokio::time::timeout(CONNECT_WITHIN, address::connect(&self.upstream)) => connected,
            () = told(&mut self.stop) => return,
        };
        match connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))) {
            Ok(stream) => {
                self.buffer.clear();
                self.stream = Some(stream);
                self.machine.handle(self.context.clock.now(), DownstreamInput::Connected);
            }
            Err(error) => {
                let reason = format!("{} can't be reached: {error}; is LDM running there?", self.upstream);
                self.unreachable = Some(reason);
                self.gone();
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        let Some(stream) = &mut self.stream else { return };
        let sent = tokio::time::timeout(SEND_WITHIN, stream.write_all(bytes)).await;
        if !matches!(sent, Ok(Ok(()))) {
            self.gone();
        }
    }

    fn happened(&mut self, event: DownstreamEvent) {
        let Self { source, upstream, .. } = self;
        match event {
            DownstreamEvent::Accepted { mode, version, id } => {
                let mode = word(mode);
                let version = version.number();
                tracing::info!(source, upstream, mode, version, id, "FEEDME was accepted: products come");
                self.link.is_connected(mode);
                self.tell("connected", None);
            }
            DownstreamEvent::Reduced(specs) => {
                let feeds: Vec<String> = specs.iter().map(|spec| spec.feeds.to_string()).collect();
                tracing::info!(
                    source,
                    upstream,
                    feeds = feeds.join(", "),
                    "FEEDME was answered with RECLASS: less is allowed"
                );
            }
            DownstreamEvent::Refused(refusal) => {
                let sentence = format!("LDM source {source}: {upstream} refuses FEEDME: {refusal}");
                if self.away("refused", refusal.to_string()) {
                    self.context.hub.fault(sentence);
                }
            }
            DownstreamEvent::Lost { why: Ending::OlderVersion | Ending::Shifted, .. } => {}
            DownstreamEvent::Lost { why, .. } => {
                let from = Offender { peer: &self.upstream, source: Some(&self.source), site: None };
                self.context.complaints.ended(&*self.context.hub, &from, &why);
                let reason = self.unreachable.take().unwrap_or_else(|| why.to_string());
                self.away("closed", reason);
            }
            DownstreamEvent::Taken(taken) => self.taken(taken),
        }
    }

    /// Reports a loss or refusal unless it is known; true if the upstream was connected or the reason has changed.
    fn away(&self, state: &'static str, reason: String) -> bool {
        let is_news = self.link.is_away(&reason);
        if is_news {
            tracing::warn!(source = self.source, upstream = self.upstream, reason, "an LDM upstream is away");
            self.tell(state, Some(reason));
        }
        is_news
    }

    fn tell(&self, state: &'static str, reason: Option<String>) {
        let (source, upstream) = (self.source.clone(), self.upstream.clone());
        let mode = word(self.mode);
        self.context.hub.tell(Event::Source { source, upstream, state, mode, reason });
    }

    fn taken(&mut self, taken: Taken) {
        match self.intake.take(taken) {
            Ok(None) => {}
            Ok(Some(wanted)) => {
                if !wanted {
                    lock(&self.shift).count(self.at, false);
                }
                self.machine.handle(self.context.clock.now(), DownstreamInput::Decided(wanted));
            }
            Err(error) => {
                let sentence = format!(
                    "a product from {} can't be spooled: {error}; make room on the hub's data directory",
                    self.upstream
                );
                self.context.hub.fault(sentence);
                self.intake.forget();
                self.machine.handle(self.context.clock.now(), DownstreamInput::Unstored);
            }
        }
    }
}

/// Reads from the connection; never ends without one. Safe to cancel: no bytes are lost.
async fn read(stream: &mut Option<TcpStream>, buffer: &mut BytesMut) -> io::Result<Bytes> {
    let Some(stream) = stream else { return pending().await };
    buffer.reserve(READ_BYTES);
    stream.read_buf(buffer).await?;
    Ok(buffer.split().freeze())
}

async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

impl LdmSourceLine {
    /// Older products are not accepted.
    fn max_age(&self) -> Micros {
        Micros::from_secs(self.max_age_seconds)
    }
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const SEND_WITHIN: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 64 << 10;

/// Three heartbeats of an LDM.
const SILENCE: Micros = Micros::from_secs(90);

/// The resolution of timers.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
