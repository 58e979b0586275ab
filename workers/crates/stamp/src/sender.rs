//! The sender: makes requests and takes their answers.
use downburst_model::Micros;
use thiserror::Error;

use crate::estimate::ErrorEstimate;
use crate::exchange::Exchange;
use crate::key::Key;
use crate::packet::{Answer, Malformed, Request, base_octets};
use crate::report::{Report, summarize};
use crate::time::{Format, WallNanos};
use crate::tlv::{self, Extension};

/// The settings of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderSettings {
    /// The shared key: requests are authenticated, and so must be their answers.
    pub key: Option<Key>,
    /// The session's identifier; 0: none.
    pub session: u16,
    /// The format of stamps.
    pub format: Format,
    /// Octets of padding behind each request; answers are as large.
    pub padding: usize,
    /// Asks for this sender's address as the reflector sees it.
    pub location: bool,
    /// The reflector is known to count the answers of each session.
    pub stateful: bool,
}

/// A datagram that is no new answer, with the reason.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotTaken {
    /// No answer of this mode, or not of the shared key.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It repeats no request of this sender.
    #[error("the answer repeats no request of this session")]
    NotAsked,
    /// The request has been answered before.
    #[error("the request has been answered already")]
    Duplicate,
}

/// One run of requests.
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    sent: Vec<Sent>,
    exchanges: Vec<Exchange>,
    extension: Extension,
    duplicated: u64,
    not_taken: u64,
}

#[derive(Debug)]
struct Sent {
    at: Micros,
    wall: WallNanos,
    stamp: u64,
    error: Option<u64>,
    answered: bool,
}

impl Sender {
    /// The most requests of one run.
    pub const MOST_REQUESTS: usize = 100_000;

    /// A run without requests.
    pub fn new(settings: SenderSettings) -> Self {
        let (sent, exchanges) = (Vec::new(), Vec::new());
        Self { settings, sent, exchanges, extension: Extension::default(), duplicated: 0, not_taken: 0 }
    }

    /// The next request, which leaves at this moment of the two clocks. `None`: the run has its most requests.
    pub fn request(&mut self, at: Micros, wall: WallNanos, mut estimate: ErrorEstimate) -> Option<Vec<u8>> {
        let sequence = self.sent.len();
        if sequence >= Self::MOST_REQUESTS {
            return None;
        }
        estimate.format = self.settings.format;
        let stamp = estimate.format.encode(wall);
        let error = estimate.nanos().filter(|_| estimate.synchronized);
        self.sent.push(Sent { at, wall, stamp, error, answered: false });
        let sequence = u32::try_from(sequence).unwrap_or(u32::MAX);
        let request = Request { sequence, stamp, estimate, session: self.settings.session };
        Some(self.extended(request.write(self.settings.key.as_ref())))
    }

    fn extended(&self, mut packet: Vec<u8>) -> Vec<u8> {
        let key = self.settings.key.as_ref();
        if self.settings.location {
            tlv::push_location_request(&mut packet);
            if let Some(key) = key {
                tlv::push_tag(&mut packet, base_octets(Some(key)), key);
            }
        }
        tlv::push_padding(&mut packet, self.settings.padding);
        packet
    }

    /// Takes a datagram that arrived at this moment of the two clocks; `wall` is the kernel's stamp where there is one.
    pub fn take(&mut self, octets: &[u8], at: Micros, wall: WallNanos) -> Result<(), NotTaken> {
        let taken = self.consider(octets, at, wall);
        match taken {
            Ok(()) => {}
            Err(NotTaken::Duplicate) => self.duplicated = self.duplicated.saturating_add(1),
            Err(_) => self.not_taken = self.not_taken.saturating_add(1),
        }
        taken
    }

    fn consider(&mut self, octets: &[u8], at: Micros, wall: WallNanos) -> Result<(), NotTaken> {
        let key = self.settings.key.as_ref();
        let answer = Answer::read(octets, key)?;
        let sequence = usize::try_from(answer.request_sequence).map_err(|_| NotTaken::NotAsked)?;
        let sent = self.sent.get_mut(sequence).filter(|sent| sent.stamp == answer.request_stamp);
        let sent = sent.ok_or(NotTaken::NotAsked)?;
        if sent.answered {
            return Err(NotTaken::Duplicate);
        }
        sent.answered = true;
        let elapsed = Micros(at.0.saturating_sub(sent.at.0));
        let exchange = Exchange { sent: sent.wall, answered: wall, sent_error: sent.error, answer, elapsed };
        self.exchanges.push(exchange);
        let extension = tlv::read(octets.get(base_octets(key)..).unwrap_or_default());
        self.extension.seen_as = self.extension.seen_as.or(extension.seen_as);
        self.extension.unrecognized = self.extension.unrecognized.max(extension.unrecognized);
        self.extension.refused = self.extension.refused.max(extension.refused);
        Ok(())
    }

    /// Whether each request has its answer.
    pub fn is_answered(&self) -> bool {
        self.exchanges.len() == self.sent.len()
    }

    /// The run so far. A request without an answer counts as lost.
    pub fn report(&self) -> Report {
        let mut report = summarize(self.sent.len(), &self.exchanges, self.settings.stateful);
        report.duplicated = self.duplicated;
        report.not_taken = self.not_taken;
        report.seen_as = self.extension.seen_as;
        report.unrecognized_extensions = self.extension.unrecognized;
        report.refused_extensions = self.extension.refused;
        report
    }
}
