use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{Machine, Micros, Now};

use crate::access::Rights;
use crate::answer::{FeedAnswer, PushAnswer, answer, number};
use crate::class::Matcher;
use crate::ending::Ending;
use crate::listener::{Call, Heard, Listener};
use crate::product_receiver::{Bounds, ProductReceiver};
use crate::product_sender::{ANSWER_WITHIN, How, ProductSender};
use crate::step::{Step, Taken};
use crate::wire::versions::Version;
use crate::{Access, Interest, Mode, ProductClass, ProductInfo, Signature, Want};

/// One connection from another LDM.
#[derive(Debug)]
pub struct Upstream {
    config: UpstreamConfig,
    state: State,
    /// The last product that the peer received, by its latest request that names one.
    resume: Option<Signature>,
    questions: u32,
    listener: Listener,
    outputs: VecDeque<UpstreamOutput>,
}

/// The peer's names, rights and limits.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The peer's names, including its address; the first one goes into the origin of the products that it pushes.
    pub peer: Vec<String>,
    /// The rules.
    pub access: Arc<Access>,
    /// The number of this connection, for IS_ALIVE.
    pub id: u32,
    /// The largest product that a peer may push without an offer.
    pub max_hereis: u32,
    /// Older products are dropped.
    pub oldest: Micros,
    /// Larger products are dropped.
    pub largest_bytes: u32,
    /// Idle time after which the connection of a pushing peer is closed.
    pub silence: Micros,
    /// The number of the first call to the peer.
    pub first_xid: u32,
}

/// Inputs of an [`Upstream`].
#[derive(Clone, Debug)]
pub enum UpstreamInput {
    /// Received bytes, at most half a mebibyte at once.
    Received(Bytes),
    /// The connection is lost.
    Disconnected,
    /// The next product, one for each [`Want::Product`]: more are ignored. A product that the peer does not
    /// want costs nothing.
    Product(ProductInfo),
    /// No product is available for now. The want remains open: provide the product when there is one.
    NoProduct,
    /// Bytes of the requested product.
    Bytes(Bytes),
    /// The requested product can't be read any more.
    Gone,
    /// The decision about the offered product: true to have it sent.
    Decided(bool),
    /// True if the connection with the requested number is alive.
    Alive(bool),
}

/// Outputs of an [`Upstream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamOutput {
    /// Send these bytes, and poll again once they are sent: input is requested no sooner than it can be sent.
    Send(Bytes),
    /// Provide this input next.
    Want(Want),
    /// Close the connection.
    Close,
    /// An event.
    Event(UpstreamEvent),
}

/// Events of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamEvent {
    /// The peer is served from now on.
    Serving(Served),
    /// The peer may push this.
    Taking(ProductClass),
    /// The peer has no right to any part of its request or offer.
    Denied(ProductClass),
    /// A call was refused; the reason is human-readable.
    Refused(String),
    /// The peer asks whether this connection is alive.
    AskedAlive(u32),
    /// A NULLPROC follows everything that was sent so far.
    Asked,
    /// The peer answered it: it has processed everything sent before, though not necessarily stored it on disk.
    Answered,
    /// An event about products that the peer pushes.
    Taken(Taken),
    /// The connection has ended.
    Ended(Ending),
}

/// The accepted request of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Products or their descriptions.
    pub interest: Interest,
    /// The requested class.
    pub class: ProductClass,
    /// Begin after this product if it is known, else at the beginning of the class.
    pub resume: Option<Signature>,
    /// The mode.
    pub mode: Mode,
    /// The protocol version.
    pub version: Version,
}

#[derive(Debug)]
enum State {
    /// Awaits a request of the peer.
    Open {
        until: Micros,
    },
    /// Awaits the driver's input whether a connection is alive.
    Alive {
        xid: u32,
    },
    Giving(Box<Giving>),
    Taking {
        product_receiver: Box<ProductReceiver>,
        heard: Micros,
    },
    Over,
}

#[derive(Debug)]
struct Giving {
    product_sender: ProductSender,
    matcher: Matcher,
    rights: Rights,
}

