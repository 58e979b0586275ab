use std::collections::VecDeque;

use bytes::{BufMut, Bytes};
use downburst_model::{Machine, Micros, Now};

use crate::answer::FeedAnswer;
use crate::class::{ClassError, MOST_SPECS, Matcher};
use crate::ending::Ending;
use crate::listener::{Heard, Listener};
use crate::product_receiver::{Bounds, ProductReceiver};
use crate::product_sender::ANSWER_WITHIN;
use crate::step::{Step, Taken};
use crate::wire::record::record;
use crate::wire::rpc::{Status, call};
use crate::wire::versions::*;
use crate::wire::xdr::{Reader, Xdr};
use crate::{Mode, ProductClass, ProductSpec, Signature, Timestamp};

/// A request to one upstream, across connections.
#[derive(Debug)]
pub struct Downstream {
    config: DownstreamConfig,
    matcher: Matcher,
    mode: Mode,
    version: Version,
    resume: Option<Signature>,
    /// Number of complete products that are not settled.
    unsettled: u64,
    next_xid: u32,
    pause: Micros,
    state: State,
    listener: Listener,
    outputs: VecDeque<DownstreamOutput>,
}

/// A request with its limits.
#[derive(Clone, Debug)]
pub struct DownstreamConfig {
    /// The upstream's name, for the origin of its products.
    pub upstream: String,
    /// The products to request, at most 31 specs.
    pub specs: Vec<ProductSpec>,
    /// Products or their descriptions.
    pub interest: Interest,
    /// The initial mode.
    pub mode: Mode,
    /// The last product of this request that was stored.
    pub resume: Option<Signature>,
    /// How far back to begin if the upstream does not know that product.
    pub time_offset: Micros,
    /// Older products are dropped.
    pub oldest: Micros,
    /// Larger products are dropped.
    pub largest_bytes: u32,
    /// Idle time after which a connection is closed. Upstreams send a heartbeat every 30 s.
    pub silence: Micros,
    /// The number of the first call. Any value works; it distinguishes connections in captures.
    pub first_xid: u32,
}

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// FEEDME.
    Products,
    /// NOTIFYME.
    Descriptions,
}

/// Inputs of a [`Downstream`].
#[derive(Clone, Debug)]
pub enum DownstreamInput {
    /// The requested connection is established.
    Connected,
    /// Received bytes, at most half a mebibyte at once.
    Received(Bytes),
    /// The connection is lost or could not be established.
    Disconnected,
    /// The decision about the offered product: true to have it sent.
    Decided(bool),
    /// A complete product was stored, was a duplicate, or is given up: the request continues after it. Given in
    /// the order of arrival, once for each product.
    Settled(Signature),
    /// The unsettled products can't be stored: they are requested again, on another connection.
    Unstored,
    /// Repeat the request in this mode.
    Shift(Mode),
}

/// Outputs of a [`Downstream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownstreamOutput {
    /// Open a connection, and report when it is established.
    Connect,
    /// Send these bytes.
    Send(Bytes),
    /// Close the connection; from now on there is none.
    Close,
    /// An event.
    Event(DownstreamEvent),
}

/// Events of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownstreamEvent {
    /// The upstream accepted the request and sends from now on.
    Accepted {
        /// The mode.
        mode: Mode,
        /// The protocol version.
        version: Version,
        /// The upstream's number of the connection; 0 in version 5, which has none.
        id: u32,
    },
    /// The upstream allows only these specs.
    Reduced(Vec<ProductSpec>),
    /// The upstream refused; the request is repeated in a minute.
    Refused(Refusal),
    /// The connection ended; the next one is tried at this monotonic time.
    Lost {
        /// The reason.
        why: Ending,
        /// Time of the next attempt.
        again: Micros,
    },
    /// An event about products.
    Taken(Taken),
}

