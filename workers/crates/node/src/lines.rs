//! The line protocol with the agent: jobs and queries in, answers and events out, one JSON object per line.
use std::path::PathBuf;

use downburst_hub::queries::{BrowseLine, DeliveriesLine, ExportLine, FollowLine, ProductsLine};
use downburst_model::WallMicros;
use downburst_tracer::TracerLine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

mod bounds;
#[cfg(test)]
mod golden;
mod jobs;

pub(crate) use bounds::{check_length, check_wanted};
pub(crate) use downburst_hub::circuits::{CircuitTraffic, LeaseLine, ProbeLine};
pub(crate) use downburst_hub::feeds::{
    DuplicateWord, DurabilityWord, FeedLine, FetchLine, IngestLine, WantedLine,
};
pub(crate) use downburst_hub::jobs::Failure;
pub(crate) use downburst_hub::path_probes::PathProbeLine;
pub(crate) use downburst_hub::upstreams::UpstreamLine;
pub(crate) use downburst_hub::{ClockStanding, Event, LegLine, PlanLine, ProfileLine, SilenceLine, SiteLine};
pub(crate) use downburst_ldm_gateway::LdmLine;
pub(crate) use jobs::*;

/// One line from the agent.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// Chosen by the agent; the answer carries it.
    pub(crate) id: u64,
    /// The action of the job.
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// The action of a job.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Action {
    /// The first job: directories and addresses.
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
    /// The whole set of hubs of which this hub is a site.
    Upstreams {
        /// All of them.
        upstreams: Vec<UpstreamLine>,
    },
    /// The LDMs to request products from, and the port for LDMs that request or push.
    Ldm(LdmLine),
    /// A feed's plan.
    Plan(PlanLine),
    /// Ingests a complete product from a spool file.
    Ingest(IngestLine),
    /// Fetches announced products over HTTP, and ingests them.
    Fetch(FetchLine),
    /// Ingests, stores and reads back a product of the hub's own.
    Prove(ProveLine),
    /// Checks a subscription pattern.
    CheckPattern {
        /// The pattern.
        pattern: String,
    },
    /// Reports the contents of the node and the connected sites.
    Status,
    Logs,
    /// Reports the whereabouts of products, site by site.
    Deliveries(DeliveriesLine),
    /// Describes the products with these sequences.
    Products(ProductsLine),
    /// Lists the products of a time range that match.
    Browse(BrowseLine),
    /// Lists products in the order of their log.
    Follow(FollowLine),
    /// Writes the bytes of a product into a file.
    Export(ExportLine),
    /// Judges a site's connections, with samples of them.
    Tracer(TracerLine),
    /// The whole set of TCP profiles.
    TcpProfiles {
        /// All of them.
        profiles: Vec<ProfileLine>,
    },
    /// The whole set of feeds whose silences are reported.
    Silences {
        /// All of them.
        feeds: Vec<SilenceLine>,
    },
    /// The whole set of circuits.
    Circuits {
        /// All of them.
        circuits: Vec<LeaseLine>,
    },
    /// Creates a circuit, or changes an existing one.
    CircuitUp {
        /// The desired circuit.
        circuit: LeaseLine,
    },
    /// Removes a circuit.
    CircuitDown {
        /// Its lease.
        lease: u32,
    },
    /// Measures a circuit.
    CircuitProbe(ProbeLine),
    /// Probes the path to a site.
    Probe(PathProbeLine),
    /// Ends a probe of a path.
    ProbeStop(StopProbeLine),
    /// Reports the circuit features of this host.
    CircuitHost,
    /// Answers once every connected site has all its products.
    Drain {
        /// The timeout.
        #[serde(default = "default_drain_seconds")]
        seconds: f64,
    },
    /// Returns the public key of a future sender: sent before its start job.
    SenderKey {
        /// As in the start job.
        data_dir: PathBuf,
    },
    /// Signs the key of a node that sends for this hub.
    Certify {
        /// The node's answer to `sender-key`.
        public_key: String,
    },
    /// The offset of this node's clock from that of the ingesting node.
    Clock(ClockStanding),
    /// Reports that a batch file was loaded and can be removed.
    BatchLoaded {
        /// Its id.
        batch: String,
    },
    /// The decision on an enrolment, or on a replacement credential.
    EnrolAnswer(EnrolAnswer),
    /// Ends the node cleanly.
    Stop,
}

/// Sends answers and events, each as one line, from any task or thread.
#[derive(Clone, Debug)]
pub(crate) struct Lines(mpsc::UnboundedSender<String>);

