//! The lines spoken with the agent: jobs and questions in, answers and events out, one JSON object a line.
use std::collections::BTreeMap;
use std::path::PathBuf;

use downburst_log::{DuplicateRule, Durability};
use downburst_model::{Class, FeedName, LegId, Sequence, SiteName, Transport, WallMicros};
use downburst_session::Duplicates;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::hub::{DeliveriesLine, ProductsLine};

/// One line from the agent.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// Chosen by the agent; the answer carries it.
    pub(crate) id: u64,
    /// What to do.
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// What a job asks for.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Action {
    /// The first job: where to work and listen.
    Start(Start),
    /// The whole set of feeds.
    Feeds {
        /// All of them.
        feeds: Vec<FeedLine>,
    },
    /// The whole set of sites that may connect.
    Sites {
        /// All of them.
        sites: Vec<SiteLine>,
    },
    /// The whole set of hubs that this one is a site of.
    Upstreams {
        /// All of them.
        upstreams: Vec<UpstreamLine>,
    },
    /// A feed's plan.
    Plan(PlanLine),
    /// A complete product lies in a spool file.
    Ingest(IngestLine),
    /// Is this a usable subscription pattern?
    CheckPattern {
        /// The pattern.
        pattern: String,
    },
    /// What the node holds and who is connected.
    Status,
    /// Where are these products, and who has them?
    Deliveries(DeliveriesLine),
    /// What do these numbers stand for?
    Products(ProductsLine),
    /// Answer when every connected site has everything.
    Drain {
        /// Give up after this long.
        #[serde(default = "default_drain_seconds")]
        seconds: f64,
    },
    /// A batch file was loaded and can go.
    BatchLoaded {
        /// Its id.
        batch: String,
    },
    /// The decision on an enrolment.
    EnrolAnswer(EnrolAnswer),
    /// End cleanly.
    Stop,
}

/// See [`Action::Start`].
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Start {
    /// The hub's name, shown to sites.
    pub(crate) name: String,
    /// Holds the logs and the keys.
    pub(crate) data_dir: PathBuf,
    /// Addresses for sites.
    pub(crate) listen: Vec<String>,
    /// The host named as origin of products that name none.
    pub(crate) origin: String,
    /// Address of the interface that multicast legs leave by.
    #[serde(default)]
    pub(crate) multicast_interface: String,
    /// Batch files are written here.
    pub(crate) batch_dir: PathBuf,
    /// How often.
    #[serde(default = "default_batch_seconds")]
    pub(crate) batch_seconds: f64,
    /// Congestion control of the connections with sites; the system's if none is named.
    #[serde(default)]
    pub(crate) tcp_congestion: Option<String>,
    /// How long raw receipts are kept; 0: none are.
    #[serde(default = "default_receipt_hours")]
    pub(crate) receipt_hours: f64,
    /// How much disk raw receipts may take.
    #[serde(default = "default_receipt_bytes")]
    pub(crate) receipt_bytes: u64,
    /// The most data connections that a site gets beside its first.
    #[serde(default = "default_data_connections")]
    pub(crate) data_connections: usize,
}

/// See [`Action::Feeds`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FeedLine {
    /// Its name.
    pub(crate) feed: FeedName,
    /// Its priority.
    pub(crate) class: Class,
    /// How long bytes are kept.
    pub(crate) retention_hours: f64,
    /// How many bytes are kept.
    pub(crate) retention_bytes: u64,
    /// What an acknowledgement survives.
    pub(crate) durability: DurabilityWord,
    /// What makes two products the same.
    pub(crate) duplicate_rule: DuplicateWord,
    /// The largest product.
    pub(crate) max_product_bytes: u64,
    /// The leg that unicast deliveries are counted under while no plan names one.
    pub(crate) unicast_leg: LegId,
}

/// What an acknowledgement survives, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilityWord {
    /// See [`Durability::Process`].
    Process,
    /// See [`Durability::Power`].
    Power,
}

impl From<DurabilityWord> for Durability {
    fn from(word: DurabilityWord) -> Self {
        match word {
            DurabilityWord::Process => Self::Process,
            DurabilityWord::Power => Self::Power,
        }
    }
}

/// What makes two products the same, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DuplicateWord {
    /// See [`DuplicateRule::Content`].
    Content,
    /// See [`DuplicateRule::ContentWithoutWmoStart`].
    ContentWithoutWmoStart,
    /// See [`DuplicateRule::Id`].
    Id,
    /// See [`DuplicateRule::IdAndContent`].
    IdAndContent,
    /// See [`DuplicateRule::None`].
    None,
}