/// Reasons for which an upstream refuses a request.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    /// The upstream allows no part of the request.
    #[error("the upstream allows this host no part of the request; ask its administrator for an ALLOW line")]
    Denied,
    /// The upstream can't use a pattern.
    #[error("the upstream can't use a pattern of the request; correct it")]
    BadPattern,
    /// The call failed.
    #[error("{0}")]
    Failed(Ending),
}

#[derive(Debug)]
enum State {
    Waiting { until: Micros },
    Connecting,
    Asking { xid: u32, until: Micros, left: u32, class: ProductClass },
    Taking { product_receiver: Box<ProductReceiver>, heard: Micros },
}

impl Downstream {
    /// Checks the patterns; the first poll requests a connection.
    pub fn new(config: DownstreamConfig) -> Result<Self, ClassError> {
        if config.specs.len() >= MOST_SPECS as usize {
            return Err(ClassError::TooMany(config.specs.len()));
        }
        let specs = config.specs.clone();
        let matcher =
            Matcher::compile(&ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs })?;
        Ok(Self {
            matcher,
            mode: config.mode,
            version: Version::Six,
            resume: config.resume,
            unsettled: 0,
            next_xid: config.first_xid,
            pause: SHORTEST_PAUSE,
            state: State::Waiting { until: Micros(0) },
            listener: Listener::default(),
            outputs: VecDeque::new(),
            config,
        })
    }

    fn ask(&mut self, now: Now) {
        let specs = self.config.specs.clone();
        let from = Timestamp::before(now.wall, self.config.time_offset);
        let mut class = ProductClass { from, to: Timestamp::END_OF_TIME, specs };
        if let Some(signature) = self.resume {
            class.put_resume(signature);
        }
        self.ask_for(now, class, MOST_RECLASSES);
    }

    fn ask_for(&mut self, now: Now, class: ProductClass, left: u32) {
        let (procedure, with_mode) = match self.config.interest {
            Interest::Products => (FEEDME, self.version == Version::Six),
            Interest::Descriptions => (NOTIFYME, false),
        };
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1);
        let mut message = call(xid, self.version.number(), procedure);
        class.encode(&mut message);
        if with_mode {
            message.put_u32(if self.mode == Mode::Primary { u32::MAX } else { 0 });
        }
        self.send(record(&message));
        self.state = State::Asking { xid, until: now.monotonic.plus(ANSWER_WITHIN), left, class };
    }

    fn received(&mut self, now: Now, bytes: Bytes) -> Result<(), Ending> {
        match &mut self.state {
            State::Taking { heard, .. } => *heard = now.monotonic,
            State::Asking { .. } => {}
            // Data from an abandoned connection are ignored.
            State::Waiting { .. } | State::Connecting => return Ok(()),
        }
        self.listener.push(bytes)?;
        self.hear(now)
    }

    /// Processes the received messages until a decision is needed.
    fn hear(&mut self, now: Now) -> Result<(), Ending> {
        while self.is_hearing() {
            let Some(heard) = self.listener.next()? else {
                break;
            };
            match &mut self.state {
                State::Taking { product_receiver, .. } => {
                    let mut steps = VecDeque::new();
                    let heard = product_receiver.hear(now, heard, &mut steps);
                    self.take(steps);
                    heard?;
                }
                State::Asking { .. } => self.answered(now, heard)?,
                State::Waiting { .. } | State::Connecting => break,
            }
        }
        Ok(())
    }

    fn is_hearing(&self) -> bool {
        match &self.state {
            State::Taking { product_receiver, .. } => !product_receiver.is_deciding(),
            State::Asking { .. } => true,
            State::Waiting { .. } | State::Connecting => false,
        }
    }

    fn answered(&mut self, now: Now, heard: Heard) -> Result<(), Ending> {
        let (Heard::Reply { xid, status, result }, State::Asking { xid: asked, left, class, .. }) =
            (heard, &self.state)
        else {
            return Err(Ending::Garbled("it does not answer the request".to_owned()));
        };
        if xid != *asked {
            // A second reply to an earlier request.
            return Ok(());
        }
        let (left, specs) = (*left, class.specs.clone());
        match status {
            Status::Success => self.answer(now, result, left, &specs),
            Status::ProgramMismatch { low, high }
                if self.version == Version::Six && (low..=high).contains(&5) =>
            {
                self.lose(Ending::OlderVersion, now.monotonic);
                self.version = Version::Five;
                Ok(())
            }
            status => {
                self.refused(now, Refusal::Failed(status.into()));
                Ok(())
            }
        }
    }

    fn answer(
        &mut self,
        now: Now,
        mut result: Reader,
        left: u32,
        asked: &[ProductSpec],
    ) -> Result<(), Ending> {
        match FeedAnswer::decode(&mut result, self.version)? {
            FeedAnswer::Yes { id } => self.accepted(now, id),
            FeedAnswer::BadPattern => self.refused(now, Refusal::BadPattern),
            FeedAnswer::Reclass(class) if class.is_empty() => self.refused(now, Refusal::Denied),
            FeedAnswer::Reclass(class) if left == 0 || class.specs.len() > asked.len() => {
                return Err(Ending::NoAgreement);
            }
            FeedAnswer::Reclass(class) => {
                self.event(DownstreamEvent::Reduced(class.specs.clone()));
                self.ask_for(now, class, left.saturating_sub(1));
            }
        }
        Ok(())
    }

    /// Reverses the roles: from now on the upstream makes the calls.
    fn accepted(&mut self, now: Now, id: u32) {
        self.pause = SHORTEST_PAUSE;
        let bounds = Bounds { oldest: self.config.oldest, largest_bytes: self.config.largest_bytes };
        let product_receiver =
            ProductReceiver::new(self.matcher.clone(), bounds, self.config.upstream.clone());
        self.state = State::Taking { product_receiver: Box::new(product_receiver), heard: now.monotonic };
        self.event(DownstreamEvent::Accepted { mode: self.mode, version: self.version, id });
    }

    fn decided(&mut self, now: Now, wanted: bool) -> Result<(), Ending> {
        if let State::Taking { product_receiver, .. } = &mut self.state {
            let mut steps = VecDeque::new();
            let declined = product_receiver.decide(wanted, &mut steps);
            self.take(steps);
            self.pass_over(declined);
        }
        self.hear(now)
    }

    fn take(&mut self, steps: VecDeque<Step>) {
        for step in steps {
            match step {
                Step::Send(bytes) => self.send(bytes),
                Step::Taken(taken) => self.taken(taken),
                Step::Want(_) | Step::Asked | Step::Answered => {}
            }
        }
    }

    fn taken(&mut self, taken: Taken) {
        match &taken {
            Taken::Ends => self.unsettled = self.unsettled.saturating_add(1),
            Taken::Dropped(info, _) => self.pass_over(Some(info.signature)),
            _ => {}
        }
        self.event(DownstreamEvent::Taken(taken));
    }

    /// Moves the position of the request past a product that is not sent, unless an earlier product may have to be
    /// requested again.
    fn pass_over(&mut self, signature: Option<Signature>) {
        if self.unsettled == 0 {
            self.resume = signature.or(self.resume);
        }
    }

    fn settled(&mut self, signature: Signature) {
        self.unsettled = self.unsettled.saturating_sub(1);
        self.resume = Some(signature);
    }

    fn shift(&mut self, now: Now, mode: Mode) {
        let is_other = std::mem::replace(&mut self.mode, mode) != mode;
        if is_other && matches!(self.state, State::Asking { .. } | State::Taking { .. }) {
            self.lose(Ending::Shifted, now.monotonic);
        }
    }

    fn refused(&mut self, now: Now, refusal: Refusal) {
        self.event(DownstreamEvent::Refused(refusal));
        self.outputs.push_back(DownstreamOutput::Close);
        self.wait(now.monotonic.plus(LONGEST_PAUSE));
    }

    /// Abandons the connection.
    fn lose(&mut self, why: Ending, again: Micros) {
        if !matches!(self.state, State::Waiting { .. } | State::Connecting) && why != Ending::Disconnected {
            self.outputs.push_back(DownstreamOutput::Close);
        }
        if let State::Taking { product_receiver, .. } = &mut self.state {
            let mut steps = VecDeque::new();
            product_receiver.end(&mut steps);
            self.take(steps);
        }
        self.event(DownstreamEvent::Lost { why, again });
        self.wait(again);
    }

    /// Waits for the next connection, which begins with version 6: the upstream may have been replaced.
    fn wait(&mut self, until: Micros) {
        self.version = Version::Six;
        self.listener = Listener::default();
        self.state = State::Waiting { until };
    }

    /// Time of the next attempt after a failed connection; the pause doubles each time.
    fn next_try(&mut self, now: Now) -> Micros {
        let pause = self.pause;
        self.pause = Micros(pause.0.saturating_mul(2).min(LONGEST_PAUSE.0));
        now.monotonic.plus(pause)
    }

    fn due(&mut self, now: Now) {
        match &self.state {
            State::Waiting { until } if now.monotonic >= *until => {
                self.state = State::Connecting;
                self.outputs.push_back(DownstreamOutput::Connect);
            }
            State::Asking { until, .. } if now.monotonic >= *until => {
                let again = self.next_try(now);
                self.lose(Ending::Unanswered(seconds(ANSWER_WITHIN)), again);
            }
            State::Taking { heard, product_receiver } if now.monotonic >= heard.plus(self.config.silence) => {
                // A slow decision on this side is no fault of the upstream.
                if product_receiver.is_deciding() {
                    return;
                }
                self.lose(Ending::Silent(seconds(self.config.silence)), now.monotonic);
            }
            _ => {}
        }
    }

    fn send(&mut self, bytes: Bytes) {
        self.outputs.push_back(DownstreamOutput::Send(bytes));
    }

    fn event(&mut self, event: DownstreamEvent) {
        self.outputs.push_back(DownstreamOutput::Event(event));
    }
}

