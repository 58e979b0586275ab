//! A site and its hubs: one serves, the others stand by, all products end in the same logs.
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use downburst_log::{ProductLog as _, Retention};
use downburst_model::Micros;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::choice::{Choice, Standing};
use super::complete::Completeness;
use super::control::{Answer, Asked, HubStatus, Request};
use super::drive::Site;
use super::files::{self, DoneTo, Told, Waker};
use super::identity::Identity;
use super::role::{News, Parts, Role};
use super::shelf::Shelf;
use super::state::places;
use super::store::Logs;
use super::{Ending, Receive, control, prepare_place};
use crate::actions::{Actions, Bell, Scouring};
use crate::clock::Clock;

/// A site at work.
pub(super) struct Hubs {
    clock: Clock,
    choice: Choice,
    links: Vec<Link>,
    news: mpsc::UnboundedReceiver<(usize, News)>,
    logs: Arc<Logs>,
    files: Option<(Waker, std::thread::JoinHandle<()>)>,
    done_to: DoneTo,
    actions: Option<Actions>,
    scouring: Option<Scouring>,
    asked: mpsc::Receiver<Asked>,
    ending: Option<Ending>,
}

/// The connection to a hub, as the site sees it.
struct Link {
    address: String,
    /// The hub's name, once it said it.
    name: Option<String>,
    /// Why there is no connection.
    sentence: Option<String>,
    roles: watch::Sender<Role>,
    done: mpsc::UnboundedSender<Told>,
    task: JoinHandle<()>,
}

/// What the links share while they are made.
struct Common {
    clock: Clock,
    logs: Arc<Logs>,
    completeness: Arc<Completeness>,
    waker: Option<Waker>,
    news: mpsc::UnboundedSender<(usize, News)>,
}

impl Hubs {
    /// Opens the site's logs and begins to call its hubs.
    pub(super) fn open(receive: &Receive, clock: Clock) -> Result<Self, String> {
        let retention = Retention { hours: receive.retention_hours, bytes: receive.retention_bytes };
        let several = receive.hubs.len() > 1;
        let bell = Arc::<Bell>::default();
        let logs = Arc::new(
            Logs::new(&receive.directory.join("log"), retention, several).ringing(Arc::clone(&bell)),
        );
        let done_to = DoneTo::default();
        let files = receive
            .files
            .then(|| files::start(Arc::clone(&logs), &receive.directory, clock, done_to.clone()))
            .transpose()?;
        let (news_sender, news) = mpsc::unbounded_channel();
        let common = Common {
            clock,
            logs: Arc::clone(&logs),
            completeness: Arc::default(),
            waker: files.as_ref().map(|(waker, _)| waker.clone()),
            news: news_sender,
        };
        let sites = common.sites(receive)?;
        let actions = Actions::start(&receive.actions, &receive.directory, &logs, bell, clock, &done_to)?;
        let scouring = Scouring::start(&receive.scour, &receive.directory)?;
        let links: Vec<Link> = sites.into_iter().enumerate().map(|(hub, it)| common.start(hub, it)).collect();
        let return_after = Micros(u64::try_from(receive.return_after.as_micros()).unwrap_or(u64::MAX));
        let choice = Choice::new(links.len(), return_after, clock.monotonic());
        let asked = control::listen(&receive.directory);
        let hubs =
            Self { clock, choice, links, news, logs, files, done_to, actions, scouring, asked, ending: None };
        hubs.tell_files();
        Ok(hubs)
    }

