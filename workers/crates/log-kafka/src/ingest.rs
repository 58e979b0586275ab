//! Appending: products are compared with the copy, numbered by the brokers, and written into the copy.

use std::{
    io::{self, Read},
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{
    Appended, Clock, Draft, LogError, NewProduct, Numbered, ProductLog as _, SharedLog as _,
};
use downburst_model::{Epoch, Sequence};

use crate::{
    KafkaLog,
    follower::Passed,
    locks::lock,
    record::{Random, Upload},
    topic,
    writer::{Failure, LARGE_BYTES, PartSent, Writer, random},
};

/// The writer of a feed, with its state.
pub(crate) struct Ingest {
    /// Distinguishes the openings of this writer from those of others.
    me: Random,
    epoch: Epoch,
    state: State,
    /// The findings since the last opening.
    passed: Passed,
}

pub(crate) enum State {
    Ready(Box<Writer>),
    /// It must be reopened, and the copy may lack stored products.
    Broken {
        since: Instant,
        /// The time when the brokers reported another writer. They also do so after a transaction that took too
        /// long.
        fenced: Option<Instant>,
    },
    /// Another node is the writer.
    Fenced,
}

/// The work that an append requires of the writer before it continues.
#[derive(Default)]
struct Waiting {
    /// The transaction without an answer, and the positions of its products in the call.
    unsettled: Option<(Random, Vec<usize>)>,
    /// Products of it that turned out to be stored.
    settled: Vec<(usize, Sequence)>,
}

impl Waiting {
    /// Takes the findings about the products of the transaction without an answer.
    fn settle(&mut self, passed: &mut Passed) {
        let Some((_, places)) = self.unsettled.take() else { return };
        let place = |(at, sequence): (u32, Sequence)| Some((*places.get(at as usize)?, sequence));
        self.settled = passed.of_batch.drain(..).filter_map(place).collect();
    }
}

type Result_ = Result<Appended, LogError>;

impl Ingest {
    /// Announces in the topic that this is the writer from here on. Records refused by brokers that have just
    /// started are repeated by a newly opened writer.
    pub(crate) fn begin_patiently(
        mut writer: Writer,
        epoch: Epoch,
        until: Instant,
    ) -> Result<Self, LogError> {
        let me = random()?;
        loop {
            match writer.begin(epoch, me) {
                Ok(_) => return Ok(Self::ready(writer, epoch, me)),
                Err(Failure::Refused(_) | Failure::Lost(_) | Failure::Unsettled(..))
                    if Instant::now() < until => {}
                Err(failure) => return Err(failure.into_error_of_opening()),
            }
            thread::sleep(AGAIN_AFTER);
            writer = writer.anew(until)?;
        }
    }

    fn ready(writer: Writer, epoch: Epoch, me: Random) -> Self {
        Self { me, epoch, state: State::Ready(Box::new(writer)), passed: Passed::default() }
    }

    fn fail(&mut self) {
        let since = Instant::now();
        let is_fenced = matches!(&self.state, State::Ready(writer) if writer.is_fenced());
        self.state = State::Broken { since, fenced: is_fenced.then_some(since) };
    }

    /// True if the brokers fenced this writer, which leaves open whether another took over.
    fn is_in_doubt(&self) -> bool {
        matches!(self.state, State::Broken { fenced: Some(_), .. })
    }

    fn another_opened(&self) -> bool {
        self.passed.writer.is_some_and(|writer| writer != self.me)
    }
}

impl KafkaLog {
    /// Waits a limited time for unavailable brokers, then refuses the products that are not stored.
    pub(crate) fn ingest_all(&self, products: &[(NewProduct, Bytes)], clock: Clock<'_>) -> Vec<Result_> {
        let Some(ingest) = &self.ingest else {
            return products.iter().map(|_| Err(self.only_copied())).collect();
        };
        let (mut ingest, until) = (lock(ingest), Instant::now() + PATIENCE);
        let mut results: Vec<Option<Result_>> = products.iter().map(|_| None).collect();
        let mut waiting = Waiting::default();
        loop {
            let ready = self.make_ready(&mut ingest, &mut waiting, until);
            for (place, sequence) in waiting.settled.drain(..) {
                let stored = self.stored(sequence);
                results.get_mut(place).map(|result| result.insert(stored));
            }
            let open: Vec<usize> =
                (0..products.len()).filter(|at| results.get(*at).is_some_and(Option::is_none)).collect();
            let Err(error) = ready
                .and_then(|()| self.try_all(&mut ingest, products, &open, &mut results, &mut waiting, clock))
            else {
                break;
            };
            if Instant::now() >= until || self.is_final(&ingest) {
                for result in results.iter_mut().filter(|result| result.is_none()) {
                    *result = Some(Err(again(&error)));
                }
                break;
            }
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| Err(self.closed()))).collect()
    }

    /// Reopens a broken writer, so that the next product need not wait for it. Tries nothing while no broker
    /// answers: that takes longer than a product may wait.
    pub(crate) fn open_again_if_broken(&self) {
        let Some(ingest) = &self.ingest else { return };
        let mut ingest = lock(ingest);
        let is_broken = matches!(ingest.state, State::Broken { .. }) && !self.is_stopped();
        if is_broken && topic::answers(&self.follower.cluster, &self.follower.topic) {
            // If it is still broken, the next call tries again, and the next product reports the error.
            let _ = self.open_again(&mut ingest, &mut Waiting::default());
        }
    }

    /// Sends parts as they are read; a refused product leaves only parts that are ignored.
    pub(crate) fn ingest_from(&self, product: NewProduct, bytes: &mut dyn Read, clock: Clock<'_>) -> Result_ {
        let mut start = Vec::new();
        let read = bytes.take(LARGE_BYTES as u64).read_to_end(&mut start);
        read.map_err(|source| LogError::Source { id: product.id.clone(), source })?;
        if start.len() < LARGE_BYTES {
            let mut results = self.ingest_all(&[(product, Bytes::from(start))], clock);
            return results.pop().unwrap_or_else(|| Err(self.closed()));
        }
        let Some(ingest) = &self.ingest else { return Err(self.only_copied()) };
        let (mut ingest, until) = (lock(ingest), Instant::now() + PATIENCE);
        let mut waiting = Waiting::default();
        self.make_ready(&mut ingest, &mut waiting, until)?;
        let sent =
            self.try_large(&mut ingest, &mut waiting, product, &mut start.as_slice().chain(bytes), clock);
        if waiting.unsettled.is_none() && !ingest.is_in_doubt() {
            return sent;
        }
        self.make_ready(&mut ingest, &mut waiting, until)?;
        waiting.settled.pop().map_or(sent, |(_, sequence)| self.stored(sequence))
    }

    /// Tries the open products; an error is the reason why some are still open.
    fn try_all(
        &self,
        ingest: &mut Ingest,
        products: &[(NewProduct, Bytes)],
        open: &[usize],
        results: &mut [Option<Result_>],
        waiting: &mut Waiting,
        clock: Clock<'_>,
    ) -> Result<(), LogError> {
        let State::Ready(writer) = &ingest.state else { return Err(self.closed()) };
        let tried = open.iter().filter_map(|at| products.get(*at)).cloned().collect();
        let (mut failed, mut places) = (None, Vec::new());
        let Numbered { results: found, copied } =
            self.copy().append_all_numbered(tried, clock, &mut |drafts| {
                if failed.is_some() {
                    return None;
                }
                writer
                    .number(drafts)
                    .map_err(|failure| {
                        places = drafts.iter().filter_map(|draft| open.get(draft.place()).copied()).collect();
                        failed = Some(failure);
                    })
                    .ok()
            });
        for (at, found) in open.iter().zip(found) {
            if let (Some(result), Some(found)) = (results.get_mut(*at), found) {
                *result = Some(found);
            }
        }
        if let Err(error) = copied {
            self.copy_lags(ingest, error);
        }
        match failed {
            Some(failure) => Err(self.failed(ingest, failure, waiting, places)),
            None if results.iter().any(Option::is_none) => Err(self.closed()),
            None => Ok(()),
        }
    }

    fn try_large(
        &self,
        ingest: &mut Ingest,
        waiting: &mut Waiting,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result_ {
        let State::Ready(writer) = &mut ingest.state else { return Err(self.closed()) };
        let upload = match writer.upload() {
            Ok(upload) => upload,
            Err(failure) => return Err(self.failed(ingest, failure, waiting, vec![0])),
        };
        let mut sender = Sender { writer, upload, sent: Vec::new(), part: Vec::new(), failed: None };
        let mut failed = None;
        let shared = std::cell::RefCell::new(&mut sender);
        let (appended, copied) =
            self.copy().append_numbered(product, &mut Tee { bytes, sender: &shared }, clock, &mut |draft| {
                let numbered = shared.borrow_mut().number(draft);
                numbered.map_err(|failure| {
                    failed = Some(failure);
                    self.closed()
                })
            });
        let failed = failed.or_else(|| sender.failed.take());
        if let Err(error) = copied {
            self.copy_lags(ingest, error);
        }
        match failed {
            Some(failure) => Err(self.failed(ingest, failure, waiting, vec![0])),
            None => appended,
        }
    }

    /// Reopens the writer, with repeated attempts for a limited time.
    fn make_ready(&self, ingest: &mut Ingest, waiting: &mut Waiting, until: Instant) -> Result<(), LogError> {
        loop {
            match &ingest.state {
                State::Ready(_) => return Ok(()),
                State::Fenced => return Err(LogError::Fenced { feed: self.feed().clone() }),
                State::Broken { .. } if self.is_stopped() => return Err(self.closed()),
                State::Broken { .. } => {}
            }
            match self.open_again(ingest, waiting) {
                Ok(()) => {}
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => thread::sleep(AGAIN_AFTER),
            }
        }
    }

    fn open_again(&self, ingest: &mut Ingest, waiting: &mut Waiting) -> Result<(), LogError> {
        ingest.passed.look_for(waiting.unsettled.as_ref().map(|(batch, _)| *batch));
        self.look_for_another(ingest)?;
        if ingest.another_opened() {
            // Avoids fencing the other writer in turn.
            waiting.settle(&mut ingest.passed);
            self.displaced(ingest);
            return Ok(());
        }
        let mut writer = Writer::open(&self.follower.cluster, self.feed(), &self.follower.topic)?;
        // The open transaction is now committed or aborted.
        self.follower.catch_up(&mut ingest.passed)?;
        waiting.settle(&mut ingest.passed);
        if let Err(failure) = writer.begin(ingest.epoch, ingest.me) {
            if let (true, State::Broken { fenced, .. }) = (writer.is_fenced(), &mut ingest.state) {
                *fenced = Some(Instant::now());
            }
            return Err(failure.into_error_of_opening());
        }
        if let State::Broken { since, .. } = &ingest.state {
            let seconds = since.elapsed().as_secs_f64();
            self.say(format!("feed {}: products are stored again, after {seconds:.1} s", self.feed()));
        }
        *ingest = Ingest::ready(writer, ingest.epoch, ingest.me);
        Ok(())
    }

    /// Reads to the end. If the brokers reported another writer, waits for its opening: there is none if the cause
    /// was only a stall of this node during a transaction.
    fn look_for_another(&self, ingest: &mut Ingest) -> Result<(), LogError> {
        loop {
            self.follower.catch_up(&mut ingest.passed)?;
            let State::Broken { fenced: Some(fenced), .. } = ingest.state else { return Ok(()) };
            if ingest.another_opened() || fenced.elapsed() > OPENING_COMES_WITHIN {
                return Ok(());
            }
            thread::sleep(AGAIN_AFTER);
        }
    }

    /// Applies a failure to the remaining products and to the writer.
    fn failed(
        &self,
        ingest: &mut Ingest,
        failure: Failure,
        waiting: &mut Waiting,
        places: Vec<usize>,
    ) -> LogError {
        let feed = self.feed().clone();
        match failure {
            Failure::Fenced => {
                let error = LogError::Store { sentence: FENCED.to_owned() };
                self.breaks(ingest, &error);
                error
            }
            Failure::Refused(error) | Failure::Lost(error) => {
                self.breaks(ingest, &error);
                error
            }
            Failure::Unsettled(batch, reason) => {
                waiting.unsettled = Some((batch, places));
                let error = LogError::Unsettled { feed, reason };
                self.breaks(ingest, &error);
                error
            }
        }
    }

    /// This node stops ingesting; its sites receive the products stored by the other node.
    fn displaced(&self, ingest: &mut Ingest) {
        let feed = self.feed();
        self.say(format!(
            "another hub ingests feed {feed} now; nothing is ingested here until this node is restarted"
        ));
        ingest.state = State::Fenced;
        if let Err(error) = self.follow() {
            self.say(error.to_string());
        }
    }

    /// Ingest waits; the senders keep the products until they are acknowledged.
    fn breaks(&self, ingest: &mut Ingest, why: &LogError) {
        let feed = self.feed();
        self.say(format!("feed {feed}: {why}; products wait, and are acknowledged once they are stored"));
        ingest.fail();
    }

    /// The products are stored; the copy is completed from the topic before more are accepted.
    fn copy_lags(&self, ingest: &mut Ingest, error: LogError) {
        self.say(format!(
            "the copy of feed {} lacks products that are stored: {error}; it gets them again",
            self.feed()
        ));
        ingest.fail();
    }

    fn is_final(&self, ingest: &Ingest) -> bool {
        matches!(ingest.state, State::Fenced) || self.is_stopped()
    }

    fn stored(&self, sequence: Sequence) -> Result_ {
        match self.copy().entry(sequence)? {
            Some(entry) => Ok(Appended::Stored { sequence, info: entry.info }),
            None => Err(self.closed()),
        }
    }

    fn closed(&self) -> LogError {
        LogError::Closed { feed: self.feed().clone() }
    }

    fn only_copied(&self) -> LogError {
        LogError::OnlyCopied { feed: self.feed().clone() }
    }
}

/// Sends the bytes that are read, in parts.
struct Sender<'a> {
    writer: &'a Writer,
    upload: Upload,
    sent: Vec<PartSent>,
    part: Vec<u8>,
    failed: Option<Failure>,
}

