//! Executes the jobs of the agent.
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use downburst_hub::SessionSettings;
use downburst_hub::feeds::cut_by_ceiling;
use downburst_hub::jobs::{self, Drain, DrainStep, Drained};
use downburst_hub::queries::parsed_pattern;
use downburst_log::{ProductLog as _, SharedLogs};
use downburst_model::{FeedName, SiteName};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::hub::circuits::{Circuits, describe_host};
use crate::hub::connections::outbound::OUT_LIMIT_BYTES;
use crate::hub::connections::{Entrance, accept};
use crate::hub::feeds::{Feeds, failure, head, random_u64, unknown_feed};
use crate::hub::figures::{Figures, silences, traffic};
use crate::hub::legs::{Legs, channels::Channels};
use crate::hub::lock;
use crate::hub::proof::Proof;
use crate::hub::queries::{answer, browsing, deliveries, exporting, tracer};
use crate::hub::receipts::{Limits, Receipts};
use crate::hub::roster::{Command, Handle, Roster};
use crate::hub::session::Sessions;
use crate::hub::tracer::Tracer;
use crate::hub::{Connect, Hub, Sources};
use crate::lines::{
    Action, Event, Failure, FeedLine, IngestLine, Job, Lines, ProfileLine, Reply, SenderLine, SiteLine, Start,
};
use crate::scrub::{self, Scrub};
use crate::site::checkpoints;
use crate::{tcp, tls};

/// Executes one job and answers it. Long ones are answered by a task of their own; `Break` ends the process.
pub(super) async fn take(
    hub: &mut Option<Arc<Hub>>,
    job: Job,
    clock: Clock,
    lines: &Lines,
    connect: Connect,
) -> ControlFlow<()> {
    let Job { id, action } = job;
    match (action, hub.as_ref()) {
        (Action::Stop, _) => {
            lines.answer(id, Ok(json!({})));
            return ControlFlow::Break(());
        }
        (Action::Start(_), Some(_)) => {
            lines.answer(id, Err(Failure::new("bad-request", "the node has been started already")))
        }
        (Action::Start(start), None) => {
            let started = open(start, clock, lines.clone(), connect).await;
            lines.answer(
                id,
                started.map(|(opened, answer)| {
                    *hub = Some(opened);
                    answer
                }),
            );
        }
        (Action::SenderKey { data_dir }, None) => {
            let key = tls::sender_key(&data_dir.join("tls")).map(|key| json!({"public_key": key}));
            lines.answer(id, key.map_err(|error| Failure::new("io", error)));
        }
        (_, None) => lines.answer(id, Err(Failure::not_started())),
        (action, Some(hub)) => running(Arc::clone(hub), id, action),
    }
    ControlFlow::Continue(())
}

async fn open(
    start: Start,
    clock: Clock,
    lines: Lines,
    connect: Connect,
) -> Result<(Arc<Hub>, Value), Failure> {
    let shared = start.shared_log.as_ref().map(connect).transpose().map_err(Failure::bad_request)?;
    for directory in [&start.data_dir, &start.batch_dir] {
        std::fs::create_dir_all(directory).map_err(|error| Failure::not_writable(directory, &error))?;
    }
    let identity = identity(&start).map_err(|error| Failure::new("io", error))?;
    let listeners = listen(&start).await?;
    let places: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let answer = json!({
        "ca_sha256": identity.ca_sha256, "version": env!("CARGO_PKG_VERSION"),
        "sites_address": places.iter().map(ToString::to_string).collect::<Vec<String>>(),
    });
    let entrance = Entrance::open(&start, clock, places, identity)?;
    let hub = begun(start, clock, lines, entrance, shared)?;
    serve(&hub, listeners);
    Ok((hub, answer))
}