impl From<DuplicateWord> for DuplicateRule {
    fn from(word: DuplicateWord) -> Self {
        match word {
            DuplicateWord::Content => Self::Content,
            DuplicateWord::ContentWithoutWmoStart => Self::ContentWithoutWmoStart,
            DuplicateWord::Id => Self::Id,
            DuplicateWord::IdAndContent => Self::IdAndContent,
            DuplicateWord::None => Self::None,
        }
    }
}

impl From<DuplicateWord> for Duplicates {
    fn from(word: DuplicateWord) -> Self {
        match word {
            DuplicateWord::Content => Self::Content,
            DuplicateWord::ContentWithoutWmoStart => Self::ContentWithoutWmoStart,
            DuplicateWord::Id => Self::Id,
            DuplicateWord::IdAndContent => Self::IdAndContent,
            DuplicateWord::None => Self::None,
        }
    }
}

/// See [`Action::Sites`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SiteLine {
    /// Its name.
    pub(crate) site: SiteName,
    /// What it may prove itself with.
    pub(crate) credentials: Vec<CredentialLine>,
    /// What it gets.
    pub(crate) subscriptions: Vec<SubscriptionLine>,
    /// What it gets once more.
    #[serde(default)]
    pub(crate) resends: Vec<ResendLine>,
    /// The interface it listens to multicast on; empty: the one that reaches the hub.
    #[serde(default)]
    pub(crate) interface: String,
    /// False: may not connect.
    pub(crate) active: bool,
    /// How many data connections it gets; absent: as many as help.
    #[serde(default)]
    pub(crate) data_connections: Option<usize>,
}

/// See [`Action::Upstreams`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct UpstreamLine {
    /// What the operator calls it.
    pub(crate) upstream: String,
    /// Its address for sites.
    pub(crate) address: String,
    /// The enrolment token from its operator.
    pub(crate) token: String,
    /// The feeds to take; empty: all that exist here.
    #[serde(default)]
    pub(crate) feeds: Vec<FeedName>,
}

/// A credential, known by its hash.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct CredentialLine {
    /// SHA-256 of the secret, in hex.
    pub sha256: String,
    /// When it ends.
    pub(crate) expires_us: Option<WallMicros>,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SubscriptionLine {
    /// The feed.
    pub(crate) feed: FeedName,
    /// Ids that match are wanted.
    pub(crate) pattern: String,
    /// Unless they match this.
    pub(crate) not_pattern: Option<String>,
    /// Local software sees live products in order; a missing one holds back later ones so long.
    #[serde(default)]
    pub(crate) hold_us: Option<u64>,
    /// What was stored longer ago is not sent any more.
    #[serde(default)]
    pub(crate) max_age_us: Option<i64>,
}

/// Stored products that a site gets once more.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ResendLine {
    /// Its number, never given twice.
    pub(crate) resend: u64,
    /// The feed.
    pub(crate) feed: FeedName,
    /// Whether the site gets what it has already, too.
    pub(crate) kind: ResendKind,
    /// Stored at this moment or later.
    pub(crate) from_us: WallMicros,
    /// Stored before this moment.
    pub(crate) to_us: WallMicros,
    /// Ids that go.
    pub(crate) wanted: FilterLine,
    /// Unless they match one of these.
    pub(crate) had: Vec<FilterLine>,
}

/// Why stored products travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ResendKind {
    /// Somebody asked for them.
    Resend,
    /// A subscription begins in the past.
    Backfill,
}

/// Ids that match `pattern` and not `not_pattern`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct FilterLine {
    /// Ids that match.
    pub(crate) pattern: String,
    /// Unless they match this.
    pub(crate) not_pattern: Option<String>,
}

/// See [`Action::Plan`].
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PlanLine {
    /// The feed.
    pub(crate) feed: FeedName,
    /// Rising per feed; a lower one than the last is refused.
    pub(crate) version: u64,
    /// Its legs.
    pub(crate) legs: Vec<LegLine>,
}

/// One leg of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LegLine {
    /// Its number.
    pub(crate) leg: LegId,
    /// How.
    pub(crate) transport: Transport,
    /// For whom.
    pub(crate) sites: Vec<SiteName>,
    /// Multicast only: the group's address.
    #[serde(default)]
    pub(crate) group: String,
    /// Multicast only: the group's port.
    #[serde(default)]
    pub(crate) port: u16,
    /// Multicast only: Ethernet-frame bits per second.
    #[serde(default)]
    pub(crate) rate_bps: u64,
}

