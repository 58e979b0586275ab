//! The connections of a site: to each hub one, or one to each of the hub's nodes that serve it.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, Micros};
use downburst_session::Receipt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::complete::Completeness;
use super::drive::{Site, Turn};
use super::files::{Told, Waker};
use super::identity::Identity;
use super::nodes::{NodeChoice, Wanted};
use super::role::{News, Parts, Role};
use super::shelf::Shelf;
use super::state::HubPlace;
use super::store::Logs;
use super::{HubChoice, Receive, prepare_place};
use crate::clock::Clock;

/// A hub, as the site sees it.
pub(super) struct Link {
    hub: usize,
    place: HubPlace,
    choice: HubChoice,
    turn: Turn,
    pub(super) nodes: NodeChoice,
    /// The hub's name, once it said it.
    pub(super) name: Option<String>,
    /// Why there is no connection.
    pub(super) sentence: Option<String>,
    drives: Vec<Drive>,
    /// Receipts that ended connections had left to say.
    owed: Vec<Receipt>,
}

/// One connection, made and kept by a task.
pub(super) struct Drive {
    /// Told with the connection's news: that of one which was ended is passed over.
    serial: u64,
    pub(super) wanted: Wanted,
    pub(super) well: bool,
    roles: watch::Sender<Role>,
    done: mpsc::UnboundedSender<Told>,
    task: JoinHandle<Vec<Receipt>>,
}

/// Where news of a connection come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromDrive {
    pub(super) hub: usize,
    serial: u64,
}

/// What the connections share while they are made.
pub(super) struct Common {
    pub(super) clock: Clock,
    pub(super) receive: Receive,
    pub(super) logs: Arc<Logs>,
    pub(super) completeness: Arc<Completeness>,
    pub(super) waker: Option<Waker>,
    pub(super) news: mpsc::UnboundedSender<(FromDrive, News)>,
    next_serial: u64,
}

impl Link {
    pub(super) fn open(
        common: &Common,
        hub: usize,
        place: HubPlace,
        choice: &HubChoice,
    ) -> Result<Self, String> {
        prepare_place(&place)?;
        // Looked at whatever connection is made first: it takes a new token.
        let is_new = Identity::load(&place, choice.token_file.as_deref())?.is_new();
        let nodes = NodeChoice::open(place.address.clone(), &place.state, is_new, common.clock.monotonic());
        let (name, sentence, drives, owed) = (None, None, Vec::new(), Vec::new());
        let (choice, turn) = (choice.clone(), Turn::default());
        Ok(Self { hub, place, choice, turn, nodes, name, sentence, drives, owed })
    }

    pub(super) fn address(&self) -> &str {
        &self.place.address
    }

    /// Makes the planned connections, and ends the others first: their products are in the log before another
    /// one reports the site's position. True if anything changed.
    pub(super) async fn arrange(&mut self, common: &mut Common, serves: bool) -> Result<bool, String> {
        let now = common.clock.monotonic();
        let wanted = self.nodes.wanted(now, serves);
        let before = self.drives.len();
        let (kept, ended) =
            std::mem::take(&mut self.drives).into_iter().partition(|it: &Drive| it.is_one_of(&wanted));
        self.drives = kept;
        let changed = self.drives.len() != before;
        self.end(now, ended, Role::Leave).await;
        let mut ready = Vec::new();
        for wanted in wanted {
            match self.drives.iter_mut().find(|drive| drive.leads_to(&wanted)) {
                Some(drive) => drive.take_role(wanted.role),
                None => {
                    let owed = self.take_owed(&wanted);
                    ready.push(common.prepare(self, wanted, owed)?);
                }
            }
        }
        let begun = !ready.is_empty();
        self.drives.extend(ready.into_iter().map(|ready| common.start(self.hub, ready)));
        Ok(changed || begun)
    }

    /// The connection that said so, unless it was ended meanwhile.
    pub(super) fn drive(&mut self, from: FromDrive) -> Option<&mut Drive> {
        self.drives.iter_mut().find(|drive| drive.serial == from.serial)
    }

    /// Whether the hub, or any of its nodes, is connected.
    pub(super) fn is_well(&self) -> bool {
        let parts = self.drives.iter().any(|drive| drive.wanted.is_part());
        self.drives.iter().any(|drive| drive.well && (!parts || drive.wanted.is_part()))
    }

    /// Who is to know of local software: for all feeds, and for those that have a connection of their own.
    pub(super) fn listeners(
        &self,
    ) -> (Option<mpsc::UnboundedSender<Told>>, BTreeMap<FeedName, mpsc::UnboundedSender<Told>>) {
        let all =
            self.drives.iter().find(|drive| drive.wanted.only.is_none()).map(|drive| drive.done.clone());
        let parts = self.drives.iter().filter(|drive| drive.wanted.is_part());
        let feeds = parts.flat_map(|drive| {
            drive.wanted.only.iter().flatten().map(|feed| (feed.clone(), drive.done.clone()))
        });
        (all, feeds.collect())
    }

