//! A hub as a site of other hubs: their products go into this hub's own feeds.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use downburst_log::FeedLog;
use downburst_model::{Class, FeedName, Hops, HubName, ProductInfo};
use downburst_site::{News, Role};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

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
    upstream: String,
    /// The feeds to take; empty: all that exist here.
    wanted: BTreeSet<FeedName>,
    own_name: Option<HubName>,
    state: Mutex<State>,
    stored: AtomicU64,
    passed_over: AtomicU64,
    looped: AtomicU64,
}

#[derive(Default)]
struct State {
    connected: bool,
    /// The upstream's name for itself: the hop of its products.
    name: Option<HubName>,
    reason: Option<String>,
    /// Feeds for which a complaint was logged.
    complained: BTreeSet<FeedName>,
}

impl Upstreams {
    /// Connects, changes and removes upstreams until they match `lines`.
    pub(super) async fn reconcile(&self, hub: &Arc<Hub>, lines: Vec<UpstreamLine>) -> Result<(), Failure> {
        let wanted: BTreeMap<String, UpstreamLine> =
            lines.into_iter().map(|line| (line.upstream.clone(), line)).collect();
        let mut known = self.0.lock().await;
        let gone: Vec<String> = known
            .iter()
            .filter(|(name, upstream)| wanted.get(*name) != Some(&upstream.line))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
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
            return Err(format!(
                "upstream {} is this hub itself, by its token; use a token of the other hub",
                line.upstream
            ));
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
            reading: crate::site::Reading::default(),
            ports: Vec::new(),
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
        self.intake.is_away("the upstream was removed", "closed");
    }
}

async fn hear(intake: Arc<Intake>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        match news {
            News::Well { hub, .. } => intake.is_well(&hub),
            News::Away { sentence, .. } => intake.is_away(&sentence, "closed"),
            News::Refused(sentence) => {
                intake.is_away(&sentence, "refused");
                intake.fault(
                    format!(
                        "upstream {} refused this hub: {sentence} (then: downburst upstreams add {} --token ...)",
                        intake.upstream, intake.upstream
                    ),
                    None,
                );
            }
            News::Unkept(sentence) => intake.fault(sentence, None),
            // Sent only to sites that take their feeds from several nodes.
            News::Nodes(_) => {}
        }
    }
}

impl Intake {
    fn new(hub: &Arc<Hub>, line: &UpstreamLine) -> Self {
        Self {
            hub: Arc::downgrade(hub),
            upstream: line.upstream.clone(),
            wanted: line.feeds.iter().cloned().collect(),
            own_name: HubName::parse(&hub.start.name).ok(),
            state: Mutex::default(),
            stored: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
            looped: AtomicU64::new(0),
        }
    }

    fn is_well(&self, name: &str) {
        {
            let mut state = lock(&self.state);
            (state.connected, state.reason) = (true, None);
            state.complained.clear();
        }
        self.tell("connected", Some(name), None);
        if self.own_name.as_ref().is_some_and(|own| own.as_str() == name) {
            self.fault(
                format!(
                    "upstream {} has the same name as this hub, {name:?}, so that loops could not be detected: its \
                     products are ignored; give this hub another name (setting name)",
                    self.upstream
                ),
                None,
            );
        }
    }

    /// Reports changes only: a hub that is away for a day is called thousands of times.
    fn is_away(&self, sentence: &str, word: &'static str) {
        let was_connected = {
            let mut state = lock(&self.state);
            state.reason = Some(sentence.to_owned());
            std::mem::replace(&mut state.connected, false)
        };
        if was_connected || word == "refused" {
            self.tell(word, None, Some(sentence));
        }
    }

    fn status(&self) -> Value {
        let state = lock(&self.state);
        json!({
            "upstream": self.upstream, "connected": state.connected, "hub": state.name, "reason": state.reason,
            "stored": self.stored.load(Ordering::Relaxed), "looped": self.looped.load(Ordering::Relaxed),
            "passed_over": self.passed_over.load(Ordering::Relaxed),
        })
    }

    fn tell(&self, state: &'static str, name: Option<&str>, reason: Option<&str>) {
        if let Some(hub) = self.hub.upgrade() {
            hub.event(&Event::Upstream {
                upstream: self.upstream.clone(),
                state,
                hub: name.map(str::to_owned),
                reason: reason.map(str::to_owned),
            });
        }
    }

    fn fault(&self, sentence: String, feed: Option<&FeedName>) {
        if let Some(hub) = self.hub.upgrade() {
            hub.fault(sentence, feed);
        }
    }

    /// Reports, once per connection and feed, why its products are skipped.
    fn complain(&self, feed: &FeedName, sentence: impl FnOnce() -> String) {
        if lock(&self.state).complained.insert(feed.clone()) {
            self.fault(sentence(), Some(feed));
        }
    }

    fn feed(&self, feed: &FeedName) -> Option<Arc<crate::hub::feeds::Feed>> {
        self.hub.upgrade()?.feeds.find(feed).filter(|_| self.wanted.is_empty() || self.wanted.contains(feed))
    }

    /// The hops of a product that arrived from this upstream; `None` if it has been here before.
    fn way(&self, product: &ProductInfo) -> Option<Hops> {
        let came_by = lock(&self.state).name.clone()?;
        let own = self.own_name.as_ref()?;
        let looped = came_by == *own || product.hops.as_ref().is_some_and(|hops| hops.contains(own));
        Hops::through(product.hops.as_ref(), came_by).filter(|_| !looped)
    }
}

impl Destination for Intake {
    fn log(&self, feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        Ok(self.feed(feed).map(|feed| Arc::clone(&feed.log)))
    }

    fn admit(&self, product: &ProductInfo) -> Option<(Class, Option<Hops>)> {
        // This hub puts in its own heartbeats: an upstream's heartbeats end at this hub, its site.
        if product.id.is_heartbeat() {
            return None;
        }
        let name = &product.key.feed;
        let Some(feed) = self.feed(name) else {
            self.passed_over.fetch_add(1, Ordering::Relaxed);
            self.complain(name, || {
                format!(
                    "products of feed {name} from upstream {} are ignored, because this hub does not take that \
                     feed; create it (downburst feeds add {name}), name it among the upstream's feeds, or take it \
                     off this hub's subscriptions there",
                    self.upstream
                )
            });
            return None;
        };
        let way = self.way(product);
        if way.is_none() {
            self.looped.fetch_add(1, Ordering::Relaxed);
            self.complain(name, || {
                format!(
                    "upstream {} sends products of feed {name} that passed this hub before: hubs feed each other \
                     in a circle; remove the feed from one of the subscriptions, or give hubs of the same \
                     name different names",
                    self.upstream
                )
            });
        }
        way.map(|way| (feed.line().class, Some(way)))
    }

    fn appended(&self, product: &ProductInfo) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        if let Some(hub) = self.hub.upgrade() {
            hub.counters.arrived(&product.key.feed, product.size);
        }
    }

    /// Notes the upstream's name; a name that can't be a hop is replaced by the operator's name for it.
    fn hub_is(&self, name: &str) {
        let name = HubName::parse(name).or_else(|_| HubName::parse(&self.upstream));
        lock(&self.state).name = name.ok();
    }
}
