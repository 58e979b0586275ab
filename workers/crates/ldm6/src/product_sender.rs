use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use downburst_model::{Micros, Now};

use crate::answer::{DONT_SEND, OK, RECLASS};
use crate::ending::Ending;
use crate::listener::padding_of;
use crate::product::ProductInfo;
use crate::step::{Step, Want};
use crate::wire::record::{record, record_begin};
use crate::wire::rpc::{Status, call};
use crate::wire::versions::*;
use crate::wire::xdr::{Reader, Xdr, padding};

/// The sending side of products.
#[derive(Debug)]
pub(crate) struct ProductSender {
    version: Version,
    how: How,
    next_xid: u32,
    state: State,
    /// An unanswered NULLPROC.
    flush: Option<Awaited>,
    is_flushed: bool,
    /// True if no product was available at the last request.
    is_idle: bool,
    /// Time of the last transmission.
    sent: Micros,
    /// Time of the last NULLPROC.
    asked: Micros,
}

/// Method of sending products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Descriptions only.
    Notes,
    /// Products up to this size without an offer, larger ones after an offer.
    Whole { up_to_bytes: u32 },
    /// Each product after an offer.
    Asked,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    xid: u32,
    until: Micros,
}

#[derive(Debug)]
enum State {
    /// The peer may not be ready yet.
    Resting {
        until: Micros,
    },
    Free,
    Offered {
        awaited: Awaited,
        info: ProductInfo,
    },
    Body(Body),
    /// A call with a product or its description waits for its reply, as every call in version 5.
    Told {
        awaited: Awaited,
        then: Option<Body>,
    },
}

#[derive(Debug)]
struct Body {
    info: ProductInfo,
    left: u32,
    /// Bytes that the current call still needs.
    block_left: u32,
    block_bytes: u32,
    next_block: u32,
    xid: u32,
}

