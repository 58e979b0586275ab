//! A running site: drives the machine above its connections, and the resources that they share.
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use downburst_log::{ADOPTED_BYTES, ProductLog as _, Retained, Retention};
use downburst_model::{FeedName, Machine as _, Micros};
use downburst_pqact::{Actions, Notifier, Scouring};
use downburst_session::{Nodes, Receipt};
use downburst_site::{
    ConnectionId, FilesStatus, GivenHub, Hubs as Machine, HubsInput, HubsOutput, Listeners, LocalNews, News,
    Role, Wanted,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::acted_on::ActedOn;
use super::control::Asked;
use super::destination::Destination;
use super::drive::Site;
use super::files::{self, DoneTo, FileMode, LinkedFiles, Placing, Waker};
use super::legs::SharedReadings;
use super::parts::{Local, Parts, SharedCompleteness, Supervisor, Turn, Ways};
use super::siblings::SharedSiblings;
use super::state::{HubPlace, Identity, nodes, places, small_files};
use super::store::Logs;
use super::{Ending, HubChoice, Receive, control, prepare_place};
use crate::circuits::Keeper as EndKeeper;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::scrub;

/// A running site.
pub(super) struct Hubs {
    clock: Clock,
    machine: Machine,
    connections: Connections,
    software: Software,
    _counters: Option<Counters>,
    asked: mpsc::Receiver<Asked>,
}

/// The connections, and the resources to create them.
struct Connections {
    clock: Clock,
    receive: Receive,
    logs: Arc<Logs>,
    completeness: SharedCompleteness,
    waker: Option<Waker>,
    siblings: Option<SharedSiblings>,
    hubs: Vec<KnownHub>,
    running: BTreeMap<ConnectionId, Running>,
    heard: mpsc::UnboundedReceiver<HubsInput>,
    to_machine: mpsc::UnboundedSender<HubsInput>,
    readings: SharedReadings,
}

/// A configured hub of the site.
struct KnownHub {
    place: HubPlace,
    choice: HubChoice,
    turn: Turn,
    /// The ends of circuits, which all nodes of the hub may order.
    ends: EndKeeper,
}

/// One connection, driven by a task.
struct Running {
    roles: watch::Sender<Role>,
    done: mpsc::UnboundedSender<LocalNews>,
    _task: JoinHandle<()>,
}

/// The processing of products beyond the logs.
struct Software {
    logs: Arc<Logs>,
    files: Option<std::thread::JoinHandle<()>>,
    /// The way in which files get their bytes; `None`: there are no files.
    placing: Option<Placing>,
    /// The space of products that left the logs, and whose files still exist.
    linked: Option<LinkedFiles>,
    done_to: DoneTo,
    actions: Option<Actions>,
    scouring: Option<Scouring>,
}

impl Hubs {
    /// Opens the site's logs, and reads its positions with its hubs; it connects to none of them yet.
    pub(super) fn open(receive: &Receive, clock: Clock) -> Result<Self, String> {
        let (software, waker) = Software::start(receive, clock)?;
        let connections = Connections::open(receive, clock, Arc::clone(&software.logs), waker)?;
        let return_after = Micros(u64::try_from(receive.return_after.as_micros()).unwrap_or(u64::MAX));
        let machine = Machine::new(connections.given()?, return_after, clock.monotonic());
        let asked = control::listen(&receive.directory);
        let counters = receive.host.counters.then(|| connections.keep_counters());
        Ok(Self { clock, machine, connections, software, _counters: counters, asked })
    }

    /// Works until it is stopped, or refused permanently by all hubs.
    pub(super) async fn run(mut self) -> Ending {
        let mut ended = std::pin::pin!(crate::signals::ended());
        let mut is_ending = false;
        let mut retain = tokio::time::interval(RETAIN_INTERVAL);
        let mut reread = crate::signals::Reread::listen();
        loop {
            if let Some(ending) = self.perform() {
                self.close();
                return ending;
            }
            let due = self.machine.deadline().map(|due| due.since(self.clock.monotonic()).0);
            let pause = due.map_or(LONGEST_PAUSE, Duration::from_micros);
            tokio::select! {
                Some(input) = self.connections.heard.recv() => self.tell(input),
                Some(asked) = self.asked.recv() => self.take_asked(asked),
                _ = retain.tick() => self.software.retain(self.clock),
                () = reread.asked() => self.software.reread(),
                () = tokio::time::sleep(pause) => {}
                () = &mut ended, if !is_ending => {
                    is_ending = true;
                    self.tell(HubsInput::Stop);
                }
            }
        }
    }

    fn tell(&mut self, input: HubsInput) {
        if let HubsInput::Over(connection, _) = &input {
            self.connections.running.remove(connection);
        }
        self.machine.handle(self.clock.now(), input);
    }

    /// Carries out the machine's outputs until there are none; returns the reason for the end of the site.
    fn perform(&mut self) -> Option<Ending> {
        while let Some(output) = self.machine.poll(self.clock.now()) {
            let done = match output {
                HubsOutput::Begin { connection, wanted, decides, owed } => {
                    self.connections.begin(connection, &wanted, decides, owed)
                }
                HubsOutput::ChangeRole(connection, role) => {
                    self.connections.change_role(connection, role);
                    Ok(())
                }
                HubsOutput::KeepNodes { hub, nodes } => self.connections.keep_nodes(hub, &nodes),
                HubsOutput::Listen(listeners) => {
                    self.connections.listen(listeners, &self.software.done_to);
                    Ok(())
                }
                HubsOutput::End(ending) => return Some(ending),
            };
            if let Err(sentence) = done {
                self.tell(HubsInput::Failed(sentence));
            }
        }
        None
    }

    fn take_asked(&mut self, asked: Asked) {
        let answer = self.machine.answer(self.clock.monotonic(), &asked.request);
        let readings = self.connections.readings.lock();
        let groups = control::GroupStatus::all(&readings);
        drop(readings);
        asked.answer(control::Answer { files: self.software.files_status(), groups, ..answer });
    }

    fn close(self) {
        // The thread of the files ends when its last waker is dropped.
        drop(self.connections);
        self.software.close();
    }
}

impl Connections {
    fn open(receive: &Receive, clock: Clock, logs: Arc<Logs>, waker: Option<Waker>) -> Result<Self, String> {
        let places = places(&receive.directory, &receive.hubs);
        places.iter().try_for_each(prepare_place)?;
        let known = |(place, choice): (HubPlace, &HubChoice)| KnownHub {
            ends: EndKeeper::new(&place.mark()),
            place,
            choice: choice.clone(),
            turn: Turn::default(),
        };
        let hubs = places.into_iter().zip(&receive.hubs).map(known).collect();
        let (to_machine, heard) = mpsc::unbounded_channel();
        let (completeness, running) = (SharedCompleteness::default(), BTreeMap::new());
        let siblings = receive
            .host
            .siblings
            .map(|settings| SharedSiblings::open(settings, &receive.directory, Arc::clone(&logs), clock));
        let (siblings, receive) = (siblings.transpose()?, receive.clone());
        let readings = SharedReadings::default();
        Ok(Self {
            clock,
            receive,
            logs,
            completeness,
            waker,
            siblings,
            hubs,
            running,
            heard,
            to_machine,
            readings,
        })
    }

    /// Records the counters of this host under the name by which the first hub knows the site, once it is enrolled.
    fn keep_counters(&self) -> Counters {
        let places: Vec<HubPlace> = self.hubs.iter().map(|hub| hub.place.clone()).collect();
        let known = OnceLock::new();
        let name = move || {
            known.get().cloned().or_else(|| {
                let name =
                    places.first().and_then(|place| Identity::known(place).ok()?.credentials.site().cloned());
                name.map(|name| known.get_or_init(|| name.as_str().to_owned()).clone())
            })
        };
        Counters::start(&self.receive.directory, Box::new(name), self.clock)
    }

    /// The hubs for the machine. A new token is used no matter which connection is made first.
    fn given(&self) -> Result<Vec<GivenHub>, String> {
        let given = |hub: &KnownHub| {
            let identity = Identity::load(&hub.place, hub.choice.token_file.as_deref())?;
            let nodes = nodes::load(&hub.place.state, identity.credentials.is_new());
            Ok(GivenHub { address: hub.place.address.clone(), nodes })
        };
        self.hubs.iter().map(given).collect()
    }

    /// Reads the positions, and starts a task that makes and keeps the connection.
    fn begin(
        &mut self,
        id: ConnectionId,
        wanted: &Wanted,
        decides: bool,
        owed: Vec<Receipt>,
    ) -> Result<(), String> {
        let Some(hub) = self.hubs.get(id.hub) else { return Ok(()) };
        let (place, identity) = hub.place_of(id.hub, wanted)?;
        let (roles, role) = watch::channel(wanted.role);
        let (done, done_stream) = mpsc::unbounded_channel();
        let (news_sender, mut news) = mpsc::unbounded_channel::<News>();
        let site = Site::open(Parts {
            hub: place,
            identity,
            turn: Arc::clone(&hub.turn),
            clock: self.clock,
            versions: self.receive.session_versions.clone(),
            one_node: false,
            only: wanted.only.clone(),
            decides,
            ways: self.ways(hub, wanted),
            destination: Arc::clone(&self.logs) as Arc<dyn Destination>,
            completeness: self.completeness.clone(),
            owed,
            local: Local { files: self.waker.clone(), done: done_stream },
            supervisor: Supervisor { roles: role, news: news_sender },
        })?;
        let to_machine = self.to_machine.clone();
        let task = tokio::spawn(async move {
            let work = tokio::spawn(site.run());
            while let Some(it) = news.recv().await {
                let _ = to_machine.send(HubsInput::News(id, it));
            }
            let _ = to_machine.send(HubsInput::Over(id, work.await.unwrap_or_default()));
        });
        self.running.insert(id, Running { roles, done, _task: task });
        Ok(())
    }

    /// The ways of a connection to one of the hub's nodes.
    fn ways(&self, hub: &KnownHub, wanted: &Wanted) -> Ways {
        Ways {
            via: self.receive.via.clone(),
            reading: self.receive.reading,
            readings: self.readings.clone(),
            amt: self.receive.host.amt.clone(),
            reports: None,
            // A node that is only asked for the others orders no ends of circuits.
            ports: if wanted.asks() { Vec::new() } else { self.receive.host.circuits.clone() },
            ends: Some(hub.ends.clone()),
            probes_most_bps: self.receive.host.probes_most_bps,
            relayed: None,
            siblings: self.siblings.clone(),
            ..Ways::default()
        }
    }

    fn change_role(&self, connection: ConnectionId, role: Role) {
        if let Some(running) = self.running.get(&connection) {
            running.roles.send_replace(role);
        }
    }

    fn keep_nodes(&self, hub: usize, nodes: &Nodes) -> Result<(), String> {
        self.hubs.get(hub).map_or(Ok(()), |hub| nodes::keep(&hub.place.state, nodes))
    }

    /// The stamps of files go into the receipts for the hub that serves the feed.
    fn listen(&self, listeners: Listeners, done_to: &DoneTo) {
        let sender = |id: &ConnectionId| self.running.get(id).map(|running| running.done.clone());
        let Listeners { all, by_feed } = listeners;
        let by_feed = by_feed.into_iter().filter_map(|(feed, id)| Some((feed, sender(&id)?)));
        done_to.set(all.as_ref().and_then(sender), by_feed.collect());
    }
}

impl KnownHub {
    /// All nodes of a hub know the site by the same credential and share its positions; each has its own spool.
    fn place_of(&self, hub: usize, wanted: &Wanted) -> Result<(HubPlace, Identity), String> {
        if wanted.only.is_none() {
            let identity = Identity::load(&self.place, self.choice.token_file.as_deref())?;
            return Ok((self.place.clone(), identity));
        }
        let spool = wanted.spool_name(hub, &crate::file_names::encode(&wanted.address));
        let spool = self.place.spool.with_file_name(spool);
        let place = HubPlace { address: wanted.address.clone(), state: self.place.state.clone(), spool };
        prepare_place(&place)?;
        let identity = Identity::known(&place)?;
        Ok((place, identity))
    }
}

impl Software {
    fn start(receive: &Receive, clock: Clock) -> Result<(Self, Option<Waker>), String> {
        let retention = Retention { hours: receive.retention_hours, bytes: receive.retention_bytes };
        let several = receive.hubs.len() > 1;
        let notifier = Arc::<Notifier>::default();
        let placing = receive.files.then(|| placing(receive)).transpose()?;
        let logs =
            Logs::new(&receive.directory.join("log"), retention, several).notifying(Arc::clone(&notifier));
        // A file is made of each product in any case, and may be the body.
        let is_shared = placing.as_ref().is_some_and(|placing| placing.used != FileMode::Copy);
        let logs = Arc::new(if is_shared { logs.with_bodies_from(ADOPTED_BYTES) } else { logs });
        let done_to = DoneTo::default();
        let files = placing
            .clone()
            .map(|placing| {
                files::start(Arc::clone(&logs), &receive.directory, placing, clock, done_to.clone())
            })
            .transpose()?;
        let (waker, files) = files.unzip();
        start_scrub(receive, &logs, &done_to)?;
        let acted_on =
            ActedOn { logs: Arc::clone(&logs), done_to: done_to.clone(), placing: placing.clone() };
        let acted_on = Arc::new(acted_on);
        let actions = Actions::start(&receive.actions, &receive.directory, acted_on, notifier, clock)?;
        let scouring = Scouring::start(&receive.scour, &receive.directory)?;
        let linked =
            placing.is_some().then(|| LinkedFiles::start(&receive.directory, done_to.clone())).transpose()?;
        Ok((Self { logs, files, placing, linked, done_to, actions, scouring }, waker))
    }

    /// Reads the rules of actions and of scouring again from their files; a faulty file leaves the former rules
    /// in force.
    fn reread(&mut self) {
        if let Some(actions) = &mut self.actions {
            actions.reread();
        }
        if let Some(scouring) = &self.scouring {
            scouring.reread();
        }
    }

    fn retain(&mut self, clock: Clock) {
        if let Some(actions) = &mut self.actions {
            actions.tend();
        }
        for (feed, log) in self.logs.all() {
            match log.retain(clock.wall()) {
                Ok(retained) => log_linked(&feed, &retained),
                Err(error) => tracing::error!(feed = feed.as_str(), "{error}"),
            }
        }
    }

    fn files_status(&self) -> Option<FilesStatus> {
        let Placing { asked, used, reason } = self.placing.clone()?;
        let (asked, used) = (asked.word().to_owned(), used.word().to_owned());
        let linked_bytes = self.linked.as_ref().map_or(0, LinkedFiles::bytes);
        Some(FilesStatus { asked, used, reason, linked_bytes })
    }

    fn close(self) {
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

/// Logs a log that is cut for space, and gets none.
fn log_linked(feed: &FeedName, retained: &Retained) {
    let Retained { linked_bytes, products_cut_by_ceiling, .. } = *retained;
    if linked_bytes > 0 && products_cut_by_ceiling > 0 {
        tracing::warn!(
            feed = feed.as_str(),
            linked_bytes,
            "the log has reached its limit, and products that left it still take space, because their files \
             below received/ exist; remove old files (--scour)"
        );
    }
}

/// The way of bytes from the site's log to its files, as the file systems allow it.
fn placing(receive: &Receive) -> Result<Placing, String> {
    let (directory, asked) = (&receive.directory, receive.file_mode);
    // The logs of a new site are still to come.
    let is_new = std::fs::read_dir(directory.join("log")).is_ok_and(|mut logs| logs.next().is_none());
    let asked = FileMode::settle(directory, asked, is_new)
        .map_err(|error| format!("{}: the choice of --files can't be kept: {error}", directory.display()))?;
    let placing = Placing::find(asked, &directory.join("log"), &directory.join("spool"));
    let reason = placing.reason.as_deref().unwrap_or_default();
    tracing::info!(asked = ?placing.asked, used = ?placing.used, reason, "large products reach received/ in this way");
    Ok(placing)
}

/// Verifies the site's logs and the files of its state in the background.
fn start_scrub(receive: &Receive, logs: &Arc<Logs>, done_to: &DoneTo) -> Result<(), String> {
    let (open, told) = (Arc::downgrade(logs), done_to.clone());
    let report = move |feed: &FeedName, sentence: String| {
        tracing::error!("{sentence}");
        told.acts(feed, Some(downburst_site::damaged_state(sentence)));
    };
    let wanted = done_to.clone();
    let lost = move |key| wanted.damaged(key);
    let directory = receive.directory.clone();
    scrub::start(
        receive.scrub,
        Box::new(move || Some(open.upgrade()?.all())),
        Box::new(move || small_files(&directory)),
        Box::new(report),
        Box::new(lost),
    )
}

const RETAIN_INTERVAL: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
