//! LDMs that are asked for products: a task for each upstream of each source.
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use downburst_ldm6::AutoShift;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::config::LdmSourceLine;
use super::gateway::{Context, lock};
use super::hub::Failure;
use super::intake::Counts;
use super::request::{Parts, Request};

/// All sources, by name.
#[derive(Default)]
pub(super) struct Sources(tokio::sync::Mutex<BTreeMap<String, Source>>);

struct Source {
    line: LdmSourceLine,
    links: Vec<Arc<UpstreamStatus>>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// The state of one upstream LDM.
#[derive(Default)]
pub(super) struct UpstreamStatus {
    pub(super) counts: Arc<Counts>,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Standing {
    connected: bool,
    mode: &'static str,
    reason: Option<String>,
}

impl Sources {
    /// Asks, changes and leaves until the sources are as `lines` say.
    pub(super) async fn reconcile(
        &self,
        context: &Context,
        lines: Vec<LdmSourceLine>,
    ) -> Result<(), Failure> {
        let wanted: BTreeMap<String, LdmSourceLine> =
            lines.into_iter().map(|line| (line.source.clone(), line)).collect();
        let mut known = self.0.lock().await;
        let is_gone = |(name, source): &(&String, &Source)| wanted.get(*name) != Some(&source.line);
        let gone: Vec<String> = known.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        for name in gone {
            if let Some(source) = known.remove(&name) {
                source.end().await;
            }
        }
        let mut failed = Ok(());
        for (name, line) in wanted {
            if known.contains_key(&name) {
                continue;
            }
            match Source::start(context, line) {
                Ok(source) => drop(known.insert(name, source)),
                Err(sentence) => {
                    let sentence = format!("LDM source {name}: {sentence}");
                    failed = Err(Failure { code: "bad-request", sentence });
                }
            }
        }
        failed
    }

    pub(super) async fn end_all(&self) {
        for source in std::mem::take(&mut *self.0.lock().await).into_values() {
            source.end().await;
        }
    }

    pub(super) async fn status(&self) -> Value {
        self.0.lock().await.values().map(Source::status).collect()
    }
}

impl Source {
    fn start(context: &Context, line: LdmSourceLine) -> Result<Self, String> {
        let shift = Arc::new(Mutex::new(AutoShift::new(line.upstreams.len(), context.clock.monotonic())));
        let (stop, stopped) = watch::channel(false);
        let links: Vec<Arc<UpstreamStatus>> = line.upstreams.iter().map(|_| Arc::default()).collect();
        let request = |(at, link): (usize, &Arc<UpstreamStatus>)| {
            Request::new(Parts {
                context: context.clone(),
                line: line.clone(),
                at,
                shift: Arc::clone(&shift),
                link: Arc::clone(link),
                stop: stopped.clone(),
            })
        };
        let requests: Vec<Request> = links.iter().enumerate().map(request).collect::<Result<_, _>>()?;
        let tasks = requests.into_iter().map(|request| tokio::spawn(request.run())).collect();
        Ok(Self { line, links, stop, tasks })
    }

    async fn end(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            let _ = task.await;
        }
    }

    fn status(&self) -> Value {
        let upstreams = self.line.upstreams.iter().zip(&self.links);
        let upstreams: Vec<Value> = upstreams.map(|(upstream, link)| link.status(upstream)).collect();
        json!({"source": self.line.source, "upstreams": upstreams})
    }
}

impl UpstreamStatus {
    pub(super) fn is_connected(&self, mode: &'static str) {
        *lock(&self.standing) = Standing { connected: true, mode, reason: None };
    }

    /// True if the reason is another than before.
    pub(super) fn is_away(&self, reason: &str) -> bool {
        let mut standing = lock(&self.standing);
        let was_connected = std::mem::replace(&mut standing.connected, false);
        let before = standing.reason.replace(reason.to_owned());
        was_connected || before.as_deref() != Some(reason)
    }

    fn status(&self, upstream: &str) -> Value {
        let standing = lock(&self.standing);
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let Counts { stored, bytes, duplicates, passed_over, dropped } = &*self.counts;
        json!({
            "upstream": upstream, "connected": standing.connected, "mode": standing.mode, "reason": standing.reason,
            "stored": count(stored), "bytes": count(bytes), "duplicates": count(duplicates),
            "passed_over": count(passed_over), "dropped": count(dropped),
        })
    }
}