impl Upstream {
    /// Begins with a newly accepted connection.
    pub fn new(now: Now, config: UpstreamConfig) -> Self {
        Self {
            state: State::Open { until: now.monotonic.plus(ANSWER_WITHIN) },
            config,
            resume: None,
            questions: 0,
            listener: Listener::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Processes the received messages until a decision is needed.
    fn hear(&mut self, now: Now) -> Result<(), Ending> {
        while self.is_hearing() {
            let Some(heard) = self.listener.next()? else {
                break;
            };
            let mut steps = VecDeque::new();
            let done = match &mut self.state {
                State::Giving(giving) => giving.hear(now, heard, &mut steps),
                State::Taking { product_receiver, .. } => product_receiver.hear(now, heard, &mut steps),
                _ => self.open(now, heard),
            };
            self.pass(steps);
            done?;
        }
        Ok(())
    }

    fn is_hearing(&self) -> bool {
        match &self.state {
            State::Open { .. } | State::Giving(_) => true,
            State::Taking { product_receiver, .. } => !product_receiver.is_deciding(),
            State::Alive { .. } | State::Over => false,
        }
    }

    /// The first calls of a connection.
    fn open(&mut self, now: Now, heard: Heard) -> Result<(), Ending> {
        match heard {
            Heard::Call { xid, version, call } => {
                self.count_question()?;
                self.state = State::Open { until: now.monotonic.plus(ANSWER_WITHIN) };
                self.called(now, xid, version, call)
            }
            Heard::Refused { answer, malformed } => {
                self.count_question()?;
                self.send(answer);
                if let Some(malformed) = malformed {
                    return Err(malformed.into());
                }
                let reason = "it called a program, version or procedure that is not served here";
                self.event(UpstreamEvent::Refused(reason.to_owned()));
                Ok(())
            }
            Heard::Begin { .. } | Heard::Bytes(_) | Heard::End => {
                Err(Ending::Garbled("it sends a product before its HIYA".to_owned()))
            }
            // A reply to an unknown call.
            Heard::Reply { .. } => Ok(()),
        }
    }

    fn count_question(&mut self) -> Result<(), Ending> {
        self.questions = self.questions.saturating_add(1);
        if self.questions > MOST_QUESTIONS { Err(Ending::NoAgreement) } else { Ok(()) }
    }

    fn called(&mut self, now: Now, xid: u32, version: Version, call: Call) -> Result<(), Ending> {
        match call {
            Call::Null => self.send(answer(xid, &[])),
            Call::IsAlive { id } => {
                self.state = State::Alive { xid };
                self.event(UpstreamEvent::AskedAlive(id));
            }
            Call::FeedMe { class, max_hereis } => {
                let is_primary = max_hereis.is_none_or(|bytes| bytes > MOST_OF_AN_ALTERNATE);
                let mode = if is_primary { Mode::Primary } else { Mode::Alternate };
                self.asked(now, xid, Interest::Products, version, mode, class);
            }
            Call::NotifyMe(class) => {
                self.asked(now, xid, Interest::Descriptions, version, Mode::Primary, class);
            }
            Call::Hiya(class) => self.offered(now, xid, version, class),
            Call::ComingSoon { .. } | Call::Notification(_) => {
                return Err(Ending::Garbled("it sends a product before its HIYA".to_owned()));
            }
        }
        Ok(())
    }

    fn asked(
        &mut self,
        now: Now,
        xid: u32,
        interest: Interest,
        version: Version,
        mode: Mode,
        mut class: ProductClass,
    ) {
        self.resume = class.take_resume().or(self.resume);
        let rights = self.config.access.asking(&self.config.peer);
        let reduced = rights.reduce(&class);
        let say = |said: FeedAnswer| UpstreamOutput::Send(answer(xid, &said.encode(version)));
        match Matcher::compile(&class) {
            Err(error) => {
                self.outputs.push_back(say(FeedAnswer::BadPattern));
                self.event(UpstreamEvent::Refused(format!(
                    "a pattern of its request can't be used: {error}"
                )));
            }
            Ok(matcher) if reduced == class && !class.is_empty() => {
                self.outputs.push_back(say(FeedAnswer::Yes { id: self.config.id }));
                let served = Served { interest, class, resume: self.resume, mode, version };
                self.serve(now, served, matcher, rights);
            }
            Ok(_) => {
                let is_denied = reduced.is_empty();
                self.outputs.push_back(say(FeedAnswer::Reclass(reduced)));
                if is_denied {
                    self.event(UpstreamEvent::Denied(class));
                }
            }
        }
    }

    fn serve(&mut self, now: Now, served: Served, matcher: Matcher, rights: Rights) {
        let how = match (served.interest, served.mode) {
            (Interest::Descriptions, _) => How::Notes,
            (Interest::Products, Mode::Primary) => How::Whole { up_to_bytes: u32::MAX },
            (Interest::Products, Mode::Alternate) => How::Asked,
        };
        let from = now.monotonic.plus(TURN_ROUND);
        let product_sender = ProductSender::new(served.version, how, self.config.first_xid, from);
        self.state = State::Giving(Box::new(Giving { product_sender, matcher, rights }));
        self.event(UpstreamEvent::Serving(served));
    }

    fn offered(&mut self, now: Now, xid: u32, version: Version, class: ProductClass) {
        let rights = self.config.access.pushing(&self.config.peer);
        let reduced = rights.reduce(&class);
        let max_hereis = self.config.max_hereis;
        let matcher = Matcher::compile(&reduced).ok().filter(|_| !reduced.is_empty());
        let Some(matcher) = matcher else {
            self.send(answer(xid, &PushAnswer::No.encode(version)));
            self.event(UpstreamEvent::Denied(class));
            return;
        };
        let said = match reduced == class {
            true => PushAnswer::Yes { max_hereis },
            false => PushAnswer::Reclass { class: reduced.clone(), max_hereis },
        };
        self.send(answer(xid, &said.encode(version)));
        let bounds = Bounds { oldest: self.config.oldest, largest_bytes: self.config.largest_bytes };
        let sender = self.config.peer.first().cloned().unwrap_or_default();
        let product_receiver = ProductReceiver::new(matcher, bounds, sender).within(rights);
        self.state = State::Taking { product_receiver: Box::new(product_receiver), heard: now.monotonic };
        self.event(UpstreamEvent::Taking(reduced));
    }

    fn give(&mut self, now: Now, input: UpstreamInput) -> Result<(), Ending> {
        let State::Giving(giving) = &mut self.state else {
            return Ok(());
        };
        let mut steps = VecDeque::new();
        let done = giving.give(now, input, &mut steps);
        self.pass(steps);
        done
    }

    fn decided(&mut self, now: Now, wanted: bool) -> Result<(), Ending> {
        if let State::Taking { product_receiver, .. } = &mut self.state {
            let mut steps = VecDeque::new();
            product_receiver.decide(wanted, &mut steps);
            self.pass(steps);
        }
        self.hear(now)
    }

    fn alive(&mut self, now: Now, is_alive: bool) -> Result<(), Ending> {
        if let State::Alive { xid } = self.state {
            self.send(number(xid, u32::from(is_alive)));
            self.state = State::Open { until: now.monotonic.plus(ANSWER_WITHIN) };
        }
        self.hear(now)
    }

    fn pass(&mut self, steps: VecDeque<Step>) {
        self.outputs.extend(steps.into_iter().map(UpstreamOutput::from));
    }

    fn due(&mut self, now: Now) {
        let done = match &mut self.state {
            State::Open { until } if now.monotonic >= *until => {
                Err(Ending::Silent(ANSWER_WITHIN.0 / 1_000_000))
            }
            State::Taking { heard, product_receiver }
                if now.monotonic >= heard.plus(self.config.silence) && !product_receiver.is_deciding() =>
            {
                Err(Ending::Silent(self.config.silence.0 / 1_000_000))
            }
            State::Giving(giving) => {
                let mut steps = VecDeque::new();
                let done = giving.product_sender.tick(now, &mut steps);
                self.pass(steps);
                done
            }
            _ => Ok(()),
        };
        if let Err(why) = done {
            self.end(why);
        }
    }

    fn end(&mut self, why: Ending) {
        if let State::Taking { product_receiver, .. } = &mut self.state {
            let mut steps = VecDeque::new();
            product_receiver.end(&mut steps);
            self.pass(steps);
        }
        if !matches!(self.state, State::Over) {
            self.state = State::Over;
            self.event(UpstreamEvent::Ended(why));
            self.outputs.push_back(UpstreamOutput::Close);
        }
    }

    fn send(&mut self, bytes: Bytes) {
        self.outputs.push_back(UpstreamOutput::Send(bytes));
    }

    fn event(&mut self, event: UpstreamEvent) {
        self.outputs.push_back(UpstreamOutput::Event(event));
    }
}

impl Giving {
    fn hear(&mut self, now: Now, heard: Heard, steps: &mut VecDeque<Step>) -> Result<(), Ending> {
        match heard {
            Heard::Reply { xid, status, result } => {
                self.product_sender.reply(now, xid, status, result, steps)
            }
            Heard::Call { xid, call: Call::Null, .. } => {
                steps.push_back(Step::Send(answer(xid, &[])));
                Ok(())
            }
            _ => Err(Ending::Garbled("it sends a call while it is being served".to_owned())),
        }
    }

    fn give(&mut self, now: Now, input: UpstreamInput, steps: &mut VecDeque<Step>) -> Result<(), Ending> {
        match input {
            UpstreamInput::Product(info) if self.matcher.matches(&info) && self.rights.permit(&info) => {
                self.product_sender.product(now, info, steps);
            }
            UpstreamInput::Product(_) => steps.push_back(Step::Want(Want::Product)),
            UpstreamInput::NoProduct => self.product_sender.nothing_more(now, steps),
            UpstreamInput::Bytes(bytes) => self.product_sender.bytes(now, bytes, steps),
            UpstreamInput::Gone if self.product_sender.is_begun() => return Err(Ending::Gone),
            _ => {}
        }
        Ok(())
    }
}

impl From<Step> for UpstreamOutput {
    fn from(step: Step) -> Self {
        match step {
            Step::Send(bytes) => Self::Send(bytes),
            Step::Taken(taken) => Self::Event(UpstreamEvent::Taken(taken)),
            Step::Want(want) => Self::Want(want),
            Step::Asked => Self::Event(UpstreamEvent::Asked),
            Step::Answered => Self::Event(UpstreamEvent::Answered),
        }
    }
}

impl Machine for Upstream {
    type Input = UpstreamInput;
    type Output = UpstreamOutput;

    fn handle(&mut self, now: Now, input: UpstreamInput) {
        let done = match input {
            UpstreamInput::Received(bytes) => {
                if let State::Taking { heard, .. } = &mut self.state {
                    *heard = now.monotonic;
                }
                self.listener.push(bytes).map_err(Ending::from).and_then(|()| self.hear(now))
            }
            UpstreamInput::Disconnected => Err(Ending::Disconnected),
            UpstreamInput::Decided(wanted) => self.decided(now, wanted),
            UpstreamInput::Alive(is_alive) => self.alive(now, is_alive),
            given => self.give(now, given),
        };
        if let Err(why) = done {
            self.end(why);
        }
    }

    fn poll(&mut self, now: Now) -> Option<UpstreamOutput> {
        if self.outputs.is_empty() {
            self.due(now);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        match &self.state {
            State::Open { until } => Some(*until),
            State::Giving(giving) => giving.product_sender.deadline(),
            State::Taking { heard, product_receiver } => {
                (!product_receiver.is_deciding()).then(|| heard.plus(self.config.silence))
            }
            State::Alive { .. } | State::Over => None,
        }
    }
}

/// A larger `max_hereis` requests products without offers: the number is a switch, not a size.
const MOST_OF_AN_ALTERNATE: u32 = i32::MAX as u32;

/// Limit of the calls before a connection is used for sending or receiving. LDM's clients make two.
const MOST_QUESTIONS: u32 = 8;

/// A downstream's RPC library may have read ahead of the answer to its call; data that follows too closely
/// would be lost with its buffer.
const TURN_ROUND: Micros = Micros::from_secs(1);
