//! Sources of products from LDMs: a task for each upstream of each source.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use downburst_ldm6::AutoShift;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::request::{Parts, Request};
use super::status::UpstreamStatus;
use crate::config::LdmSourceLine;
use crate::context::Context;
use crate::hub::Failure;

/// All sources, by name.
#[derive(Default)]
pub(crate) struct Sources(tokio::sync::Mutex<BTreeMap<String, Source>>);

struct Source {
    line: LdmSourceLine,
    links: Vec<Arc<UpstreamStatus>>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Sources {
    /// Starts, replaces and ends sources so that they match `lines`.
    pub(crate) async fn reconcile(
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

    pub(crate) async fn end_all(&self) {
        for source in std::mem::take(&mut *self.0.lock().await).into_values() {
            source.end().await;
        }
    }

    pub(crate) async fn status(&self) -> Value {
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
