//! A site and its hubs: one serves, the others stand by, all products end in the same logs.
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use downburst_log::{ProductLog as _, Retention};
use downburst_model::{FeedName, Micros};
use tokio::sync::mpsc;

use super::choice::{Choice, Standing};
use super::control::{Answer, Asked, HubStatus, NodeStatus, Request};
use super::files::{self, DoneTo};
use super::links::{Common, FromDrive, Link};
use super::role::News;
use super::state::{places, small_files};
use super::store::Logs;
use super::{Ending, Receive, control};
use crate::actions::{Actions, Notifier, Scouring};
use crate::clock::Clock;
use crate::scrub;

/// A site at work.
pub(super) struct Hubs {
    clock: Clock,
    choice: Choice,
    common: Common,
    links: Vec<Link>,
    news: mpsc::UnboundedReceiver<(FromDrive, News)>,
    logs: Arc<Logs>,
    files: Option<std::thread::JoinHandle<()>>,
    done_to: DoneTo,
    actions: Option<Actions>,
    scouring: Option<Scouring>,
    asked: mpsc::Receiver<Asked>,
    /// The hub whose connections hear of local software.
    told: Option<usize>,
    ending: Option<Ending>,
}

impl Hubs {
    /// Opens the site's logs, and reads where it stands with its hubs; none of them is called yet.
    pub(super) fn open(receive: &Receive, clock: Clock) -> Result<Self, String> {
        let retention = Retention { hours: receive.retention_hours, bytes: receive.retention_bytes };
        let several = receive.hubs.len() > 1;
        let bell = Arc::<Notifier>::default();
        let logs = Arc::new(
            Logs::new(&receive.directory.join("log"), retention, several).ringing(Arc::clone(&bell)),
        );
        let done_to = DoneTo::default();
        let files = receive
            .files
            .then(|| files::start(Arc::clone(&logs), &receive.directory, clock, done_to.clone()))
            .transpose()?;
        let (news_sender, news) = mpsc::unbounded_channel();
        let (waker, files) = files.unzip();
        let common = Common::new(receive.clone(), clock, Arc::clone(&logs), waker, news_sender);
        let places = places(&receive.directory, &receive.hubs).into_iter();
        let both = places.zip(&receive.hubs).enumerate();
        let links = both.map(|(hub, (place, choice))| Link::open(&common, hub, place, choice));
        let links = links.collect::<Result<Vec<Link>, String>>()?;
        start_scrub(receive, &logs, &done_to)?;
        let actions = Actions::start(&receive.actions, &receive.directory, &logs, bell, clock, &done_to)?;
        let scouring = Scouring::start(&receive.scour, &receive.directory)?;
        let return_after = Micros(u64::try_from(receive.return_after.as_micros()).unwrap_or(u64::MAX));
        let choice = Choice::new(links.len(), return_after, clock.monotonic());
        let asked = control::listen(&receive.directory);
        let ending = None;
        Ok(Self {
            clock,
            choice,
            common,
            links,
            news,
            logs,
            files,
            done_to,
            actions,
            scouring,
            asked,
            told: None,
            ending,
        })
    }

    /// Works until asked to end or refused for good by all hubs.
    pub(super) async fn run(mut self) -> Ending {
        let mut ended = std::pin::pin!(crate::signals::ended());
        let mut retain = tokio::time::interval(RETAIN_INTERVAL);
        let mut reread = crate::signals::Reread::listen();
        loop {
            self.decide();
            self.arrange().await;
            if let Some(ending) = self.ending.take() {
                self.close().await;
                return ending;
            }
            let asks = self.links.iter().filter_map(|link| link.nodes.ask_at());
            let asks = asks.filter(|at| *at > self.clock.monotonic());
            let due = self.choice.deadline().into_iter().chain(asks).min();
            let pause = due.map(|due| due.since(self.clock.monotonic()).0);
            let pause = pause.map_or(LONGEST_PAUSE, Duration::from_micros);
            tokio::select! {
                Some((from, news)) = self.news.recv() => self.take_news(from, news),
                Some(asked) = self.asked.recv() => self.take_asked(asked),
                _ = retain.tick() => self.retain(),
                () = reread.asked() => self.reread(),
                () = tokio::time::sleep(pause) => {}
                () = &mut ended => self.ending = Some(Ending::Stopped),
            }
        }
    }

