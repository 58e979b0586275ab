//! Makes and keeps the connection to one hub.
mod api;
mod ending;
mod events;
mod no_link;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use downburst_model::{FeedName, Machine, Micros, Now, ProductId};
use downburst_session::{FeedPosition, Missing, Receipt, SiteInput, SiteOutput, SiteSession, StoreResult};

pub use api::{Input, LegNews, Linked, NoLink, Output, Settings};

use crate::credentials::{Credentials, CredentialsExchange, CredentialsOrder, Next};
use crate::intake::Intake;
use crate::reconnect::{Ended, Reconnect};
use crate::release::local::LocalSoftware;
use crate::role::{News, Role};
use crate::storage::{Brought, Stored, StoredItem, StoredWhat};
use crate::storage::{Feeds, Noted, Recovered};

/// A site's connection to one hub, across all attempts.
///
/// | link       | input or time                            | next       | outputs                                  |
/// | ---------- | ---------------------------------------- | ---------- | ---------------------------------------- |
/// | waiting    | the pause is over                        | dialling   | `Dial`, once credentials are stored      |
/// | dialling   | `Dialled`, a link                        | up         | those of the session                     |
/// | dialling   | `Dialled`, none                          | hanging up | `News(Away)`, `HangUp`                   |
/// | up         | `Closed`, refusal, silence, another role | hanging up | `News(Away)`, `HangUp`                   |
/// | hanging up | `HungUp`                                 | waiting    | nothing, for a growing pause             |
/// | hanging up | `HungUp`, refused permanently            | resting    | nothing until the role changes           |
/// | any        | `Role(Leave)`                            | settling   | nothing more is read                     |
/// | up         | `Move`                                   | settling   | nothing more is read                     |
/// | settling   | all requests are `Stored`                | farewell   | the last receipts, `Farewell`            |
/// | farewell   | as below, after `Move`                   | waiting    | nothing, for no pause                    |
/// | farewell   | `HungUp`, or a second                    | over       | `Over`, with unreported receipts         |
/// | any        | `Role(End)`                              | ending     | `HangUp`                                 |
/// | ending     | `HungUp`                                 | over       | `Over`                                   |
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    session: SiteSession,
    role: Role,
    link: Link,
    attempts: Attempts,
    intake: Intake,
    feeds: Feeds,
    local: LocalSoftware,
    credentials: CredentialsExchange,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Waiting { until: Micros },
    Dialling,
    Up,
    HangingUp,
    Resting,
    Settling { was_up: bool },
    Farewell { until: Micros },
    Ending,
    Over,
}

/// Results of attempts and sessions, and their consequences for the next attempt.
#[derive(Debug)]
struct Attempts {
    reconnect: Reconnect,
    /// The end of the last attempt.
    ended: Ended,
    /// The time of the hub's welcome, during a session.
    welcomed: Option<Micros>,
    /// The last logged reason for the missing connection. Attempts are repeated while a hub is away, and ten lines a
    /// second about one cause would hide the others.
    reported: Option<String>,
    /// The text of the hub's refusal, until it is known whether the site has another credential to show.
    refusal: Option<String>,
    /// True if the connection is to be closed.
    hang_up: bool,
    /// True if nothing arrived within the liveness limit.
    silent: bool,
    /// True if the session ends for another way to the hub.
    moves: bool,
    /// True if further attempts are useless until the role changes.
    resting: bool,
}

impl Connection {
    /// Resumes at the site's position with this hub. `owed` are unreported receipts of earlier connections.
    pub fn new(
        settings: Settings,
        credentials: Credentials,
        recovered: Recovered,
        owed: Vec<Receipt>,
        role: Role,
    ) -> Self {
        let Recovered { state, feeds, .. } = recovered;
        let session = SiteSession::new(settings.software.clone(), state)
            .speaking(&settings.versions)
            .from_one_node(settings.one_node)
            .only(settings.only.clone())
            .owing(owed);
        Self {
            session,
            role,
            link: Link::Waiting { until: Micros(0) },
            attempts: Attempts::default(),
            intake: Intake::new(settings.memory_limit_bytes),
            feeds,
            local: LocalSoftware::new(settings.has_files),
            credentials: CredentialsExchange::new(credentials),
            outputs: VecDeque::new(),
            settings,
        }
    }

