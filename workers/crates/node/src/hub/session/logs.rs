//! Reads logs for a session's machine: directly if the bytes are local, otherwise in a task that fetches them.
use std::sync::Arc;

use downburst_hub::{ReadFault, ReadRequest, ResendLine, ResendRead, SessionInput, resend_order};
use downburst_log::{LogError, ProductLog as _, ReadBatch};
use downburst_model::{FeedName, Sequence};
use downburst_session::{Entry, HubInput};
use tokio::sync::mpsc;

use super::Task;
use crate::hub::Hub;
use crate::hub::feeds::Feed;
use crate::hub::feeds::fetching;
use crate::hub::feeds::reading::unreadable;
use crate::hub::lock;
use crate::hub::roster::Command;

impl Task {
    /// A closed feed is neither a fault nor an empty log. A node that gives up the feed closes it while sites
    /// still request products.
    pub(super) fn read(&mut self, request: ReadRequest) {
        let Some(open) = self.hub.feeds.find(&request.feed) else {
            return self.tell(SessionInput::ReadFailed(request, None));
        };
        match open.stretch(self.hub.clock.now(), request.after, &request.filter) {
            Ok(Some(stretch)) => self.tell(SessionInput::Read(stretch)),
            Ok(None) => self.fetch(request),
            Err(error) => {
                let fault = fault(&request.feed, &error);
                self.tell(SessionInput::ReadFailed(request, fault));
            }
        }
    }

    pub(super) fn find_resends(&mut self, lines: &[ResendLine]) {
        let Some(site) = self.session.site() else { return };
        let mut left = lock(&self.hub.sessions.resends_left).of(site, lines);
        let orders = lines
            .iter()
            .filter_map(|line| {
                let feed = self.hub.feeds.find(&line.feed)?;
                Some(resend_order(&*feed, line, left.remove(&line.resend)))
            })
            .collect();
        self.tell(SessionInput::Pass(HubInput::Resends(orders)));
    }

    pub(super) fn read_resend(
        &mut self,
        resend: u64,
        feed: FeedName,
        (after, to): (Sequence, Sequence),
        limit_bytes: usize,
    ) {
        let asked = Asked { resend, feed, after };
        let Some(open) = self.hub.feeds.find(&asked.feed) else {
            return self.tell(asked.found(None));
        };
        let batch = open.log.read(after, to, limit_bytes, READ_ENTRIES);
        let now = self.hub.clock.wall();
        let is_here = batch.as_ref().is_ok_and(|batch| open.lacking(batch, now, |_| true).is_empty());
        match self.commands().filter(|_| batch.is_ok() && !is_here) {
            Some(commands) => {
                let hub = Arc::clone(&self.hub);
                tokio::spawn(fetch_resend(hub, open, asked, (to, limit_bytes), commands));
            }
            None => self.tell(asked.found(Some(batch))),
        }
    }

    /// Fetches products that the copy no longer holds; the session gets the result, or has to read again.
    fn fetch(&self, request: ReadRequest) {
        let Some(commands) = self.commands() else { return };
        let hub = Arc::clone(&self.hub);
        tokio::spawn(async move {
            let input = match fetching::stretch(&hub, &request).await {
                Some(Ok(stretch)) => SessionInput::Read(stretch),
                Some(Err(error)) => {
                    let fault = fault(&request.feed, &error);
                    SessionInput::ReadFailed(request, fault)
                }
                None => SessionInput::ReadFailed(request, None),
            };
            tell(&commands, input);
        });
    }

    fn commands(&self) -> Option<mpsc::UnboundedSender<Command>> {
        self.member.as_ref().map(|member| member.handle.commands.clone())
    }
}

/// A stretch of a log that a resend reads.
struct Asked {
    resend: u64,
    feed: FeedName,
    after: Sequence,
}

impl Asked {
    /// `None`: the feed is closed.
    fn found(self, batch: Option<Result<ReadBatch, LogError>>) -> SessionInput {
        let Self { resend, feed, after } = self;
        let read = match batch {
            Some(Ok(batch)) => {
                let entries = batch.entries.into_iter();
                let entries = entries.map(|entry| Entry { info: entry.info, bytes: entry.bytes });
                Ok((entries.collect(), batch.read_to))
            }
            Some(Err(error)) => Err(fault(&feed, &error)),
            None => Err(None),
        };
        SessionInput::ResendRead(ResendRead { resend, feed, after, read })
    }
}

async fn fetch_resend(
    hub: Arc<Hub>,
    open: Arc<Feed>,
    asked: Asked,
    (to, limit_bytes): (Sequence, usize),
    commands: mpsc::UnboundedSender<Command>,
) {
    let batch = fetching::read(&hub, open, (asked.after, to), (limit_bytes, READ_ENTRIES)).await;
    tell(&commands, asked.found(batch));
}

fn tell(commands: &mpsc::UnboundedSender<Command>, input: SessionInput) {
    // A session that has ended needs no result.
    let _ = commands.send(Command::Tell(input));
}

fn fault(feed: &FeedName, error: &LogError) -> ReadFault {
    Some(unreadable(feed, error))
}

/// The most products that one read returns.
const READ_ENTRIES: usize = 256;
