//! The hub's node: ingests and sends in one process, so that a wake-up is a signal after the commit.
//!
//! [`run`] reads jobs; [`Hub`] is the state shared by all tasks. One task drives each session, one thread
//! sends each multicast leg, one thread writes each feed's log.
mod circuits;
mod connections;
mod feeds;
mod fetch;
mod figures;
mod jobs;
mod ldm;
mod legs;
mod probes;
mod proof;
mod queries;
mod receipts;
mod roster;
mod session;
mod siblings;
mod tracer;
mod upstreams;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use downburst_ldm_gateway::Gateway;
use downburst_log::SharedLogs;
use downburst_model::FeedName;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::lines::{Event, Job, Lines, Start, check_length};
use circuits::Circuits;
use connections::Entrance;
use feeds::{Feeds, feed_writer, reading, wake_ups};
use fetch::Fetching;
use figures::Figures;
use figures::traffic::Counters;
use legs::Legs;
use proof::Proof;
use roster::Roster;
use session::Sessions;
use upstreams::Upstreams;

/// The state that all tasks of a hub's node share.
struct Hub {
    clock: Clock,
    lines: Lines,
    start: Start,
    entrance: Entrance,
    sources: Sources,
    circuits: Circuits,
    feeds: Feeds,
    proof: Proof,
    roster: Roster,
    legs: Legs,
    counters: Counters,
    figures: Figures,
    sessions: Sessions,
    stopping: watch::Sender<bool>,
}

/// The other systems from which products come.
struct Sources {
    upstreams: Upstreams,
    ldm: Gateway,
    fetching: Fetching,
}

impl Sources {
    fn new(start: &Start) -> Self {
        let fetching = Fetching::new(&start.data_dir, start.network.fetch_ca_file.clone());
        Self { upstreams: Upstreams::default(), ldm: Gateway::default(), fetching }
    }
}

/// Runs the hub's node until `input` ends, a stop job arrives or the process gets a signal to end.
///
/// Any reader and writer of lines will do; the process uses its stdin and stdout.
pub async fn run(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    run_with(input, output, not_shared).await
}

/// Connects to a shared store as the start job describes; the error is a message for the operator.
pub type Connect = fn(&serde_json::Value) -> Result<Arc<dyn SharedLogs>, String>;

/// Like [`run`], in a program that supports a shared store.
pub async fn run_with(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    connect: Connect,
) -> std::io::Result<()> {
    let (lines, stream) = Lines::channel();
    let writer = tokio::spawn(write_lines(stream, output));
    let result = serve(input, lines, connect).await;
    let _ = tokio::time::timeout(LAST_WORDS, writer).await;
    result
}

async fn serve(input: impl AsyncRead + Unpin, lines: Lines, connect: Connect) -> std::io::Result<()> {
    let clock = Clock::start(0);
    // Each read of a process's input is a turn of another thread.
    let mut input = BufReader::with_capacity(READ_BYTES, input).lines();
    let mut hub: Option<Arc<Hub>> = None;
    let mut ended = std::pin::pin!(crate::signals::ended());
    loop {
        let line = tokio::select! {
            line = input.next_line() => line?,
            () = &mut ended => None,
        };
        let Some(line) = line else { break };
        let job = match read(&line) {
            Ok(job) => job,
            Err(sentence) => {
                refuse_line(&line, sentence, &lines);
                continue;
            }
        };
        if jobs::take(&mut hub, job, clock, &lines, connect).await.is_break() {
            break;
        }
    }
    if let Some(hub) = hub {
        hub.stop().await;
    }
    Ok(())
}

fn not_shared(_: &serde_json::Value) -> Result<Arc<dyn SharedLogs>, String> {
    Err("this program keeps feeds' logs on its own machine only; start downburst-node-kafka, or take shared_log \
        out of the start job"
        .to_owned())
}

/// Parses and checks a job; the error is a sentence with the reason.
fn read(line: &str) -> Result<Job, String> {
    check_length(line)?;
    let job = serde_json::from_str::<Job>(line).map_err(|error| {
        format!("a line can't be read as a job: {error}; see the protocol of the node's lines")
    })?;
    job.check().map(|()| job)
}

fn refuse_line(line: &str, sentence: String, lines: &Lines) {
    let value = serde_json::from_str::<serde_json::Value>(line);
    let id = value.ok().and_then(|value| value.get("id")?.as_u64());
    match id {
        Some(id) => lines.answer(id, Err(crate::lines::Failure::new("bad-request", sentence))),
        None => tracing::warn!("{sentence}"),
    }
}

async fn write_lines(mut stream: mpsc::UnboundedReceiver<String>, mut output: impl AsyncWrite + Unpin) {
    while let Some(mut line) = stream.recv().await {
        line.push('\n');
        while let Ok(next) = stream.try_recv() {
            line.push_str(&next);
            line.push('\n');
        }
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

impl Hub {
    fn event(&self, event: &Event) {
        self.lines.event(event, self.clock.wall());
    }

    fn fault(&self, sentence: String, feed: Option<&FeedName>) {
        tracing::warn!("{sentence}");
        self.event(&Event::Fault { sentence, feed: feed.cloned(), site: None });
    }

    async fn stop(self: &Arc<Self>) {
        self.sources.upstreams.end_all().await;
        self.sources.ldm.end().await;
        self.end_circuits().await;
        self.stopping.send_replace(true);
        self.end_legs();
        self.roster.wait_until_empty(STOP_PATIENCE).await;
        self.write_batch();
        self.figures.receipts.stop();
        self.figures.tracer.stop();
        self.feeds.close();
        self.proof.close().await;
        self.tell_saved();
        // The agent has to remember every sequence that was assigned.
        self.tell_traffic().await;
    }
}

/// Locks a mutex. A thread that panicked while it held the lock leaves consistent values here, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

type ByFeed<T> = BTreeMap<FeedName, T>;

const READ_BYTES: usize = 256 << 10;
const STOP_PATIENCE: Duration = Duration::from_secs(3);
const LAST_WORDS: Duration = Duration::from_secs(2);
