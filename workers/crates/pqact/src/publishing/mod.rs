//! Products on their way to a broker: placed, sent, and over once the broker has answered.
//!
//! A broker that is away or refuses is no failure of a product: it waits, and the line's place in the log stays before
//! it. A product that can't be placed is tried as often as other actions are.
mod dataset_record;
mod placing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use downburst_model::WallMicros;
use downburst_publish::{Answer, Outlet};
use downburst_wis2::{Broker, Message, Publisher};

use super::failure::{Failure, Then};
use super::notifier::Notifier;
use super::programs::pause;
use super::stop::Stop;
use super::task::{Job, Work};
use dataset_record::DatasetRecord;
use placing::{Placed, place};

/// The products of one line that are under way.
pub(super) struct Announcements {
    directory: PathBuf,
    notifier: Arc<Notifier>,
    outlet: Option<(Broker, Outlet)>,
    slots: Vec<Slot>,
    record: DatasetRecord,
    /// So many are under way that the log is not read until half of them are over.
    is_full: bool,
    /// The last token.
    token: u64,
    /// The broker's last refusal, and whether it is news.
    refusal: Option<(String, bool)>,
}

/// A product and its notification.
struct Slot {
    job: Job,
    attempts: u32,
    state: State,
}

enum State {
    /// It could not be placed; the next attempt is due at this time.
    Rests(Failure, Instant),
    /// It is to be sent at this time, or as soon as there is a connection.
    Due(Placed, Instant),
    Sent(Placed, u64),
    Over(Result<(), Failure>),
}