    /// False while there is no connection, or too much waits for the disk to read more from the hub.
    pub fn takes_bytes(&self) -> bool {
        self.link == Link::Up && self.intake.has_room()
    }

    /// True while there is a connection that is to stay.
    pub fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// The credentials in use.
    pub fn credentials(&self) -> &Credentials {
        self.credentials.held()
    }

    /// The state of the hub's feeds here.
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// The site's position in each feed.
    pub fn positions(&self) -> Vec<FeedPosition> {
        self.session.positions()
    }

    /// The products of a feed that the site lacks.
    pub fn missing(&self, feed: &FeedName) -> Missing {
        self.session.missing(feed)
    }

    /// The number of blocks for a product that was not begun, or beyond its end: zero, unless the session is faulty.
    pub fn misplaced(&self) -> u64 {
        self.intake.misplaced()
    }

    /// True until the connection begins to end.
    fn is_working(&self) -> bool {
        matches!(
            self.link,
            Link::Waiting { .. } | Link::Dialling | Link::Up | Link::HangingUp | Link::Resting
        )
    }

    fn tell(&mut self, now: Now, input: SiteInput) {
        self.session.handle(now, input);
    }

    fn dialled(&mut self, now: Now, result: Result<Linked, NoLink>) {
        if self.link != Link::Dialling {
            return;
        }
        match result {
            Ok(Linked { resume_at }) => {
                self.link = Link::Up;
                self.attempts.reported = None;
                self.tell(now, SiteInput::StandBy(self.role == Role::StandBy));
                if self.role == Role::Serve {
                    self.tell(now, SiteInput::ResumeAt(resume_at));
                }
                let proof = self.credentials.held().proof();
                self.tell(now, SiteInput::Connected(proof));
            }
            Err(NoLink { sentence, ended }) => {
                if self.attempts.is_news(&sentence) {
                    tracing::warn!("{sentence}");
                }
                self.news(News::Away { sentence, silent: false });
                (self.attempts.hang_up, self.attempts.ended) = (true, ended);
            }
        }
    }

    /// Passes on an output of the session.
    fn take(&mut self, now: Now, output: SiteOutput) {
        match output {
            SiteOutput::Write { stream, bytes } => self.outputs.push_back(Output::Write { stream, bytes }),
            SiteOutput::OpenStream(stream) => {
                let path = self.session.stream_path(stream).cloned();
                self.outputs.push_back(Output::OpenStream { stream, path });
            }
            SiteOutput::CloseStream(stream) => self.outputs.push_back(Output::CloseStream(stream)),
            SiteOutput::JoinGroup(join) => self.outputs.push_back(Output::JoinGroup(join)),
            SiteOutput::LegKey(leg, key) => self.outputs.push_back(Output::LegKey(leg, key)),
            SiteOutput::LeaveGroup(leg) => self.outputs.push_back(Output::LeaveGroup(leg)),
            SiteOutput::Ask { leg, bytes } => self.outputs.push_back(Output::Ask { leg, bytes }),
            SiteOutput::Relay(train) => self.outputs.push_back(Output::Relay(train)),
            SiteOutput::Begin(info) => {
                let order = self.intake.begin(&info);
                self.outputs.extend(order.map(Output::Place));
            }
            SiteOutput::Block { key, offset, bytes } => {
                let order = self.intake.block(&key, offset, bytes);
                self.outputs.extend(order.map(Output::Place));
            }
            SiteOutput::Complete { info, last_byte, lane, resend } => {
                self.intake.complete(info, Brought { last_byte, lane, resend });
            }
            SiteOutput::Train { train, last_byte } => self.intake.train(train, last_byte),
            SiteOutput::Abandon(key) => {
                let order = self.intake.abandon(&key);
                self.outputs.extend(order.map(Output::Place));
            }
            SiteOutput::Checkpoint(position) => self.checkpoint(position),
            SiteOutput::Event(event) => self.event(now, event),
            SiteOutput::Close => self.attempts.hang_up = true,
        }
    }