    fn decide(&mut self) {
        let left = self.choice.active();
        if let Some(next) = self.choice.decide(self.clock.monotonic()) {
            self.switch(left, next);
        }
    }

    fn switch(&mut self, left: usize, next: usize) {
        let address = |hub: usize| self.links.get(hub).map(Link::address);
        tracing::warn!(from = address(left), to = address(next), "another hub serves this site from here on");
    }

    /// Makes and ends connections, so that they are as the hubs said and as was decided.
    async fn arrange(&mut self) {
        let (active, mut changed) = (self.choice.active(), false);
        for (hub, link) in self.links.iter_mut().enumerate() {
            match link.arrange(&mut self.common, hub == active).await {
                Ok(news) => changed |= news,
                Err(sentence) => self.ending = Some(Ending::BadUse(sentence)),
            }
        }
        if changed || self.told != Some(active) {
            self.told = Some(active);
            self.tell_files();
        }
    }

    /// The stamps of files go into the receipts of the hub that serves.
    fn tell_files(&self) {
        if let Some(link) = self.links.get(self.choice.active()) {
            let (all, by_feed) = link.listeners();
            self.done_to.set(all, by_feed);
        }
    }

    fn take_news(&mut self, from: FromDrive, news: News) {
        let (now, hub) = (self.clock.monotonic(), from.hub);
        let Some(link) = self.links.get_mut(hub) else { return };
        let Some(drive) = link.drive(from) else { return };
        let wanted = drive.wanted.clone();
        match news {
            // A connection made for the role before is about to end.
            News::Well { hub: name, role } if role == wanted.role => {
                drive.well = true;
                (link.name, link.sentence) = (Some(name), None);
                if wanted.is_part() {
                    link.nodes.is_well(&wanted.address);
                }
                self.told_well(hub);
            }
            News::Well { .. } => {}
            News::Away { sentence, silent } => {
                drive.well = false;
                link.sentence = Some(sentence);
                if wanted.asks() {
                    link.nodes.asked_in_vain(now);
                } else if !wanted.is_part() || link.nodes.is_away(now, &wanted.address) {
                    self.choice.is_away(now, hub, silent);
                }
            }
            News::Nodes(nodes) => match link.nodes.take(now, nodes) {
                Ok(true) => {
                    tracing::info!(hub = link.address(), "the hub listed its nodes that serve this site")
                }
                Ok(false) => {}
                Err(sentence) => self.ending = Some(Ending::BadUse(sentence)),
            },
            News::Refused(sentence) => {
                tracing::error!(hub = link.address(), "the hub refused: {sentence}");
                link.sentence = Some(sentence.clone());
                self.choice.has_refused(hub);
                if self.choice.is_refused_by_all() {
                    self.ending = Some(Ending::Refused(sentence));
                }
            }
            News::Unkept(sentence) => self.ending = Some(Ending::BadUse(sentence)),
        }
    }

    /// The first of several nodes makes the hub well.
    fn told_well(&mut self, hub: usize) {
        let is_well = self.links.get(hub).is_some_and(Link::is_well);
        if is_well && !matches!(self.choice.standing(hub), Some(Standing::Well { .. })) {
            self.choice.is_well(self.clock.monotonic(), hub);
        }
    }