async fn listen(start: &Start) -> Result<Vec<TcpListener>, Failure> {
    let mut listeners = Vec::new();
    for address in &start.listen {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let is_in_use = error.kind() == std::io::ErrorKind::AddrInUse;
            Failure::no_listener(address, is_in_use, &error)
        })?;
        accept::prepare(&listener, start).map_err(Failure::bad_request)?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// The state of a hub without feeds and sites.
fn begun(
    start: Start,
    clock: Clock,
    lines: Lines,
    entrance: Entrance,
    shared: Option<Arc<dyn SharedLogs>>,
) -> Result<Arc<Hub>, Failure> {
    let prefix = random_u64().map_err(|error| Failure::new("io", error))?;
    let receipts = keep_receipts(&start, clock, lines.clone());
    let tracer = Tracer::start(&start.data_dir, &entrance.places, clock);
    Ok(Arc::new(Hub {
        clock,
        lines,
        entrance,
        sources: Sources::new(&start),
        circuits: Circuits::new(&format!("hub {}", start.data_dir.display())),
        feeds: Feeds::of(shared),
        proof: Proof::default(),
        roster: Roster::new(),
        legs: Legs::default(),
        counters: traffic::Counters::default(),
        figures: Figures::new(&start, prefix, receipts, tracer, clock),
        sessions: Sessions::new(session_settings(&start)),
        stopping: watch::Sender::new(false),
        start,
    }))
}

/// Starts the tasks of a hub.
fn serve(hub: &Arc<Hub>, listeners: Vec<TcpListener>) {
    if let Some(sentence) = listeners.first().and_then(tcp::slow_start_after_idle) {
        tracing::warn!("{sentence}");
    }
    Channels::serve(hub, &hub.entrance.places);
    for listener in listeners {
        tokio::spawn(accept::accept(Arc::clone(hub), listener));
    }
    tokio::spawn(tick(Arc::clone(hub)));
    tokio::spawn(silences::tend(Arc::clone(hub)));
    tokio::spawn(Arc::clone(hub).tend_catch_ups());
    start_scrub(hub);
}

/// The settings that all sessions of this node share.
fn session_settings(start: &Start) -> SessionSettings {
    SessionSettings {
        hub: start.name.clone(),
        versions: start.session_versions.clone(),
        heartbeats: start.heartbeat_seconds > 0.0,
        sender: start.sender.as_ref().map(|sender| sender.address.clone()),
        data_connections: start.data_connections,
        room_bytes: OUT_LIMIT_BYTES,
    }
}

/// Verifies the logs in the background; the hub works without this thread, too.
fn start_scrub(hub: &Arc<Hub>) {
    let (open, told) = (Arc::downgrade(hub), Arc::downgrade(hub));
    let plan = Scrub { bytes_per_second: hub.start.scrub.bytes_per_second, hours: hub.start.scrub.hours };
    let logs = move || {
        let feeds = open.upgrade()?.feeds.all();
        Some(feeds.iter().map(|(name, feed)| (name.clone(), Arc::clone(&feed.log))).collect())
    };
    let report = move |feed: &FeedName, sentence: String| {
        tracing::error!("{sentence}");
        if let Some(hub) = told.upgrade() {
            hub.event(&Event::Damaged { feed: feed.clone(), sentence });
        }
    };
    let upstreams = hub.start.data_dir.join("upstreams");
    let small_files = move || {
        let of_each = std::fs::read_dir(&upstreams).into_iter().flatten().flatten();
        of_each.flat_map(|upstream| checkpoints(&upstream.path())).collect()
    };
    // A source keeps nothing that it could send again.
    let lost = Box::new(|_| ());
    if let Err(sentence) = scrub::start(plan, Box::new(logs), Box::new(small_files), Box::new(report), lost) {
        hub.fault(sentence, None);
    }
}

fn identity(start: &Start) -> Result<tls::HubIdentity, String> {
    let keys = start.data_dir.join("tls");
    match &start.sender {
        Some(SenderLine { certificate, authority, .. }) => {
            tls::sender_identity(&keys, certificate, authority)
        }
        None => tls::hub_identity(&keys),
    }
}