    fn checkpoint(&mut self, position: FeedPosition) {
        let complete = self.session.complete_to(&position.feed);
        let Noted { stored, begins_anew } = self.feeds.note(position, complete);
        let feed = &stored.position.feed;
        if begins_anew {
            tracing::warn!(
                feed = feed.as_str(),
                "the hub's log was started anew; products that the site holds already are dropped by id and \
                 content"
            );
            self.outputs.push_back(Output::Guard(feed.clone()));
        }
        if let Some(to) = stored.complete {
            let (feed, epoch) = (feed.clone(), stored.position.epoch);
            self.outputs.push_back(Output::Reached { feed, epoch, to });
        }
        self.outputs.push_back(Output::Checkpoint(stored));
    }

    fn stored(&mut self, now: Now, stored: Stored) {
        if self.intake.stored(stored.id) {
            stored.items.into_iter().for_each(|item| self.stored_item(now, item));
        }
    }

    fn stored_item(&mut self, now: Now, item: StoredItem) {
        let StoredItem { what, at, log_sequence } = item;
        if let Some(sequence) = log_sequence {
            self.feeds.grew(what.feed(), sequence);
        }
        match what {
            StoredWhat::Product(info, result) => {
                complain(&info.key.feed, &info.id, &result);
                // Without files the log is the last stage. So it is at a hub, which skips
                // heartbeats: they are `Held`.
                let is_out = !self.local.has_files()
                    && info.id.is_heartbeat()
                    && matches!(result, StoreResult::Stored | StoreResult::Held);
                let key = info.key.clone();
                self.tell(now, SiteInput::Settled { key: info.key, result, at });
                if is_out {
                    self.tell(now, SiteInput::HeartbeatOut { key, at });
                }
            }
            StoredWhat::Train(train, results) => {
                train
                    .cars
                    .iter()
                    .zip(&results)
                    .for_each(|(car, result)| complain(&train.feed, &car.id, result));
                self.tell(now, SiteInput::TrainSettled { train, results, at });
            }
        }
    }

    fn news(&mut self, news: News) {
        self.outputs.push_back(Output::News(news));
    }

    /// Takes the next step that is due; false if none is.
    fn advance(&mut self, now: Now) -> bool {
        if let Some(output) = self.session.poll(now) {
            self.local.may_have_changed();
            self.take(now, output);
            return true;
        }
        let shows = self.local.changes(|feed| self.session.missing(feed));
        self.outputs.extend(shows.into_iter().map(Output::Show));
        if let Some(request) = self.intake.take_request() {
            self.outputs.push_back(Output::Store(request));
            return true;
        }
        !self.outputs.is_empty() || self.advance_link(now)
    }

    fn advance_link(&mut self, now: Now) -> bool {
        match self.link {
            Link::Waiting { .. } | Link::Dialling | Link::Up | Link::Resting if self.attempts.hang_up => {
                self.hang_up(now);
            }
            Link::Waiting { until } if until <= now.monotonic && !self.credentials.is_busy() => {
                self.link = Link::Dialling;
                self.outputs.push_back(Output::Dial);
            }
            Link::Settling { was_up } if self.intake.is_settled() => self.say_farewell(now, was_up),
            Link::Farewell { until } if until <= now.monotonic => self.finish(now),
            _ => return false,
        }
        true
    }
}

