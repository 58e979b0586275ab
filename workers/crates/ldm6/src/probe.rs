use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::{Machine, Micros, Now};

use crate::ending::Ending;
use crate::listener::{Heard, Listener};
use crate::product_sender::ANSWER_WITHIN;
use crate::wire::record::record;
use crate::wire::rpc::{Status, call};
use crate::wire::versions::{NULLPROC, Version};

/// Checks over an established connection whether another LDM answers.
#[derive(Debug)]
pub struct Probe {
    version: Version,
    xid: u32,
    until: Option<Micros>,
    listener: Listener,
    outputs: VecDeque<ProbeOutput>,
}

/// Inputs of a [`Probe`].
#[derive(Clone, Debug)]
pub enum ProbeInput {
    /// Received bytes.
    Received(Bytes),
    /// The connection is lost.
    Disconnected,
}

/// Outputs of a [`Probe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutput {
    /// Send these bytes.
    Send(Bytes),
    /// The peer answers, in this version.
    Answers(Version),
    /// The probe failed.
    Ended(Ending),
}

impl Probe {
    /// Sends a NULLPROC in version 6, and in version 5 if that is refused.
    pub fn new(now: Now, first_xid: u32) -> Self {
        let mut probe = Self {
            version: Version::Six,
            xid: first_xid,
            until: None,
            listener: Listener::default(),
            outputs: VecDeque::new(),
        };
        probe.ask(now);
        probe
    }

    fn ask(&mut self, now: Now) {
        self.until = Some(now.monotonic.plus(ANSWER_WITHIN));
        let question = call(self.xid, self.version.number(), NULLPROC);
        self.outputs.push_back(ProbeOutput::Send(record(&question)));
    }

    fn hear(&mut self, now: Now, bytes: Bytes) -> Result<(), Ending> {
        self.listener.push(bytes)?;
        while self.until.is_some() {
            match self.listener.next()? {
                None => break,
                Some(Heard::Reply { xid, status, .. }) if xid == self.xid => self.answered(now, status)?,
                Some(Heard::Reply { .. }) => {}
                Some(_) => return Err(Ending::Garbled("it sends a call instead of an answer".to_owned())),
            }
        }
        Ok(())
    }

    fn answered(&mut self, now: Now, status: Status) -> Result<(), Ending> {
        match (status, self.version) {
            (Status::Success, version) => self.end(ProbeOutput::Answers(version)),
            (Status::ProgramMismatch { low, high }, Version::Six) if (low..=high).contains(&5) => {
                self.version = Version::Five;
                self.xid = self.xid.wrapping_add(1);
                self.ask(now);
            }
            (status, _) => return Err(status.into()),
        }
        Ok(())
    }

    fn end(&mut self, output: ProbeOutput) {
        if self.until.take().is_some() {
            self.outputs.push_back(output);
        }
    }
}

impl Machine for Probe {
    type Input = ProbeInput;
    type Output = ProbeOutput;

    fn handle(&mut self, now: Now, input: ProbeInput) {
        let done = match input {
            ProbeInput::Received(bytes) => self.hear(now, bytes),
            ProbeInput::Disconnected => Err(Ending::Disconnected),
        };
        if let Err(why) = done {
            self.end(ProbeOutput::Ended(why));
        }
    }

    fn poll(&mut self, now: Now) -> Option<ProbeOutput> {
        if self.until.is_some_and(|until| now.monotonic >= until) {
            self.end(ProbeOutput::Ended(Ending::Unanswered(ANSWER_WITHIN.0 / 1_000_000)));
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        self.until
    }
}