fn keep_receipts(start: &Start, clock: Clock, lines: Lines) -> Receipts {
    let limits = Limits { hours: start.records.receipt_hours, bytes: start.records.receipt_bytes };
    Receipts::start(start.data_dir.join("receipts"), limits, clock, move |sentence| {
        tracing::warn!("{sentence}");
        lines.event(&Event::Fault { sentence, feed: None, site: None }, clock.wall());
    })
}

/// Executes a job of a started hub. Those that set something are done at once, in the order of the lines.
fn running(hub: Arc<Hub>, id: u64, action: Action) {
    let lines = hub.lines.clone();
    let done = |result: Result<(), Failure>| lines.answer(id, result.map(|()| json!({})));
    match action {
        Action::Feeds { feeds } => lines.answer(id, take_feeds(&hub, feeds)),
        Action::Sites { sites } => {
            take_sites(&hub, sites);
            done(Ok(()));
        }
        Action::TcpProfiles { profiles } => {
            take_profiles(&hub, profiles);
            done(Ok(()));
        }
        Action::Silences { feeds } => {
            hub.watch_silences(feeds);
            done(Ok(()));
        }
        Action::Plan(plan) => done(hub.apply_plan(plan)),
        Action::Ingest(line) => ingest(&hub, line, Reply::owed(lines, id)),
        Action::CheckPattern { pattern } => done(parsed_pattern(&pattern).map(drop)),
        Action::Certify { public_key } => lines.answer(id, certify(&hub, &public_key)),
        Action::Clock(standing) => {
            lock(&hub.figures.reference).is(standing);
            done(Ok(()));
        }
        Action::BatchLoaded { batch } => {
            hub.batch_loaded(&batch);
            done(Ok(()));
        }
        Action::EnrolAnswer(answer) => done(if hub.roster.answer(answer) {
            Ok(())
        } else {
            Err(Failure::bad_request("this enrolment is no longer awaited"))
        }),
        Action::Fetch(line) => drop(tokio::spawn(super::fetch::fetch(hub, id, line))),
        Action::Start(_) | Action::SenderKey { .. } | Action::Stop => {}
        // Answered by a task of its own, so that the next jobs need not wait.
        action => drop(tokio::spawn(async move { lines.answer(id, later(&hub, action).await) })),
    }
}

/// Executes a job that may take long.
async fn later(hub: &Arc<Hub>, action: Action) -> Result<Value, Failure> {
    match action {
        Action::Prove(line) => Arc::clone(hub).prove(line).await,
        Action::Upstreams { upstreams } => {
            hub.sources.upstreams.reconcile(hub, upstreams).await.map(|()| json!({}))
        }
        Action::Ldm(line) => hub.reconcile_ldm(line).await,
        Action::Status => Ok(status(hub).await),
        Action::Logs => Ok(logs(hub)),
        Action::Deliveries(line) => deliveries::deliveries(hub, line).await,
        Action::Products(line) => deliveries::products(hub, line).await,
        Action::Browse(line) => browsing::browse(hub, line).await,
        Action::Follow(line) => exporting::follow(hub, line).await,
        Action::Export(line) => exporting::export(hub, line).await,
        Action::Tracer(line) => tracer::tracer(hub, line).await,
        Action::Circuits { circuits } => hub.circuits(circuits).await,
        Action::CircuitUp { circuit } => hub.circuit_up(circuit).await,
        Action::CircuitDown { lease } => hub.circuit_down(lease).await,
        Action::CircuitProbe(probe) => hub.circuit_probe(probe).await,
        Action::Probe(line) => hub.probe(line).await,
        Action::ProbeStop(line) => Ok(hub.stop_probe(line)),
        Action::CircuitHost => Ok(describe_host().await),
        Action::Drain { seconds } => answer(&drain(hub, seconds).await),
        // Executed at once, above.
        Action::Start(_)
        | Action::Stop
        | Action::SenderKey { .. }
        | Action::Feeds { .. }
        | Action::Sites { .. }
        | Action::TcpProfiles { .. }
        | Action::Silences { .. }
        | Action::Plan(_)
        | Action::Ingest(_)
        | Action::Fetch(_)
        | Action::CheckPattern { .. }
        | Action::Certify { .. }
        | Action::Clock(_)
        | Action::BatchLoaded { .. }
        | Action::EnrolAnswer(_) => Ok(json!({})),
    }
}

