use std::collections::VecDeque;

use downburst_model::{Micros, Now, WallMicros};

use crate::access::Rights;
use crate::answer::{DONT_SEND, OK, answer, number};
use crate::class::Matcher;
use crate::ending::Ending;
use crate::listener::{Call, Data, Heard};
use crate::product::{ProductInfo, Signature};
use crate::step::{Dropped, Step, Taken};
use crate::wire::versions::Version;

/// The receiving side of products.
#[derive(Debug)]
pub(crate) struct ProductReceiver {
    matcher: Matcher,
    /// The sender's rights to push; none if this side requested the products.
    rights: Option<Rights>,
    bounds: Bounds,
    /// The sender's name, for the origin of its products.
    sender: String,
    state: State,
}

/// Limits of accepted products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) oldest: Micros,
    pub(crate) largest_bytes: u32,
}

#[derive(Debug)]
enum State {
    Idle,
    /// An offered product awaits a decision.
    Offered {
        xid: u32,
        info: ProductInfo,
    },
    /// An agreed product awaits its blocks.
    Agreed(Blocks),
    /// The bytes of a call are arriving.
    Data {
        answered: Option<u32>,
        data: Coming,
    },
}

#[derive(Debug)]
struct Blocks {
    info: ProductInfo,
    left: u32,
    is_begun: bool,
}

#[derive(Debug)]
enum Coming {
    /// The data are discarded.
    Unwanted,
    Product,
    Block {
        blocks: Blocks,
        bytes: u32,
    },
}

impl ProductReceiver {
    pub(crate) fn new(matcher: Matcher, bounds: Bounds, sender: String) -> Self {
        Self { matcher, rights: None, bounds, sender, state: State::Idle }
    }

    /// Limits the receiver to products that these rights allow.
    pub(crate) fn within(self, rights: Rights) -> Self {
        Self { rights: Some(rights), ..self }
    }

    /// True while a decision is pending: no further message may be processed.
    pub(crate) fn is_deciding(&self) -> bool {
        matches!(self.state, State::Offered { .. })
    }