    fn take_asked(&mut self, asked: Asked) {
        let answer = match &asked.request {
            Request::Status => Answer { hubs: self.status(), error: None },
            Request::Prefer { hub } => match self.find(hub) {
                Ok(hub) => {
                    let left = self.choice.active();
                    if let Some(next) = self.choice.prefer(self.clock.monotonic(), hub) {
                        self.switch(left, next);
                    }
                    Answer { hubs: self.status(), error: None }
                }
                Err(error) => Answer { hubs: Vec::new(), error: Some(error) },
            },
        };
        asked.answer(answer);
    }

    /// The hub with this address or name.
    fn find(&self, wanted: &str) -> Result<usize, String> {
        let is = |link: &Link| link.address() == wanted || link.name.as_deref() == Some(wanted);
        let mut found = self.links.iter().enumerate().filter(|(_, link)| is(link)).map(|(hub, _)| hub);
        match (found.next(), found.next()) {
            (Some(hub), None) => Ok(hub),
            (Some(_), Some(_)) => Err(format!("several hubs go by the name {wanted}; give the address")),
            (None, _) => {
                let known = self.links.iter().fold(String::new(), |mut text, link| {
                    let _ = write!(text, " {}", link.address());
                    text
                });
                Err(format!("this site has no hub {wanted:?}; its hubs are{known}"))
            }
        }
    }

    fn status(&self) -> Vec<HubStatus> {
        let now = self.clock.monotonic();
        let status = |(hub, link): (usize, &Link)| {
            let (state, since) = match self.choice.standing(hub) {
                Some(Standing::Well { since }) if hub == self.choice.active() => ("serves", Some(since)),
                Some(Standing::Well { since }) => ("stands by", Some(since)),
                Some(Standing::Away { since, .. }) => ("away", Some(since)),
                Some(Standing::Refused) | None => ("refused", None),
            };
            HubStatus {
                address: link.address().to_owned(),
                name: link.name.clone(),
                state: state.to_owned(),
                seconds: since.map(|since| now.since(since).0 / 1_000_000),
                active: hub == self.choice.active(),
                preferred: hub == self.choice.preferred(),
                reason: link.sentence.clone(),
                nodes: link.parts().map(NodeStatus::of).collect(),
            }
        };
        self.links.iter().enumerate().map(status).collect()
    }

    /// The rules of actions and of old files, as their files are now; a faulty file leaves the former rules
    /// in force.
    fn reread(&mut self) {
        if let Some(actions) = &mut self.actions {
            actions.reread();
        }
        if let Some(scouring) = &self.scouring {
            scouring.reread();
        }
    }

    fn retain(&mut self) {
        if let Some(actions) = &mut self.actions {
            actions.tend();
        }
        for (feed, log) in self.logs.all() {
            if let Err(error) = log.retain(self.clock.wall()) {
                tracing::error!(feed = feed.as_str(), "{error}");
            }
        }
    }

    async fn close(mut self) {
        for link in &mut self.links {
            link.close(self.clock.monotonic()).await;
        }
        // The thread ends with the last one who could wake it.
        drop(self.common);
        if let Some(thread) = self.files {
            let _ = thread.join();
        }
        if let Some(actions) = self.actions {
            actions.stop();
        }
        if let Some(scouring) = self.scouring {
            scouring.stop();
        }
        for (feed, log) in self.logs.all() {
            if let Err(error) = log.close() {
                tracing::error!(feed = feed.as_str(), "{error}");
            }
        }
    }
}

/// Reads the site's logs through in the background, and the files of its state.
fn start_scrub(receive: &Receive, logs: &Arc<Logs>, done_to: &DoneTo) -> Result<(), String> {
    let (open, told) = (Arc::downgrade(logs), done_to.clone());
    let report = move |feed: &FeedName, sentence: String| {
        tracing::error!("{sentence}");
        told.acts(feed, Some(files::damaged(sentence)));
    };
    let directory = receive.directory.clone();
    scrub::start(
        receive.scrub,
        Box::new(move || Some(open.upgrade()?.all())),
        Box::new(move || small_files(&directory)),
        Box::new(report),
    )
}

const RETAIN_INTERVAL: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
