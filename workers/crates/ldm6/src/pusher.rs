use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::{Machine, Micros, Now};

use crate::answer::PushAnswer;
use crate::class::Matcher;
use crate::ending::Ending;
use crate::listener::{Heard, Listener};
use crate::product_sender::{ANSWER_WITHIN, How, ProductSender};
use crate::step::Step;
use crate::wire::record::record;
use crate::wire::rpc::{Status, call};
use crate::wire::versions::{HIYA, Version};
use crate::wire::xdr::{Reader, Xdr};
use crate::{ClassError, ProductClass, ProductInfo, Want};

/// Pushes products to another LDM over one established connection.
#[derive(Debug)]
pub struct Pusher {
    config: PusherConfig,
    state: State,
    is_finished: bool,
    listener: Listener,
    outputs: VecDeque<PusherOutput>,
}

/// Configuration of a [`Pusher`].
#[derive(Clone, Debug)]
pub struct PusherConfig {
    /// The class of everything that will be pushed.
    pub class: ProductClass,
    /// The number of the first call.
    pub first_xid: u32,
}

/// Inputs of a [`Pusher`].
#[derive(Clone, Debug)]
pub enum PusherInput {
    /// Received bytes.
    Received(Bytes),
    /// The connection is lost.
    Disconnected,
    /// The next product, in answer to [`Want::Product`].
    Product(ProductInfo),
    /// Bytes of this product.
    Bytes(Bytes),
    /// The requested product can't be read any more.
    Gone,
    /// No further product follows.
    Finish,
}

/// Outputs of a [`Pusher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PusherOutput {
    /// Send these bytes.
    Send(Bytes),
    /// Provide this input next.
    Want(Want),
    /// The peer accepts this class; products outside of it are skipped.
    Taken(ProductClass),
    /// The connection has ended: close it.
    Ended(Ending),
}

#[derive(Debug)]
enum State {
    Asking { until: Micros },
    Giving { product_sender: Box<ProductSender>, matcher: Matcher },
    Over,
}

impl Pusher {
    /// Checks the patterns and sends the HIYA.
    pub fn new(now: Now, config: PusherConfig) -> Result<Self, ClassError> {
        Matcher::compile(&config.class)?;
        let mut message = call(config.first_xid, Version::Six.number(), HIYA);
        config.class.encode(&mut message);
        let outputs = VecDeque::from([PusherOutput::Send(record(&message))]);
        let state = State::Asking { until: now.monotonic.plus(ANSWER_WITHIN) };
        Ok(Self { config, state, is_finished: false, listener: Listener::default(), outputs })
    }

    fn hear(&mut self, now: Now, bytes: Bytes) -> Result<(), Ending> {
        self.listener.push(bytes)?;
        while let Some(heard) = self.listener.next()? {
            let Heard::Reply { xid, status, result } = heard else {
                return Err(Ending::Garbled("it sends a call where it should receive".to_owned()));
            };
            match &mut self.state {
                State::Asking { .. } if xid == self.config.first_xid => {
                    self.answered(now, status, result)?;
                }
                State::Giving { product_sender, .. } => {
                    let mut steps = VecDeque::new();
                    product_sender.reply(now, xid, status, result, &mut steps)?;
                    self.pass(steps);
                }
                // A reply to an unknown call.
                State::Asking { .. } => {}
                State::Over => break,
            }
        }
        self.finish(now);
        Ok(())
    }

    fn answered(&mut self, now: Now, status: Status, mut result: Reader) -> Result<(), Ending> {
        if status != Status::Success {
            return Err(status.into());
        }
        let (class, up_to_bytes) = match PushAnswer::decode(&mut result)? {
            PushAnswer::No => return Err(Ending::Failed("it accepts no product of this class".to_owned())),
            PushAnswer::Yes { max_hereis } => (self.config.class.clone(), max_hereis),
            PushAnswer::Reclass { class, max_hereis } => (class, max_hereis),
        };
        let matcher = Matcher::compile(&class)
            .map_err(|error| Ending::Failed(format!("it answers with a class: {error}")))?;
        let xid = self.config.first_xid.wrapping_add(1);
        let product_sender = ProductSender::new(Version::Six, How::Whole { up_to_bytes }, xid, now.monotonic);
        self.state = State::Giving { product_sender: Box::new(product_sender), matcher };
        self.outputs.push_back(PusherOutput::Taken(class));
        Ok(())
    }

    fn give(&mut self, now: Now, input: PusherInput) -> Result<(), Ending> {
        self.is_finished |= matches!(input, PusherInput::Finish);
        if let State::Giving { product_sender, matcher } = &mut self.state {
            let mut steps = VecDeque::new();
            match input {
                PusherInput::Product(info) if matcher.matches(&info) => {
                    product_sender.product(now, info, &mut steps)
                }
                PusherInput::Product(_) => steps.push_back(Step::Want(Want::Product)),
                PusherInput::Bytes(bytes) => product_sender.bytes(now, bytes, &mut steps),
                PusherInput::Gone if product_sender.is_begun() => return Err(Ending::Gone),
                _ => {}
            }
            self.pass(steps);
        }
        self.finish(now);
        Ok(())
    }

    /// Ends the connection once the peer has answered a NULLPROC after the last product.
    fn finish(&mut self, now: Now) {
        let State::Giving { product_sender, .. } = &mut self.state else {
            return;
        };
        if !self.is_finished {
            return;
        }
        if product_sender.is_flushed() {
            self.end(Ending::Done);
            return;
        }
        let mut steps = VecDeque::new();
        product_sender.nothing_more(now, &mut steps);
        self.pass(steps);
    }

    fn pass(&mut self, steps: VecDeque<Step>) {
        self.outputs.extend(steps.into_iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(PusherOutput::Send(bytes)),
            Step::Want(want) => Some(PusherOutput::Want(want)),
            Step::Taken(_) | Step::Asked | Step::Answered => None,
        }));
    }

    fn due(&mut self, now: Now) {
        let done = match &mut self.state {
            State::Asking { until } if now.monotonic >= *until => {
                Err(Ending::Unanswered(ANSWER_WITHIN.0 / 1_000_000))
            }
            State::Giving { product_sender, .. } => {
                let mut steps = VecDeque::new();
                let done = product_sender.tick(now, &mut steps);
                self.pass(steps);
                self.finish(now);
                done
            }
            _ => Ok(()),
        };
        if let Err(why) = done {
            self.end(why);
        }
    }

    fn end(&mut self, why: Ending) {
        if !matches!(self.state, State::Over) {
            self.state = State::Over;
            self.outputs.push_back(PusherOutput::Ended(why));
        }
    }
}

impl Machine for Pusher {
    type Input = PusherInput;
    type Output = PusherOutput;

    fn handle(&mut self, now: Now, input: PusherInput) {
        let done = match input {
            PusherInput::Received(bytes) => self.hear(now, bytes),
            PusherInput::Disconnected => Err(Ending::Disconnected),
            given => self.give(now, given),
        };
        if let Err(why) = done {
            self.end(why);
        }
    }

    fn poll(&mut self, now: Now) -> Option<PusherOutput> {
        if self.outputs.is_empty() {
            self.due(now);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        match &self.state {
            State::Asking { until } => Some(*until),
            State::Giving { product_sender, .. } => product_sender.deadline(),
            State::Over => None,
        }
    }
}