impl Announcements {
    pub(super) fn new(directory: &Path, notifier: Arc<Notifier>) -> Self {
        let directory = directory.to_owned();
        let record = DatasetRecord::default();
        Self {
            directory,
            notifier,
            outlet: None,
            slots: Vec::new(),
            record,
            is_full: false,
            token: 0,
            refusal: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// True if no more products are to be read.
    pub(super) fn is_full(&mut self) -> bool {
        let most = if self.is_full { Outlet::MOST / 2 } else { Outlet::MOST };
        self.is_full = self.slots.len() >= most;
        self.is_full
    }

    /// True if a product with this id has to wait: too many are under way, or an earlier one of this id is.
    pub(super) fn must_wait(&mut self, id: &str) -> bool {
        self.is_full() || self.slots.iter().any(|slot| slot.job.about.id.as_str() == id)
    }

    /// Forgets what is under way; the log still has it.
    pub(super) fn forget(&mut self) {
        self.slots.clear();
        self.refusal = None;
    }

    /// Places a product, and sends its notification.
    pub(super) fn begin(&mut self, job: Job) {
        let state = placed(&job, &self.directory);
        self.slots.push(Slot { job, attempts: 1, state });
    }

    /// Returns the jobs that are over or were stopped, with the number of attempts.
    pub(super) fn ended(&mut self, stop: &Stop) -> Vec<(Job, u32, Result<(), Failure>)> {
        if stop.is_asked() {
            let stopped = |slot: Slot| (slot.job, slot.attempts, Err(Failure::stopped()));
            return std::mem::take(&mut self.slots).into_iter().map(stopped).collect();
        }
        self.hear();
        self.advance();
        let (over, left) = std::mem::take(&mut self.slots)
            .into_iter()
            .partition(|slot| matches!(slot.state, State::Over(_)));
        self.slots = left;
        let over: Vec<Slot> = over;
        over.into_iter().filter_map(Slot::result).collect()
    }

    /// A job that waits for the broker, with the reason, if that reason is new.
    pub(super) fn news(&mut self) -> Option<(&Job, String)> {
        let (sentence, is_news) = self.refusal.as_mut()?;
        let first = self.slots.first()?;
        std::mem::take(is_news).then(|| (&first.job, sentence.clone()))
    }

    /// Announces the record of this publisher's dataset when it is due; `None`: the rules have no record.
    pub(super) fn keep_record(&mut self, publisher: Option<&Publisher>, now: WallMicros) {
        self.record.look(publisher, now, &self.directory);
    }

    /// A new fault of the record, or the end of the last one.
    pub(super) fn record_news(&mut self) -> Option<Option<String>> {
        self.record.news()
    }

    /// Ends the connection.
    pub(super) fn close(&mut self) {
        self.outlet = None;
    }

    /// Takes the broker's answers.
    fn hear(&mut self) {
        let Some((_, outlet)) = &self.outlet else { return };
        let answers = outlet.answers();
        let fault = outlet.fault();
        for (token, answer) in answers {
            if self.record.answered(token, &answer) {
                continue;
            }
            if answer == Answer::Taken {
                self.refusal = None;
            }
            let sent = |slot: &&mut Slot| matches!(slot.state, State::Sent(_, of) if of == token);
            let Some(slot) = self.slots.iter_mut().find(sent) else { continue };
            if let Some(sentence) = slot.answered(answer) {
                self.refused(&sentence);
            }
        }
        if !fault.is_empty() {
            self.record.waits(&fault);
            self.refused(&fault);
        }
    }

    fn refused(&mut self, sentence: &str) {
        if self.refusal.as_ref().is_none_or(|(known, _)| known != sentence) {
            self.refusal = Some((sentence.to_owned(), true));
        }
    }

    /// Sends and places what is due.
    fn advance(&mut self) {
        let now = Instant::now();
        let record =
            self.record.due(now).map(|(publisher, message)| (publisher.broker.clone(), message.clone()));
        if let Some((broker, message)) = record
            && let Some(token) = self.send(Some(broker), &message)
        {
            self.record.sent(token);
        }
        for at in 0..self.slots.len() {
            let Some(slot) = self.slots.get_mut(at) else { return };
            slot.try_placing(now, &self.directory);
            let Some(message) = slot.due(now) else { continue };
            let broker = slot.broker();
            if let Some(token) = self.send(broker, &message)
                && let Some(slot) = self.slots.get_mut(at)
            {
                slot.sent(token);
            }
        }
    }

    /// Sends a notification; its token, if there is a connection.
    fn send(&mut self, broker: Option<Broker>, message: &Message) -> Option<u64> {
        let broker = broker?;
        let is_there = self.outlet.as_ref().is_some_and(|(of, outlet)| *of == broker && !outlet.is_over());
        if !is_there {
            // What another outlet had under way is sent again.
            self.outlet = None;
            self.slots.iter_mut().for_each(Slot::lost);
            self.record.lost();
            let notifier = Arc::clone(&self.notifier);
            match Outlet::start(broker.clone(), move || notifier.notify()) {
                Ok(outlet) => self.outlet = Some((broker, outlet)),
                Err(error) => self.refused(&format!("no thread for notifications: {error}")),
            }
        }
        self.token += 1;
        self.outlet.as_ref().filter(|(_, outlet)| outlet.send(self.token, message)).map(|_| self.token)
    }
}

impl Slot {
    fn broker(&self) -> Option<Broker> {
        match &self.job.task.work {
            Work::Publish { publisher, .. } => Some(publisher.broker.clone()),
            _ => None,
        }
    }

    fn result(self) -> Option<(Job, u32, Result<(), Failure>)> {
        match self.state {
            State::Over(result) => Some((self.job, self.attempts, result)),
            _ => None,
        }
    }

    /// The notification, if it is to be sent now.
    fn due(&self, now: Instant) -> Option<Message> {
        match &self.state {
            State::Due(placed, at) if *at <= now => Some(placed.message.clone()),
            _ => None,
        }
    }

    fn sent(&mut self, token: u64) {
        self.change(|state| match state {
            State::Due(placed, _) => State::Sent(placed, token),
            other => other,
        });
    }

    fn lost(&mut self) {
        self.change(|state| match state {
            State::Sent(placed, _) => State::Due(placed, Instant::now()),
            other => other,
        });
    }

    /// Takes an answer; returns a refusal.
    fn answered(&mut self, answer: Answer) -> Option<String> {
        let (mut refusal, again) = (None, Instant::now());
        self.change(|state| match (state, answer) {
            (State::Sent(..), Answer::Taken) => State::Over(Ok(())),
            (State::Sent(placed, _), Answer::Invalid(sentence)) => {
                // It would count as announced.
                let _ = std::fs::remove_file(&placed.file);
                State::Over(Err(Failure::new(Then::GiveUp, sentence)))
            }
            (State::Sent(placed, _), Answer::Refused(sentence)) => {
                refusal = Some(sentence);
                State::Due(placed, again + REFUSED_PAUSE)
            }
            (State::Sent(placed, _), Answer::Lost(_)) => State::Due(placed, again),
            (other, _) => other,
        });
        refusal
    }

    fn try_placing(&mut self, now: Instant, directory: &Path) {
        if !matches!(self.state, State::Rests(_, at) if at <= now) {
            return;
        }
        self.state = match &self.state {
            State::Rests(failure, _)
                if failure.then != Then::WaitForRoom && self.attempts >= self.job.task.attempts =>
            {
                State::Over(Err(failure.clone()))
            }
            _ => placed(&self.job, directory),
        };
        if let State::Rests(failure, at) = &mut self.state {
            self.attempts += u32::from(failure.then != Then::WaitForRoom);
            *at = now + pause(self.attempts);
        }
    }

    fn change(&mut self, change: impl FnOnce(State) -> State) {
        self.state = change(std::mem::replace(&mut self.state, State::Over(Err(Failure::stopped()))));
    }
}

/// Places a product; the state that follows.
fn placed(job: &Job, directory: &Path) -> State {
    let Work::Publish { publisher, product } = &job.task.work else {
        return State::Over(Err(Failure::new(Then::GiveUp, "this is no announcement")));
    };
    let Some(bytes) = job.product.whole() else {
        return State::Over(Err(Failure::new(Then::GiveUp, UNREADABLE)));
    };
    match place(publisher, product, &bytes, directory) {
        Ok(None) => State::Over(Ok(())),
        Ok(Some(placed)) => State::Due(placed, Instant::now()),
        Err(failure) if failure.then == Then::GiveUp => State::Over(Err(failure)),
        Err(failure) => State::Rests(failure, Instant::now() + pause(1)),
    }
}

/// Announces one product by a connection of its own, within the task's time limit.
pub(super) fn announce(work: &Work, bytes: &[u8], directory: &Path, limit: Duration) -> Result<(), Failure> {
    let Work::Publish { publisher, product } = work else {
        return Err(Failure::new(Then::GiveUp, "this is no announcement"));
    };
    let Some(placed) = place(publisher, product, bytes, directory)? else { return Ok(()) };
    let wrong = |sentence: String| Failure::new(Then::Again, sentence);
    let notifier = Arc::new(Notifier::default());
    let its = Arc::clone(&notifier);
    let outlet = Outlet::start(publisher.broker.clone(), move || its.notify());
    let outlet = outlet.map_err(|error| wrong(error.to_string()))?;
    let (until, mut is_sent) = (Instant::now() + limit.min(ONE_LIMIT), false);
    loop {
        let counted = notifier.count();
        is_sent = is_sent || outlet.send(1, &placed.message);
        match outlet.answers().pop() {
            Some((_, Answer::Taken)) => return Ok(()),
            Some((_, Answer::Refused(sentence) | Answer::Invalid(sentence) | Answer::Lost(sentence))) => {
                return Err(wrong(sentence));
            }
            None => {}
        }
        let fault = outlet.fault();
        if !fault.is_empty() {
            return Err(wrong(fault));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(wrong("the broker has not answered in time".to_owned()));
        }
        notifier.wait(counted, left);
    }
}

const UNREADABLE: &str =
    "the disk can't return the product's bytes from the site's log; look for failures of the disk";
/// After a refusal the same notification is sent again, until the broker takes it.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
const ONE_LIMIT: Duration = Duration::from_secs(60);