impl ProductSender {
    /// Sends the first product no sooner than `from`.
    pub(crate) fn new(version: Version, how: How, first_xid: u32, from: Micros) -> Self {
        let how = match (version, how) {
            // LDM's feedme, which speaks no newer version, does not know HEREIS.
            (Version::Five, How::Whole { .. }) => How::Asked,
            (_, how) => how,
        };
        let state = State::Resting { until: from };
        Self {
            version,
            how,
            next_xid: first_xid,
            state,
            flush: None,
            is_flushed: true,
            is_idle: false,
            sent: from,
            asked: from,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let state = match &self.state {
            State::Resting { until } => Some(*until),
            State::Offered { awaited, .. } | State::Told { awaited, .. } => Some(awaited.until),
            State::Free if self.flush.is_none() => Some(self.sent.plus(HEARTBEAT)),
            State::Free | State::Body(_) => None,
        };
        state.into_iter().chain(self.flush.map(|flush| flush.until)).min()
    }

    /// Handles timeouts, the end of the initial pause and heartbeats.
    pub(crate) fn tick(&mut self, now: Now, steps: &mut VecDeque<Step>) -> Result<(), Ending> {
        let unanswered = Err(Ending::Unanswered(ANSWER_WITHIN.0 / 1_000_000));
        if self.flush.is_some_and(|flush| now.monotonic >= flush.until) {
            return unanswered;
        }
        match &self.state {
            State::Offered { awaited, .. } | State::Told { awaited, .. }
                if now.monotonic >= awaited.until =>
            {
                return unanswered;
            }
            State::Resting { until } if now.monotonic >= *until => self.free(steps),
            State::Free if self.flush.is_none() && now.monotonic >= self.sent.plus(HEARTBEAT) => {
                self.send_null(now, steps);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends a product; its bytes are requested when they are needed.
    pub(crate) fn product(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) {
        if !matches!(self.state, State::Free) {
            return;
        }
        self.is_idle = false;
        if !self.is_flushed && self.flush.is_none() && now.monotonic >= self.asked.plus(LONGEST_UNANSWERED) {
            self.send_null(now, steps);
        }
        match self.how {
            _ if info.size > LARGEST_BYTES => self.free(steps),
            How::Notes => self.note(now, info, steps),
            How::Whole { up_to_bytes } if info.size <= up_to_bytes => self.here_is(now, info, steps),
            How::Whole { .. } | How::Asked => self.offer(now, info, steps),
        }
    }

    /// True while a product waits for its bytes.
    pub(crate) fn is_begun(&self) -> bool {
        matches!(self.state, State::Body(_) | State::Told { then: Some(_), .. })
    }

    /// True if everything was sent and the peer has answered a NULLPROC after it.
    pub(crate) fn is_flushed(&self) -> bool {
        self.is_flushed && self.flush.is_none() && matches!(self.state, State::Free)
    }

    /// Handles the lack of a further product: sends a NULLPROC if something was sent since the last one and none is
    /// outstanding. Its reply shows that the peer has processed everything before it.
    pub(crate) fn nothing_more(&mut self, now: Now, steps: &mut VecDeque<Step>) {
        self.is_idle = matches!(self.state, State::Free);
        if self.is_idle && self.flush.is_none() && !self.is_flushed {
            self.send_null(now, steps);
        }
    }

    /// Sends bytes of the current product.
    pub(crate) fn bytes(&mut self, now: Now, mut bytes: Bytes, steps: &mut VecDeque<Step>) {
        let State::Body(body) = &mut self.state else {
            return;
        };
        bytes.truncate(body.block_left as usize);
        let sent = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        body.block_left = body.block_left.saturating_sub(sent);
        body.left = body.left.saturating_sub(sent);
        if !bytes.is_empty() {
            steps.push_back(Step::Send(bytes));
        }
        self.sent = now.monotonic;
        self.go_on(now, steps);
    }

    /// Takes the answer to a call. An unexpected answer is ignored: LDM's notifyme answers each call twice,
    /// and a receiver may complain of a call that version 6 leaves without an answer.
    pub(crate) fn reply(
        &mut self,
        now: Now,
        xid: u32,
        status: Status,
        result: Reader,
        steps: &mut VecDeque<Step>,
    ) -> Result<(), Ending> {
        let is_flush = self.flush.is_some_and(|flush| flush.xid == xid);
        if !is_flush && !self.state.awaits(xid) {
            return Ok(());
        }
        if status != Status::Success {
            return Err(status.into());
        }
        if is_flush {
            self.flushed(now, steps);
            return Ok(());
        }
        self.answered(now, result, steps)
    }

    fn flushed(&mut self, now: Now, steps: &mut VecDeque<Step>) {
        self.flush = None;
        steps.push_back(Step::Answered);
        // Data sent after that NULLPROC need a reply as well, without waiting for the next heartbeat.
        if self.is_idle && !self.is_flushed {
            self.send_null(now, steps);
        }
    }

    fn answered(&mut self, now: Now, mut result: Reader, steps: &mut VecDeque<Step>) -> Result<(), Ending> {
        let code = result.u32()?;
        let next = match std::mem::replace(&mut self.state, State::Free) {
            State::Offered { info, .. } => Some(Body::of(info)),
            State::Told { then, .. } => then,
            other => {
                self.state = other;
                return Ok(());
            }
        };
        match (code, next) {
            (OK, Some(body)) => self.begin_block(now, body, steps),
            (OK | DONT_SEND, _) => self.free(steps),
            // A receiver of version 5 reports with its class that this product is too old for it.
            (RECLASS, _) if self.version == Version::Five => self.free(steps),
            (code, _) => return Err(unusable(code)),
        }
        Ok(())
    }

    fn note(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) {
        let (xid, mut body) = self.call(NOTIFICATION);
        info.encode(&mut body);
        self.send(now, record(&body), steps);
        self.told(now, xid, None, steps);
    }

    fn here_is(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) {
        let (xid, mut body) = self.call(HEREIS);
        info.encode(&mut body);
        let size = info.size as usize;
        self.send(now, record_begin(&body, size.saturating_add(padding(size))), steps);
        let bytes = info.size;
        self.state = State::Body(Body { xid, block_left: bytes, block_bytes: bytes, ..Body::of(info) });
        self.go_on(now, steps);
    }

    fn offer(&mut self, now: Now, info: ProductInfo, steps: &mut VecDeque<Step>) {
        let (xid, mut body) = self.call(COMINGSOON);
        info.encode(&mut body);
        body.put_u32(self.block_bytes(info.size));
        self.send(now, record(&body), steps);
        self.state = State::Offered { awaited: awaited(now, xid), info };
    }

    fn begin_block(&mut self, now: Now, body: Body, steps: &mut VecDeque<Step>) {
        let bytes = self.block_bytes(body.left);
        let (xid, mut head) = self.call(BLKDATA);
        head.put_slice(&body.info.signature.0);
        head.put_u32(body.next_block);
        head.put_u32(bytes);
        let later = (bytes as usize).saturating_add(padding(bytes as usize));
        self.send(now, record_begin(&head, later), steps);
        let next_block = body.next_block.saturating_add(1);
        self.state = State::Body(Body { xid, block_left: bytes, block_bytes: bytes, next_block, ..body });
        self.go_on(now, steps);
    }

    /// Requests further bytes, or completes the call if it has all of them.
    fn go_on(&mut self, now: Now, steps: &mut VecDeque<Step>) {
        match std::mem::replace(&mut self.state, State::Free) {
            State::Body(body) if body.block_left > 0 => {
                steps.push_back(Step::Want(Want::Bytes(body.block_left)));
                self.state = State::Body(body);
            }
            State::Body(body) => {
                let zeros = padding_of(body.block_bytes);
                if !zeros.is_empty() {
                    steps.push_back(Step::Send(zeros));
                }
                let xid = body.xid;
                self.told(now, xid, (body.left > 0).then_some(body), steps);
            }
            other => self.state = other,
        }
    }

    /// Handles the end of a call with a product or its description: only version 5 waits for a reply.
    fn told(&mut self, now: Now, xid: u32, then: Option<Body>, steps: &mut VecDeque<Step>) {
        if self.version == Version::Five {
            self.state = State::Told { awaited: awaited(now, xid), then };
        } else {
            self.free(steps);
        }
    }

    fn free(&mut self, steps: &mut VecDeque<Step>) {
        self.state = State::Free;
        steps.push_back(Step::Want(Want::Product));
    }

    fn send_null(&mut self, now: Now, steps: &mut VecDeque<Step>) {
        let (xid, body) = self.call(NULLPROC);
        self.send(now, record(&body), steps);
        self.flush = Some(awaited(now, xid));
        self.is_flushed = true;
        self.asked = now.monotonic;
        steps.push_back(Step::Asked);
    }

    fn send(&mut self, now: Now, bytes: Bytes, steps: &mut VecDeque<Step>) {
        self.sent = now.monotonic;
        self.is_flushed = false;
        steps.push_back(Step::Send(bytes));
    }

    fn call(&mut self, procedure: u32) -> (u32, BytesMut) {
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1);
        (xid, call(xid, self.version.number(), procedure))
    }

    fn block_bytes(&self, left: u32) -> u32 {
        if self.version == Version::Five { left.min(VERSION_FIVE_BLOCK_BYTES) } else { left }
    }
}

impl State {
    /// True while the answer to this call is outstanding.
    fn awaits(&self, xid: u32) -> bool {
        match self {
            Self::Offered { awaited, .. } | Self::Told { awaited, .. } => awaited.xid == xid,
            Self::Resting { .. } | Self::Free | Self::Body(_) => false,
        }
    }
}

impl Body {
    fn of(info: ProductInfo) -> Self {
        Self { left: info.size, info, block_left: 0, block_bytes: 0, next_block: 0, xid: 0 }
    }
}

fn awaited(now: Now, xid: u32) -> Awaited {
    Awaited { xid, until: now.monotonic.plus(ANSWER_WITHIN) }
}

fn unusable(code: u32) -> Ending {
    Ending::Failed(format!("it answers a product with code {code}, which is not supported here"))
}

/// LDM's timeout for a reply.
pub(crate) const ANSWER_WITHIN: Micros = Micros::from_secs(60);

/// A NULLPROC interrupts an uninterrupted stream of products this often: its answer is the only sign of the
/// products' arrival.
const LONGEST_UNANSWERED: Micros = Micros::from_secs(5);

/// Idle time after which an upstream sends a heartbeat.
const HEARTBEAT: Micros = Micros::from_secs(30);

/// Size limit of a product: a larger one, with its header, does not fit into one fragment.
pub(crate) const LARGEST_BYTES: u32 = (1 << 31) - 1_024;