impl Lines {
    /// A sender and its stream of lines. The queue is short: the agent reads steadily, or the pipe ends the node.
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
        self.send(line.to_string());
    }

    /// Answers a job that has several answers with one of them.
    pub(crate) fn part(&self, id: u64, fields: &impl Serialize) {
        self.found(id, fields);
    }

    /// Answers a job with its result, serialised directly.
    fn found(&self, id: u64, fields: &impl Serialize) {
        match serde_json::to_string(&Found { answer: id, ok: true, fields }) {
            Ok(line) => self.send(line),
            Err(error) => tracing::error!(%error, "an answer could not be written"),
        }
    }

    /// Sends an event.
    pub(crate) fn event(&self, event: &Event, at: WallMicros) {
        match serde_json::to_string(&Stamped { event, at_us: at.0 }) {
            Ok(line) => self.send(line),
            Err(error) => tracing::error!(%error, "an event could not be written"),
        }
    }

    fn send(&self, line: String) {
        // The receiver is dropped only at the end of the process.
        let _ = self.0.send(line);
    }
}

/// The answer to a job that another thread executes: sent once, even if this is dropped.
#[derive(Debug)]
pub(crate) struct Reply {
    /// `None` once the answer is sent.
    lines: Option<Lines>,
    id: u64,
}

impl Reply {
    pub(crate) fn owed(lines: Lines, id: u64) -> Self {
        Self { lines: Some(lines), id }
    }

    pub(crate) fn say(mut self, fields: &impl Serialize) {
        if let Some(lines) = self.lines.take() {
            lines.found(self.id, fields);
        }
    }

    pub(crate) fn refuse(mut self, failure: Failure) {
        if let Some(lines) = self.lines.take() {
            lines.answer(self.id, Err(failure));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(lines) = self.lines.take() {
            let sentence = "the feed's log is being closed; send the product again in a moment";
            lines.answer(self.id, Err(Failure::new("io", sentence)));
        }
    }
}

/// An answer as serialised. Those of products are written ten thousand times a second.
#[derive(Serialize)]
struct Found<'a, T: Serialize> {
    answer: u64,
    ok: bool,
    #[serde(flatten)]
    fields: &'a T,
}

/// An event as serialised, directly: that of the traffic of a thousand sites is written each second.
#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(flatten)]
    event: &'a Event,
    at_us: i64,
}

fn set(line: &mut Value, name: &str, value: Value) {
    if let Some(fields) = line.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

const fn default_drain_seconds() -> f64 {
    60.0
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, Sequence, Transport};

    use super::*;

    fn job(line: &str) -> Result<Job, serde_json::Error> {
        serde_json::from_str(line)
    }

    #[test]
    fn jobs_of_the_agent_are_read() {
        let plan = r#"{"id":7,"do":"plan","feed":"NGRID","version":3,"legs":[
            {"leg":1,"transport":"unicast","sites":["a"]},
            {"leg":2,"transport":"multicast","sites":["b","c"],"group":"239.77.0.2","port":17002,
                "rate_bps":400000000}]}"#;
        let Job { id: 7, action: Action::Plan(plan) } = job(plan).unwrap() else { panic!("not a plan") };
        assert_eq!(plan.legs.len(), 2);
        assert_eq!(plan.legs[1].transport, Transport::Multicast);
        let feeds = r#"{"id":1,"do":"feeds","feeds":[{"feed":"IDS|DDPLUS","class":"observation","retention_hours":2,
            "retention_bytes":1000,"durability":"power","duplicate_rule":"content-without-wmo-start",
            "max_product_bytes":10,"unicast_leg":4}]}"#;
        assert!(matches!(job(feeds).unwrap().action, Action::Feeds { feeds } if feeds.len() == 1));
        let told = feeds.replace(
            r#""unicast_leg":4"#,
            r#""unicast_leg":4,"at_least":[{"epoch":"18446744073709551615","sequence":7},{"epoch":"5","sequence":9}]"#,
        );
        let Action::Feeds { feeds } = job(&told).unwrap().action else { panic!("not feeds") };
        let given = [u64::MAX, 5, 6].map(|epoch| feeds[0].given(Epoch(epoch)));
        assert_eq!(given, [Some(Sequence(7)), Some(Sequence(9)), None]);
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
    fn a_job_that_another_thread_does_is_answered_once_whatever_becomes_of_it() {
        let (lines, mut stream) = Lines::channel();
        Reply::owed(lines.clone(), 1).say(&json!({"sequence": 5}));
        Reply::owed(lines.clone(), 2).refuse(Failure::new("bad-id", "no"));
        drop(Reply::owed(lines, 3));
        let mut next = || serde_json::from_str::<Value>(&stream.try_recv().unwrap()).unwrap();
        assert_eq!(next(), json!({"answer": 1, "ok": true, "sequence": 5}));
        assert_eq!(next(), json!({"answer": 2, "ok": false, "code": "bad-id", "error": "no"}));
        let dropped = next();
        assert_eq!((&dropped["answer"], &dropped["code"]), (&json!(3), &json!("io")));
        assert!(stream.try_recv().is_err());
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