fn take_feeds(hub: &Arc<Hub>, feeds: Vec<FeedLine>) -> Result<Value, Failure> {
    let result = hub.feeds.reconcile(hub, feeds);
    hub.sources.ldm.look_at_feeds(&**hub);
    hub.roster.tell_all(|| Command::LookAtFeeds);
    result
}

fn take_sites(hub: &Arc<Hub>, mut sites: Vec<SiteLine>) {
    for line in &mut sites {
        if let Some(sentence) = line.drop_bad_ways() {
            tracing::warn!("{sentence}");
            hub.event(&Event::Fault { sentence, feed: None, site: Some(line.site.clone()) });
        }
    }
    hub.figures.backlogs.stood(&hub.feeds, &sites);
    hub.roster.replace(sites);
    hub.look_at_siblings();
    hub.look_at_rights();
    hub.sources.ldm.look_at_rights(&**hub);
}

/// Replaces the TCP profiles. A congestion control whose module was loaded meanwhile is known from here on.
fn take_profiles(hub: &Hub, profiles: Vec<ProfileLine>) {
    let (offered, system) = tcp::congestion_controls();
    let usual = hub.start.tcp_congestion.clone().unwrap_or(system);
    {
        let mut known = lock(&hub.sessions.tcp_profiles);
        known.offer(offered, usual);
        known.replace(profiles);
    }
    hub.roster.tell_all(|| Command::LookAtProfile);
}

fn certify(hub: &Hub, public_key: &str) -> Result<Value, Failure> {
    let signed = tls::certify(&hub.start.data_dir.join("tls"), public_key);
    let (certificate, authority) = signed.map_err(Failure::bad_request)?;
    Ok(json!({"certificate": certificate, "authority": authority}))
}

fn ingest(hub: &Hub, line: IngestLine, reply: Reply) {
    let feed = FeedName::parse(&line.feed).ok().and_then(|name| hub.feeds.find(&name));
    match feed {
        Some(feed) => feed.ingest(line, &hub.start.origin, reply),
        None => reply.refuse(unknown_feed(&line.feed)),
    }
}

async fn status(hub: &Hub) -> Value {
    let feeds: Vec<Value> = hub
        .feeds
        .all()
        .values()
        .map(|feed| {
            let stat = feed.log.stat();
            json!({
                "feed": feed.name(), "epoch": feed.epoch().0.to_string(), "head": stat.head, "first": stat.first,
                "products": stat.products, "bytes": stat.bytes,
            })
        })
        .collect();
    let (upstreams, ldm) = (hub.sources.upstreams.status().await, hub.sources.ldm.status().await);
    json!({"feeds": feeds, "sessions": hub.session_traffic(), "upstreams": upstreams, "ldm": ldm})
}

/// The contents of each feed's log: a small answer whatever the number of sites, as it is requested often.
fn logs(hub: &Hub) -> Value {
    let open = hub.feeds.all();
    let feeds = open.values().map(|feed| {
        let stat = feed.log.stat();
        json!({
            "feed": feed.name(), "products": stat.products, "bytes": stat.bytes.saturating_add(stat.memory_bytes),
            "ceiling_bytes": stat.ceiling_bytes, "oldest_stored_us": stat.oldest_stored.map(|at| at.0),
        })
    });
    json!({"feeds": feeds.collect::<Vec<Value>>()})
}