/// See [`Action::Ingest`].
#[derive(Debug, Deserialize)]
pub(crate) struct IngestLine {
    /// The spool file.
    pub(crate) path: PathBuf,
    /// The feed, checked against the known ones.
    pub(crate) feed: String,
    /// The product's id, checked here.
    pub(crate) product_id: String,
    /// The first ingester's stamp; the moment of ingest if absent.
    pub(crate) created_us: Option<WallMicros>,
    /// The first ingester; the hub's own name if absent.
    pub(crate) origin: Option<String>,
    /// BLAKE3-256 in hex, if the source knows it.
    pub(crate) digest: Option<String>,
    /// Unlink the spool file once the product is stored.
    #[serde(default)]
    pub(crate) remove: bool,
}

/// See [`Action::EnrolAnswer`].
#[derive(Debug, Deserialize)]
pub(crate) struct EnrolAnswer {
    /// From the question.
    pub(crate) ask: u64,
    /// The decision.
    pub(crate) ok: bool,
    /// If ok: who it is.
    pub(crate) site: Option<SiteName>,
    /// If not: one sentence.
    pub(crate) sentence: Option<String>,
}

/// Why a job failed, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One of a closed list of words.
    pub(crate) code: &'static str,
    /// One sentence: what, where, what to do.
    pub(crate) error: String,
    /// More fields of the answer.
    pub(crate) fields: BTreeMap<&'static str, u64>,
}

impl Failure {
    /// A failure without further fields.
    pub(crate) fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self { code, error: error.into(), fields: BTreeMap::new() }
    }
}

/// Writes answers and events, each as one line, from any task or thread.
#[derive(Clone, Debug)]
pub(crate) struct Lines(mpsc::UnboundedSender<String>);

impl Lines {
    /// The writer and the stream of lines it makes. The agent reads without pause or the pipe ends the node, so the queue is short.
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Answers a job.
    pub(crate) fn answer(&self, id: u64, result: Result<Value, Failure>) {
        let (ok, fields) = match result {
            Ok(fields) => (true, fields),
            Err(failure) => {
                let mut fields = json!({"code": failure.code, "error": failure.error});
                for (name, value) in failure.fields {
                    set(&mut fields, name, json!(value));
                }
                (false, fields)
            }
        };
        let mut line = fields;
        set(&mut line, "answer", json!(id));
        set(&mut line, "ok", json!(ok));
        self.write(&line);
    }

    /// Tells something nobody asked for.
    pub(crate) fn event(&self, event: &Event, at: WallMicros) {
        match serde_json::to_value(event) {
            Ok(mut line) => {
                set(&mut line, "at_us", json!(at.0));
                self.write(&line);
            }
            Err(error) => tracing::error!(%error, "an event could not be written"),
        }
    }

    fn write(&self, line: &Value) {
        // The receiver goes away only at the end of the process.
        let _ = self.0.send(line.to_string());
    }
}