impl Sender<'_> {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(LARGE_BYTES - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = later;
            if self.part.len() == LARGE_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failure> {
        self.sent.push(self.writer.part(&mut self.upload, &self.part)?);
        self.part.clear();
        Ok(())
    }

    /// The manifest follows once all parts are stored.
    fn number(&mut self, draft: &Draft<'_>) -> Result<Sequence, Failure> {
        if !self.part.is_empty() {
            self.send()?;
        }
        self.writer.finish(&self.sent)?;
        self.writer.number_uploaded(draft, self.upload.clone())
    }
}

/// Passes on the bytes that are read to the sender.
struct Tee<'a, 'b, 'c> {
    bytes: &'a mut dyn Read,
    sender: &'a std::cell::RefCell<&'b mut Sender<'c>>,
}

impl Read for Tee<'_, '_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let mut sender = self.sender.borrow_mut();
        sender.take(buffer.get(..count).unwrap_or_default()).map_err(|failure| {
            sender.failed = Some(failure);
            io::Error::other("Kafka did not take a part of it")
        })?;
        Ok(count)
    }
}

impl Failure {
    fn into_error_of_opening(self) -> LogError {
        match self {
            Self::Refused(error) | Self::Lost(error) => error,
            Self::Fenced => LogError::Store {
                sentence: "another hub opened the feed's log at the same time; stop one of the two"
                    .to_owned(),
            },
            Self::Unsettled(_, reason) => LogError::Store {
                sentence: format!("Kafka did not confirm that the feed's log was opened: {reason}"),
            },
        }
    }
}

/// The same error, for another product.
fn again(error: &LogError) -> LogError {
    match error {
        LogError::Fenced { feed } => LogError::Fenced { feed: feed.clone() },
        LogError::Closed { feed } => LogError::Closed { feed: feed.clone() },
        LogError::Unsettled { feed, reason } => {
            LogError::Unsettled { feed: feed.clone(), reason: reason.clone() }
        }
        error => LogError::Store { sentence: error.to_string() },
    }
}

/// The sender of a product learns its outcome within half a minute.
const PATIENCE: Duration = Duration::from_secs(15);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// A writer that fences another announces itself next in the topic, some round trips later.
const OPENING_COMES_WITHIN: Duration = Duration::from_secs(3);
const FENCED: &str = "Kafka ended this node's turn: another hub ingests the feed, or the node was stalled for \
    longer than a transaction may take";
