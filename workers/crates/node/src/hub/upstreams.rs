//! A hub as a site of other hubs: their products go into this hub's own feeds.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use downburst_hub::upstreams::{
    Admission, UpstreamIntake, UpstreamReport, WantedFeeds, outdated, own_upstream,
};
use downburst_log::FeedLog;
use downburst_model::{Class, FeedName, Hops, ProductInfo};
use downburst_site::{News, Role};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::hub::feeds::Feed;
use crate::hub::{Hub, lock};
use crate::lines::{Event, Failure, UpstreamLine};
use crate::site::{
    Destination, HubPlace, Identity, Local, Parts, SharedCompleteness, Site, Supervisor, Turn, prepare_place,
};

/// All upstreams of this hub.
#[derive(Default)]
pub(super) struct Upstreams(tokio::sync::Mutex<BTreeMap<String, Upstream>>);

/// A connection to one upstream.
struct Upstream {
    line: UpstreamLine,
    intake: Arc<Intake>,
    role: watch::Sender<Role>,
    task: JoinHandle<()>,
}

/// Puts an upstream's products into this hub's feeds.
struct Intake {
    hub: Weak<Hub>,
    /// The operator's name for the upstream.
    name: String,
    wanted: WantedFeeds,
    machine: Mutex<UpstreamIntake>,
    stored: AtomicU64,
}

impl Upstreams {
    /// Connects, changes and removes upstreams until they match `lines`.
    pub(super) async fn reconcile(&self, hub: &Arc<Hub>, lines: Vec<UpstreamLine>) -> Result<(), Failure> {
        let wanted: BTreeMap<String, UpstreamLine> =
            lines.into_iter().map(|line| (line.upstream.clone(), line)).collect();
        let mut known = self.0.lock().await;
        for name in outdated(known.values().map(|upstream| &upstream.line), &wanted) {
            if let Some(upstream) = known.remove(&name) {
                upstream.end().await;
            }
        }
        let mut failed = Ok(());
        for (name, line) in wanted {
            if known.contains_key(&name) {
                continue;
            }
            match Upstream::start(hub, line) {
                Ok(upstream) => drop(known.insert(name, upstream)),
                Err(sentence) => failed = Err(Failure::new("bad-request", sentence)),
            }
        }
        failed
    }

    pub(super) async fn end_all(&self) {
        for upstream in std::mem::take(&mut *self.0.lock().await).into_values() {
            upstream.end().await;
        }
    }

    pub(super) async fn status(&self) -> Value {
        self.0.lock().await.values().map(|upstream| upstream.intake.status()).collect()
    }
}

impl Upstream {
    fn start(hub: &Arc<Hub>, line: UpstreamLine) -> Result<Self, String> {
        let directory = hub.start.data_dir.join("upstreams").join(crate::file_names::encode(&line.upstream));
        let place = HubPlace {
            address: line.address.clone(),
            state: directory.clone(),
            spool: directory.join("spool"),
        };
        prepare_place(&place)?;
        let identity = Identity::load_with_token(&place, &line.token)
            .map_err(|sentence| format!("upstream {}: {sentence}", line.upstream))?;
        if identity.credentials.ca_sha256() == hub.entrance.ca_sha256 {
            return Err(own_upstream(&line.upstream));
        }
        let intake = Arc::new(Intake::new(hub, &line));
        let (role, roles) = watch::channel(Role::Serve);
        let (news_sender, news) = mpsc::unbounded_channel();
        let (_, done) = mpsc::unbounded_channel();
        let site = Site::open(Parts {
            hub: place,
            identity,
            clock: hub.clock,
            // All products go into this hub's own logs over one connection: the upstream's own node serves them.
            versions: hub.start.session_versions.clone(),
            one_node: true,
            only: None,
            decides: true,
            turn: Turn::default(),
            ways: crate::site::Ways::default(),
            destination: Arc::clone(&intake) as Arc<dyn Destination>,
            completeness: SharedCompleteness::default(),
            owed: Vec::new(),
            local: Local { files: None, done },
            supervisor: Supervisor { roles, news: news_sender },
        })?;
        tokio::spawn(hear(Arc::clone(&intake), news));
        // It never leaves receipts to another connection: there is none to that hub.
        let task = tokio::spawn(async move { drop(site.run().await) });
        Ok(Self { line, intake, role, task })
    }

    async fn end(self) {
        self.role.send_replace(Role::End);
        let _ = self.task.await;
        self.intake.is_away("the upstream was removed");
    }
}

async fn hear(intake: Arc<Intake>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        match news {
            News::Well { hub, .. } => {
                let reports = lock(&intake.machine).is_well(&hub);
                intake.report(reports);
            }
            News::Away { sentence, .. } => intake.is_away(&sentence),
            News::Refused(sentence) => {
                let reports = lock(&intake.machine).is_refused(&sentence);
                intake.report(reports);
            }
            News::Unkept(sentence) => intake.report([UpstreamReport::Fault { sentence, feed: None }]),
            // Sent only to sites that take their feeds from several nodes.
            News::Nodes(_) => {}
        }
    }
}

impl Intake {
    fn new(hub: &Arc<Hub>, line: &UpstreamLine) -> Self {
        Self {
            hub: Arc::downgrade(hub),
            name: line.upstream.clone(),
            wanted: WantedFeeds::of(line),
            machine: Mutex::new(UpstreamIntake::new(&line.upstream, &hub.start.name)),
            stored: AtomicU64::new(0),
        }
    }

    fn is_away(&self, sentence: &str) {
        let report = lock(&self.machine).is_away(sentence);
        self.report(report);
    }

    fn status(&self) -> Value {
        json!(lock(&self.machine).status(self.stored.load(Ordering::Relaxed)))
    }

    fn report(&self, reports: impl IntoIterator<Item = UpstreamReport>) {
        let Some(hub) = self.hub.upgrade() else { return };
        for report in reports {
            match report {
                UpstreamReport::State { state, hub: name, reason } => {
                    let upstream = self.name.clone();
                    hub.event(&Event::Upstream { upstream, state, hub: name, reason });
                }
                UpstreamReport::Fault { sentence, feed } => hub.fault(sentence, feed.as_ref()),
            }
        }
    }

    fn feed(&self, feed: &FeedName) -> Option<Arc<Feed>> {
        self.hub.upgrade()?.feeds.find(feed).filter(|_| self.wanted.takes(feed))
    }
}

impl Destination for Intake {
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        Ok(self.feed(feed).map(|feed| Arc::clone(&feed.log)))
    }

    fn admit(&self, product: &ProductInfo) -> Option<(Class, Option<Hops>)> {
        let class = self.feed(&product.key.feed).map(|feed| feed.class());
        let Admission { admitted, complaint } = lock(&self.machine).admit(product, class);
        if complaint.is_some() {
            self.report(complaint);
        }
        admitted
    }

    fn appended(&self, product: &ProductInfo) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        if let Some(hub) = self.hub.upgrade() {
            hub.arrived(product);
        }
    }

    fn hub_is(&self, name: &str) {
        lock(&self.machine).hub_is(name);
    }
}