/// Waits until every connected site has all products of its subscriptions.
async fn drain(hub: &Hub, seconds: f64) -> Drained {
    let drain = Drain::begin(hub.clock.monotonic(), seconds);
    loop {
        match drain.look(hub.clock.monotonic(), behind(hub)) {
            DrainStep::Over(drained) => return drained,
            DrainStep::LookAfter(pause) => tokio::time::sleep(Duration::from_micros(pause.0)).await,
        }
    }
}

fn behind(hub: &Hub) -> usize {
    let feeds = hub.feeds.all();
    let sessions = hub.roster.sessions();
    let served = sessions.iter().filter(|(_, handle)| !handle.stand_by);
    let lacks = |(site, handle): (&SiteName, &Handle)| {
        let Some(line) = hub.roster.site(site) else { return 0 };
        let line = match hub.start.sender {
            Some(_) => line.served_at(hub.start.own_address()),
            None => line,
        };
        jobs::behind(&line, &lock(&handle.status).frontiers, |feed| Some(head(feeds.get(feed)?)))
    };
    served.map(lacks).sum()
}

/// Work that is due each second, and the batches at their own interval.
async fn tick(hub: Arc<Hub>) {
    let mut stopping = hub.stopping.subscribe();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut batch =
        tokio::time::interval(Duration::from_secs_f64(hub.start.batch_seconds.clamp(0.1, 3_600.0)));
    let mut retain = tokio::time::interval(RETAIN_INTERVAL);
    let mut minute = tokio::time::interval(Duration::from_secs(60));
    // The node that assigns the sequences puts heartbeats among them: a sender gets them as its copies grow.
    let beats = hub.start.heartbeat_seconds > 0.0 && hub.start.sender.is_none();
    let mut beat =
        tokio::time::interval(Duration::from_secs_f64(hub.start.heartbeat_seconds.clamp(0.1, 3_600.0)));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut counting: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            _ = beat.tick(), if beats => hub.put_heartbeats(),
            _ = second.tick() => {
                hub.roster.expire(hub.clock.wall());
                hub.roster.turn_hour(hub.clock.wall());
                hub.tell_saved();
                hub.roster.tend_credentials(hub.clock.now());
                let telling = Arc::clone(&hub);
                tokio::spawn(async move { telling.tell_traffic().await });
                // This reads disks; a slow report holds up the next one, and nothing else.
                if counting.as_ref().is_none_or(JoinHandle::is_finished) {
                    let hub = Arc::clone(&hub);
                    counting = Some(tokio::task::spawn_blocking(move || hub.tell_backlogs()));
                }
            }
            _ = batch.tick() => hub.write_batch(),
            _ = retain.tick() => {
                retain_all(&hub);
                hub.sources.ldm.keep_positions();
            }
            _ = minute.tick() => tell_dropped_receipts(&hub),
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

fn tell_dropped_receipts(hub: &Hub) {
    let dropped = hub.figures.receipts.take_dropped();
    if dropped > 0 {
        let sentence = format!(
            "{dropped} raw receipts of the last minute were not kept because the disk was too slow; a faster disk \
             or a smaller receipt_hours (0: none) helps; deliveries continue"
        );
        hub.fault(sentence, None);
    }
}

fn retain_all(hub: &Hub) {
    for feed in hub.feeds.all().values() {
        feed.purge_stretches(hub.clock.monotonic());
        match feed.log.retain(hub.clock.wall()) {
            Ok(retained) if retained.products_cut_by_ceiling > 0 => {
                let name = feed.name();
                hub.fault(cut_by_ceiling(&name, retained.products_cut_by_ceiling), Some(&name));
            }
            Ok(_) => {}
            Err(error) => hub.fault(failure(&error).error, Some(&feed.name())),
        }
    }
}

const RETAIN_INTERVAL: Duration = Duration::from_secs(5);