    /// Accepts or declines the offered product; returns its signature if it was declined.
    pub(crate) fn decide(&mut self, wanted: bool, steps: &mut VecDeque<Step>) -> Option<Signature> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Offered { xid, info } if wanted => {
                steps.push_back(Step::Send(number(xid, OK)));
                self.state = State::Agreed(Blocks { left: info.size, info, is_begun: false });
                None
            }
            State::Offered { xid, info } => {
                steps.push_back(Step::Send(number(xid, DONT_SEND)));
                Some(info.signature)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Abandons the current product, and reports it as broken if it had begun.
    pub(crate) fn end(&mut self, steps: &mut VecDeque<Step>) {
        let is_begun = match std::mem::replace(&mut self.state, State::Idle) {
            State::Agreed(blocks) | State::Data { data: Coming::Block { blocks, .. }, .. } => blocks.is_begun,
            State::Data { data: Coming::Product, .. } => true,
            State::Data { .. } | State::Idle | State::Offered { .. } => false,
        };
        if is_begun {
            steps.push_back(Step::Taken(Taken::Broken));
        }
    }

    pub(crate) fn hear(&mut self, now: Now, heard: Heard, steps: &mut VecDeque<Step>) -> Result<(), Ending> {
        match heard {
            Heard::Call { xid, call: Call::Null, .. } => steps.push_back(Step::Send(answer(xid, &[]))),
            Heard::Call { xid, call: Call::ComingSoon { info }, .. } => self.offered(now, xid, info, steps),
            Heard::Call { xid, version, call: Call::Notification(info) } => {
                self.notified(now, info, steps);
                steps.extend(owed(xid, version).map(|xid| Step::Send(number(xid, OK))));
            }
            Heard::Begin { xid, version, data: Data::Product(info) } => {
                self.end(steps);
                let data = self.product(now, info, steps);
                self.state = State::Data { answered: owed(xid, version), data };
            }
            Heard::Begin { xid, version, data: Data::Block { signature, bytes, .. } } => {
                let data = self.block(signature, bytes, steps)?;
                self.state = State::Data { answered: owed(xid, version), data };
            }
            Heard::Bytes(bytes) => {
                if !matches!(self.state, State::Data { data: Coming::Unwanted, .. }) {
                    steps.push_back(Step::Taken(Taken::Bytes(bytes)));
                }
            }
            Heard::End => self.data_ends(steps),
            Heard::Refused { answer, malformed } => {
                steps.push_back(Step::Send(answer));
                if let Some(malformed) = malformed {
                    return Err(malformed.into());
                }
            }
            Heard::Call { .. } => {
                return Err(Ending::Garbled("it sends a request where it should send products".to_owned()));
            }
            // No call of this side is outstanding: the reply is a duplicate or late.
            Heard::Reply { .. } => {}
        }
        Ok(())
    }

    fn offered(&mut self, now: Now, xid: u32, info: ProductInfo, steps: &mut VecDeque<Step>) {
        self.end(steps);
        let info = info.through(&self.sender);
        match self.judged(now, &info) {
            None => {
                steps.push_back(Step::Taken(Taken::Offered(info.clone())));
                self.state = State::Offered { xid, info };
            }
            Some(why) => {
                steps.push_back(Step::Taken(Taken::Dropped(info, why)));
                steps.push_back(Step::Send(number(xid, DONT_SEND)));
            }
        }
    }

    fn notified(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) {
        let info = info.through(&self.sender);
        if self.judged(now, &info) != Some(Dropped::OutOfClass) {
            steps.push_back(Step::Taken(Taken::Notified(info)));
        }
    }

    fn product(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) -> Coming {
        if info.is_nil() {
            return Coming::Unwanted;
        }
        let info = info.through(&self.sender);
        let why = self.judged(now, &info);
        steps.push_back(Step::Taken(match why {
            None => Taken::Begins(info),
            Some(why) => Taken::Dropped(info, why),
        }));
        if why.is_none() { Coming::Product } else { Coming::Unwanted }
    }

    fn block(
        &mut self,
        signature: Signature,
        bytes: u32,
        steps: &mut VecDeque<Step>,
    ) -> Result<Coming, Ending> {
        let State::Agreed(mut blocks) = std::mem::replace(&mut self.state, State::Idle) else {
            return Ok(Coming::Unwanted);
        };
        if blocks.info.signature != signature || bytes > blocks.left {
            self.state = State::Agreed(blocks);
            return Err(Ending::Garbled("a block is not of the product that was agreed on".to_owned()));
        }
        if !blocks.is_begun {
            blocks.is_begun = true;
            steps.push_back(Step::Taken(Taken::Begins(blocks.info.clone())));
        }
        Ok(Coming::Block { blocks, bytes })
    }

    fn data_ends(&mut self, steps: &mut VecDeque<Step>) {
        let State::Data { answered, data } = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        steps.extend(answered.map(|xid| Step::Send(number(xid, OK))));
        match data {
            Coming::Unwanted => {}
            Coming::Product => steps.push_back(Step::Taken(Taken::Ends)),
            Coming::Block { mut blocks, bytes } => {
                blocks.left = blocks.left.saturating_sub(bytes);
                if blocks.left == 0 {
                    steps.push_back(Step::Taken(Taken::Ends));
                } else {
                    self.state = State::Agreed(blocks);
                }
            }
        }
    }

    fn judged(&self, now: Now, info: &ProductInfo) -> Option<Dropped> {
        let age = now.wall.0.saturating_sub(WallMicros::from(info.arrival).0);
        let is_forbidden = self.rights.as_ref().is_some_and(|rights| !rights.admit(info));
        if is_forbidden || !self.matcher.matches(info) {
            Some(Dropped::OutOfClass)
        } else if age > i64::try_from(self.bounds.oldest.0).unwrap_or(i64::MAX) {
            Some(Dropped::TooOld)
        } else if info.size > self.bounds.largest_bytes {
            Some(Dropped::TooLarge)
        } else {
            None
        }
    }
}

/// The number of a call that needs a reply in version 5; in version 6 such a call has none.
fn owed(xid: u32, version: Version) -> Option<u32> {
    (version == Version::Five).then_some(xid)
}