    /// Works until asked to end or refused for good by all hubs.
    pub(super) async fn run(mut self) -> Ending {
        let mut ended = std::pin::pin!(crate::signals::ended());
        let mut retain = tokio::time::interval(RETAIN_INTERVAL);
        let mut reread = crate::signals::Reread::listen();
        loop {
            self.decide();
            if let Some(ending) = self.ending.take() {
                self.close().await;
                return ending;
            }
            let pause = self.choice.deadline().map(|due| due.since(self.clock.monotonic()).0);
            let pause = pause.map_or(LONGEST_PAUSE, Duration::from_micros);
            tokio::select! {
                Some((hub, news)) = self.news.recv() => self.take_news(hub, news),
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
        let address = |hub: usize| self.links.get(hub).map(|link| link.address.as_str());
        tracing::warn!(from = address(left), to = address(next), "another hub serves this site from here on");
        for (hub, role) in [(left, Role::StandBy), (next, Role::Serve)] {
            if let Some(link) = self.links.get(hub) {
                link.roles.send_replace(role);
            }
        }
        self.tell_files();
    }

    /// The stamps of files go into the receipts of the hub that serves.
    fn tell_files(&self) {
        if let Some(link) = self.links.get(self.choice.active()) {
            self.done_to.set(link.done.clone());
        }
    }

    fn take_news(&mut self, hub: usize, news: News) {
        let now = self.clock.monotonic();
        let Some(link) = self.links.get_mut(hub) else { return };
        match news {
            // A connection made for the role before is about to end.
            News::Well { hub: name, role } if role == *link.roles.borrow() => {
                (link.name, link.sentence) = (Some(name), None);
                self.choice.is_well(now, hub);
            }
            News::Well { .. } => {}
            News::Away { sentence, silent } => {
                link.sentence = Some(sentence);
                self.choice.is_away(now, hub, silent);
            }
            News::Refused(sentence) => {
                tracing::error!(hub = link.address, "the hub refused: {sentence}");
                link.sentence = Some(sentence.clone());
                self.choice.has_refused(hub);
                if self.choice.is_refused_by_all() {
                    self.ending = Some(Ending::Refused(sentence));
                }
            }
            News::Unkept(sentence) => self.ending = Some(Ending::BadUse(sentence)),
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
        let is = |link: &Link| link.address == wanted || link.name.as_deref() == Some(wanted);
        let mut found = self.links.iter().enumerate().filter(|(_, link)| is(link)).map(|(hub, _)| hub);
        match (found.next(), found.next()) {
            (Some(hub), None) => Ok(hub),
            (Some(_), Some(_)) => Err(format!("several hubs go by the name {wanted}; give the address")),
            (None, _) => {
                let known = self.links.iter().fold(String::new(), |mut text, link| {
                    let _ = write!(text, " {}", link.address);
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
                address: link.address.clone(),
                name: link.name.clone(),
                state: state.to_owned(),
                seconds: since.map(|since| now.since(since).0 / 1_000_000),
                active: hub == self.choice.active(),
                preferred: hub == self.choice.preferred(),
                reason: link.sentence.clone(),
            }
        };
        self.links.iter().enumerate().map(status).collect()
    }

    /// The rules of actions and of old files, as their files say them now; what is wrong there leaves those before in force.
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

    async fn close(self) {
        for link in &self.links {
            link.roles.send_replace(Role::End);
        }
        for link in self.links {
            // What is on its way to the log gets there; its receipt follows the next hello.
            let _ = link.task.await;
        }
        if let Some((waker, thread)) = self.files {
            drop(waker);
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

/// A connection that is ready to be run, with the ends that the site holds.
struct Ready {
    address: String,
    site: Site,
    roles: watch::Sender<Role>,
    done: mpsc::UnboundedSender<Told>,
    news: mpsc::UnboundedReceiver<News>,
}

impl Common {
    /// All hubs' positions are read before any of them is called: how far each feed is complete follows from all.
    fn sites(&self, receive: &Receive) -> Result<Vec<Ready>, String> {
        let places = places(&receive.directory, &receive.hubs);
        let both = places.into_iter().zip(&receive.hubs).enumerate();
        both.map(|(hub, (place, choice))| {
            prepare_place(&place)?;
            let identity = Identity::load(&place, choice.token_file.as_deref())?;
            let (roles, role) = watch::channel(if hub == 0 { Role::Serve } else { Role::StandBy });
            let (done, done_stream) = mpsc::unbounded_channel();
            let (news_sender, news) = mpsc::unbounded_channel();
            let address = place.address.clone();
            let site = Site::open(Parts {
                hub: place,
                identity,
                clock: self.clock,
                versions: receive.session_versions.clone(),
                reading: receive.reading,
                ports: receive.circuits.clone(),
                shelf: Arc::clone(&self.logs) as Arc<dyn Shelf>,
                completeness: Arc::clone(&self.completeness),
                files: self.waker.clone(),
                done: done_stream,
                roles: role,
                news: news_sender,
            })?;
            Ok(Ready { address, site, roles, done, news })
        })
        .collect()
    }

    fn start(&self, hub: usize, ready: Ready) -> Link {
        let Ready { address, site, roles, done, mut news } = ready;
        let to_all = self.news.clone();
        tokio::spawn(async move {
            while let Some(it) = news.recv().await {
                let _ = to_all.send((hub, it));
            }
        });
        Link { address, name: None, sentence: None, roles, done, task: tokio::spawn(site.run()) }
    }
}

const RETAIN_INTERVAL: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