impl Machine for Downstream {
    type Input = DownstreamInput;
    type Output = DownstreamOutput;

    fn handle(&mut self, now: Now, input: DownstreamInput) {
        let done = match input {
            DownstreamInput::Connected => {
                if matches!(self.state, State::Connecting) {
                    self.ask(now);
                }
                Ok(())
            }
            DownstreamInput::Received(bytes) => self.received(now, bytes),
            DownstreamInput::Disconnected if matches!(self.state, State::Waiting { .. }) => Ok(()),
            DownstreamInput::Disconnected => Err(Ending::Disconnected),
            DownstreamInput::Decided(wanted) => self.decided(now, wanted),
            DownstreamInput::Settled(signature) => {
                self.settled(signature);
                Ok(())
            }
            DownstreamInput::Unstored => {
                self.unsettled = 0;
                if matches!(self.state, State::Asking { .. } | State::Taking { .. }) {
                    Err(Ending::Unstored)
                } else {
                    Ok(())
                }
            }
            DownstreamInput::Shift(mode) => {
                self.shift(now, mode);
                Ok(())
            }
        };
        if let Err(why) = done {
            let again = self.next_try(now);
            self.lose(why, again);
        }
    }

    fn poll(&mut self, now: Now) -> Option<DownstreamOutput> {
        if self.outputs.is_empty() {
            self.due(now);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        match &self.state {
            State::Waiting { until } | State::Asking { until, .. } => Some(*until),
            State::Taking { heard, product_receiver } => {
                (!product_receiver.is_deciding()).then(|| heard.plus(self.config.silence))
            }
            State::Connecting => None,
        }
    }
}

fn seconds(length: Micros) -> u64 {
    length.0 / 1_000_000
}

/// Replies with another class that are followed on one connection: LDM sends one.
const MOST_RECLASSES: u32 = 3;

/// The first pause after a lost connection, short enough to reconnect almost immediately.
const SHORTEST_PAUSE: Micros = Micros::from_secs(1);

/// LDM's own pause after a refusal, and the longest between attempts.
const LONGEST_PAUSE: Micros = Micros::from_secs(60);