fn set(line: &mut Value, name: &str, value: Value) {
    if let Some(fields) = line.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// Something nobody asked for.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// A site shows a token.
    Enrol { ask: u64, secret_sha256: String, credential_sha256: String, peer: String },
    /// A session changed.
    Session {
        site: Option<SiteName>,
        state: &'static str,
        peer: String,
        reason: Option<String>,
        software: Option<String>,
    },
    /// A site joined or left a leg.
    Leg {
        feed: FeedName,
        leg: LegId,
        site: SiteName,
        state: &'static str,
        after: Option<Sequence>,
        reason: Option<String>,
    },
    /// The connection to an upstream changed.
    Upstream { upstream: String, state: &'static str, hub: Option<String>, reason: Option<String> },
    /// A site has everything of a resend.
    Resend { site: SiteName, resend: u64, products: u64, bytes: u64, expired: u64 },
    /// A log was repaired at its start.
    Recovered { feed: FeedName, sentence: String },
    /// Something an operator should see.
    Fault { sentence: String, feed: Option<FeedName>, site: Option<SiteName> },
    /// What moved in the last second.
    Traffic(Traffic),
    /// A batch of sketches is ready.
    Batch { batch: String, path: PathBuf },
}

/// See [`Event::Traffic`].
#[derive(Debug, Default, Serialize)]
pub(crate) struct Traffic {
    pub(crate) from_us: WallMicros,
    pub(crate) to_us: WallMicros,
    pub(crate) feeds: Vec<FeedTraffic>,
    pub(crate) legs: Vec<LegTraffic>,
    pub(crate) control_bytes: u64,
    pub(crate) sessions: Vec<SessionTraffic>,
}

/// Arrivals of a feed.
#[derive(Debug, Serialize)]
pub(crate) struct FeedTraffic {
    pub(crate) feed: FeedName,
    pub(crate) products: u64,
    pub(crate) bytes: u64,
    pub(crate) sizes: Vec<u64>,
    pub(crate) head: Sequence,
}

/// What a leg carried.
#[derive(Debug, Serialize)]
pub(crate) struct LegTraffic {
    pub(crate) leg: LegId,
    pub(crate) feed: FeedName,
    pub(crate) egress_bytes: u64,
    pub(crate) repair_bytes: u64,
    pub(crate) products: u64,
    pub(crate) product_bytes: u64,
    pub(crate) sites: u64,
    pub(crate) backlog_bytes: u64,
}

/// Where a connected site stands.
#[derive(Debug, Serialize)]
pub(crate) struct SessionTraffic {
    pub(crate) site: SiteName,
    pub(crate) clock_offset_us: Option<i64>,
    pub(crate) clock_bound_us: Option<u64>,
    pub(crate) round_trip_us: Option<u64>,
    /// Those that stand, how many there are to be, and why.
    pub(crate) data_connections: usize,
    pub(crate) data_connections_planned: usize,
    pub(crate) data_connections_reason: String,
    pub(crate) feeds: Vec<SessionFeed>,
}

/// Where a site stands in a feed.
#[derive(Debug, Serialize)]
pub(crate) struct SessionFeed {
    pub(crate) feed: FeedName,
    pub(crate) settled_to: Sequence,
    pub(crate) pending: u64,
    pub(crate) late: u64,
    pub(crate) transport: Transport,
    pub(crate) leg: LegId,
    /// Why the site stores nothing of the feed, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

const fn default_data_connections() -> usize {
    downburst_session::DATA_STREAMS
}

const fn default_drain_seconds() -> f64 {
    60.0
}

const fn default_receipt_hours() -> f64 {
    24.0
}

const fn default_receipt_bytes() -> u64 {
    4_000_000_000
}

const fn default_batch_seconds() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(line: &str) -> Result<Job, serde_json::Error> {
        serde_json::from_str(line)
    }

    #[test]
    fn jobs_of_the_agent_are_read() {
        let plan = r#"{"id":7,"do":"plan","feed":"NGRID","version":3,"legs":[
            {"leg":1,"transport":"unicast","sites":["a"]},
            {"leg":2,"transport":"multicast","sites":["b","c"],"group":"239.77.0.2","port":17002,"rate_bps":400000000}]}"#;
        let Job { id: 7, action: Action::Plan(plan) } = job(plan).unwrap() else { panic!("not a plan") };
        assert_eq!(plan.legs.len(), 2);
        assert_eq!(plan.legs[1].transport, Transport::Multicast);
        let feeds = r#"{"id":1,"do":"feeds","feeds":[{"feed":"IDS|DDPLUS","class":"observation","retention_hours":2,
            "retention_bytes":1000,"durability":"power","duplicate_rule":"content-without-wmo-start",
            "max_product_bytes":10,"unicast_leg":4}]}"#;
        assert!(matches!(job(feeds).unwrap().action, Action::Feeds { feeds } if feeds.len() == 1));
        assert!(matches!(job(r#"{"id":1,"do":"drain"}"#).unwrap().action, Action::Drain { seconds: 60.0 }));
    }

    #[test]
    fn what_is_no_job_is_refused() {
        for bad in [
            "{}",
            r#"{"id":1}"#,
            r#"{"id":1,"do":"dance"}"#,
            r#"{"id":1,"do":"plan","feed":"no blanks","version":1,"legs":[]}"#,
            r#"{"id":1,"do":"plan","feed":"F","version":1,"legs":[{"leg":1,"transport":"pigeon","sites":[]}]}"#,
        ] {
            assert!(job(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_carry_the_number_and_failures_their_fields() {
        let (lines, mut stream) = Lines::channel();
        lines.answer(3, Ok(json!({"head": 5})));
        let mut failure = Failure::new("bad-pattern", "no");
        failure.fields.insert("position", 6);
        lines.answer(4, Err(failure));
        lines.event(&Event::Fault { sentence: "x".to_owned(), feed: None, site: None }, WallMicros(9));
        let mut next = || serde_json::from_str::<Value>(&stream.try_recv().unwrap()).unwrap();
        assert_eq!(next(), json!({"answer": 3, "ok": true, "head": 5}));
        assert_eq!(
            next(),
            json!({"answer": 4, "ok": false, "code": "bad-pattern", "error": "no", "position": 6})
        );
        assert_eq!(
            next(),
            json!({"event": "fault", "at_us": 9, "sentence": "x", "feed": null, "site": null})
        );
    }
}