impl Machine for Connection {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Now, input: Input) {
        self.local.may_have_changed();
        match input {
            Input::Dialled(result) => self.dialled(now, result),
            Input::Bytes { stream, bytes } if self.link == Link::Up => {
                self.tell(now, SiteInput::Bytes { stream, bytes });
            }
            Input::Closed(reason) => self.closed(now, &reason),
            Input::HungUp { random } => self.hung_up(now, random),
            Input::StreamOpened(stream) if self.link == Link::Up => {
                self.tell(now, SiteInput::StreamOpened(stream));
            }
            Input::StreamClosed { stream, reason } if self.link == Link::Up => {
                self.tell(now, SiteInput::StreamClosed { stream, reason });
            }
            Input::Leg(leg, news) if self.link == Link::Up => self.tell(now, news.into_input(leg)),
            // These were in transit when the connection ended.
            Input::Bytes { .. } | Input::StreamOpened(_) | Input::StreamClosed { .. } | Input::Leg(..) => {}
            Input::Stored(stored) => self.stored(now, stored),
            Input::Local(news) => news.into_inputs().for_each(|input| self.tell(now, input)),
            Input::Circuit(report) => self.tell(now, SiteInput::Circuit(report)),
            Input::PathProbed(probed) => self.tell(now, SiteInput::PathProbed(probed)),
            Input::RelayLeg(Ok(open)) => self.tell(now, SiteInput::RelayLegOpen(open)),
            Input::RelayLeg(Err(failed)) => self.tell(now, SiteInput::RelayLegFailed(failed)),
            Input::Credentials(answer) => {
                let next = self.credentials.answer(answer);
                self.follow(now, next);
            }
            Input::RelayReport(report) => self.tell(now, SiteInput::RelayReport(report)),
            Input::Clock(clock) => self.tell(now, SiteInput::Clock(clock)),
            Input::Sibling(input) => self.tell(now, SiteInput::Sibling(input)),
            Input::Move => self.take_move(),
            Input::Role(role) => self.take_role(role),
        }
    }

    fn poll(&mut self, now: Now) -> Option<Output> {
        while self.outputs.is_empty() && self.link != Link::Over {
            if !self.advance(now) {
                return None;
            }
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        let due = match self.link {
            Link::Waiting { until } if !self.credentials.is_busy() => Some(until),
            Link::Farewell { until } => Some(until),
            Link::Over => return None,
            _ => None,
        };
        self.session.deadline().into_iter().chain(due).min()
    }
}

impl LegNews {
    fn into_input(self, leg: downburst_model::LegId) -> SiteInput {
        match self {
            Self::Joined(reception) => SiteInput::GroupJoined { leg, reception },
            Self::NotJoined(reason) => SiteInput::JoinFailed { leg, reason },
            Self::Deaf(reason) => SiteInput::Deaf { leg, reason },
            Self::Read(reading) => SiteInput::HostReading(reading),
            Self::Datagrams(batch) => SiteInput::Datagrams { leg, batch },
        }
    }
}

impl Attempts {
    /// True if this differs from the last logged reason.
    fn is_news(&mut self, sentence: &str) -> bool {
        let news = self.reported.as_deref() != Some(sentence);
        if news {
            self.reported = Some(sentence.to_owned());
        }
        news
    }

    /// The pause before the next attempt.
    fn pause(&mut self, now: Micros, random: f64) -> Micros {
        let ended = self.welcomed.take().map_or(self.ended, |since| Ended::Session(now.since(since)));
        self.ended = Ended::Answered;
        self.reconnect.pause(ended, random)
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            reconnect: Reconnect::default(),
            ended: Ended::Answered,
            welcomed: None,
            reported: None,
            refusal: None,
            hang_up: false,
            silent: false,
            moves: false,
            resting: false,
        }
    }
}

fn complain(feed: &FeedName, id: &ProductId, result: &StoreResult) {
    if let StoreResult::Failed(sentence) = result {
        tracing::error!(feed = feed.as_str(), id = id.as_str(), "a product can't be stored: {sentence}");
    }
}