    /// The nodes that serve the site, with what they serve and whether they are connected.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Drive> {
        self.drives.iter().filter(|drive| drive.wanted.is_part())
    }

    pub(super) async fn close(&mut self, now: Micros) {
        let drives = std::mem::take(&mut self.drives);
        self.end(now, drives, Role::End).await;
    }

    async fn end(&mut self, now: Micros, drives: Vec<Drive>, role: Role) {
        for drive in &drives {
            drive.roles.send_replace(role);
        }
        for drive in drives {
            if drive.wanted.is_part() {
                self.nodes.is_away(now, &drive.wanted.address);
            }
            self.owed.extend(drive.task.await.unwrap_or_default());
        }
        let over = self.owed.len().saturating_sub(MOST_OWED);
        self.owed.drain(..over);
    }

    /// The receipts of what others brought that this connection is to say.
    fn take_owed(&mut self, wanted: &Wanted) -> Vec<Receipt> {
        let (taken, left) =
            std::mem::take(&mut self.owed).into_iter().partition(|it| wanted.brings(&it.key.feed));
        self.owed = left;
        taken
    }
}

impl Drive {
    fn is_one_of(&self, wanted: &[Wanted]) -> bool {
        wanted.iter().any(|wanted| self.leads_to(wanted))
    }

    fn leads_to(&self, wanted: &Wanted) -> bool {
        self.wanted.address == wanted.address && self.wanted.only == wanted.only
    }

    fn take_role(&mut self, role: Role) {
        if self.wanted.role != role {
            self.wanted.role = role;
            self.well = false;
            self.roles.send_replace(role);
        }
    }
}

/// A connection that is ready to be run, with the ends that the site holds.
struct Ready {
    wanted: Wanted,
    site: Site,
    roles: watch::Sender<Role>,
    done: mpsc::UnboundedSender<Told>,
    news: mpsc::UnboundedReceiver<News>,
}

impl Common {
    pub(super) fn new(
        receive: Receive,
        clock: Clock,
        logs: Arc<Logs>,
        waker: Option<Waker>,
        news: mpsc::UnboundedSender<(FromDrive, News)>,
    ) -> Self {
        Self { clock, receive, logs, completeness: Arc::default(), waker, news, next_serial: 0 }
    }

    /// Reads the positions; nothing is called yet.
    fn prepare(&self, link: &Link, wanted: Wanted, owed: Vec<Receipt>) -> Result<Ready, String> {
        let (place, identity) = self.place_of(link, &wanted)?;
        let (roles, role) = watch::channel(wanted.role);
        let (done, done_stream) = mpsc::unbounded_channel();
        let (news_sender, news) = mpsc::unbounded_channel();
        let site = Site::open(Parts {
            hub: place,
            identity,
            turn: Arc::clone(&link.turn),
            clock: self.clock,
            versions: self.receive.session_versions.clone(),
            one_node: false,
            only: wanted.only.clone(),
            decides: wanted.only.is_none() || (wanted.asks() && wanted.address == link.place.address),
            reading: self.receive.reading,
            // Ends of circuits are known by the hub: its own node alone makes them.
            ports: if wanted.only.is_none() { self.receive.circuits.clone() } else { Vec::new() },
            shelf: Arc::clone(&self.logs) as Arc<dyn Shelf>,
            completeness: Arc::clone(&self.completeness),
            owed,
            files: self.waker.clone(),
            done: done_stream,
            roles: role,
            news: news_sender,
        })?;
        Ok(Ready { wanted, site, roles, done, news })
    }

    /// All nodes of a hub know the site by the same credential and share its positions; what is on its way lies apart.
    fn place_of(&self, link: &Link, wanted: &Wanted) -> Result<(HubPlace, Identity), String> {
        if wanted.only.is_none() {
            let identity = Identity::load(&link.place, link.choice.token_file.as_deref())?;
            return Ok((link.place.clone(), identity));
        }
        let role = if wanted.asks() { "asks" } else { "part" };
        let spool = format!("hub-{}-{role}-{}", link.hub, crate::file_names::encode(&wanted.address));
        let spool = link.place.spool.with_file_name(spool);
        let place = HubPlace { address: wanted.address.clone(), state: link.place.state.clone(), spool };
        prepare_place(&place)?;
        let identity = Identity::known(&place)?;
        Ok((place, identity))
    }

    fn start(&mut self, hub: usize, ready: Ready) -> Drive {
        let Ready { wanted, site, roles, done, mut news } = ready;
        let from = FromDrive { hub, serial: self.next_serial };
        self.next_serial += 1;
        let to_all = self.news.clone();
        tokio::spawn(async move {
            while let Some(it) = news.recv().await {
                let _ = to_all.send((from, it));
            }
        });
        Drive { serial: from.serial, wanted, well: false, roles, done, task: tokio::spawn(site.run()) }
    }
}

/// As many as a connection keeps; the frontier tells the rest.
const MOST_OWED: usize = 16_384;
