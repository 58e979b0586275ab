//! Checks both sides of the protocol against `tests/golden/node-lines.json`: this node reads every field of its jobs,
//! and its events are exactly those of the file. The agent's half is `tests/unit/worker/test_lines_of_both_sides.py`.
use std::collections::BTreeSet;

use downburst_hub::path_probes::{
    DelayLine, ExcessLine, FlowLine, ProbeEndedLine, ProbeSecondLine, RoundTripLine, StepLine, TrialEndedLine,
};
use downburst_model::{FeedName, LegId, Sequence, SiteName, Transport, WallMicros};
use serde_json::{Value, json};

use super::*;
use downburst_hub::{
    CatchUpReport, FailedAction, FeedBacklog, FeedTraffic, HostReadingLine, Knobs, LegTraffic, LegTrial,
    LineReadingLine, LinkedFiles, PathFacts, ProfileState, ReceptionLine, RelayLine, RelayedLegLine,
    SavedLine, SegmentLine, SessionFeed, SessionProfile, SessionTraffic, SiteBacklog, SiteClockLine,
    SiteLoss, Traffic, Transfer, TrialLine, TrialStep, TunnelLine,
};

const AT: WallMicros = WallMicros(1_767_225_600_000_000);

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../../../tests/golden/node-lines.json")).unwrap()
}

#[test]
fn every_field_of_a_job_is_read() {
    let golden = golden();
    for (kind, fields) in golden["jobs"].as_object().unwrap() {
        let mut line = fields.clone();
        line["id"] = json!(1);
        line["do"] = json!(kind);
        serde_json::from_value::<Job>(line.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let mut passed_over = BTreeSet::new();
        for place in places(fields) {
            let mut wrong = line.clone();
            *wrong.pointer_mut(&place).unwrap() = json!({"no": ["field", 1.5]});
            if serde_json::from_value::<Job>(wrong).is_ok() {
                passed_over.insert(place.trim_start_matches('/').replace('/', "."));
            }
        }
        let known = golden["passed_over_by_the_node"][kind].as_array().cloned().unwrap_or_default();
        let known: BTreeSet<String> = known.iter().map(|place| place.as_str().unwrap().to_owned()).collect();
        assert_eq!(
            passed_over, known,
            "{kind} has fields that this node does not read as the agent writes them"
        );
    }
}

#[test]
fn events_are_as_the_agent_reads_them() {
    let golden = golden();
    let mut told = BTreeSet::new();
    for event in samples() {
        let kind = kind_of(&event);
        let line = serde_json::to_value(Stamped { event: &event, at_us: AT.0 }).unwrap();
        assert_eq!(line, golden["events"][kind], "{kind}");
        told.insert(kind.to_owned());
    }
    assert_eq!(told, golden["events"].as_object().unwrap().keys().cloned().collect());
}

/// The JSON pointers of all members that contain no others.
fn places(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, one)| (name.clone(), one)).collect(),
        Value::Array(entries) => entries.iter().enumerate().map(|(at, one)| (at.to_string(), one)).collect(),
        _ => return vec![String::new()],
    };
    inner
        .iter()
        .flat_map(|(name, one)| places(one).into_iter().map(move |rest| format!("/{name}{rest}")))
        .collect()
}

/// A new event needs its name here, a sample below, and a line in the file.
fn kind_of(event: &Event) -> &'static str {
    match event {
        Event::Enrol { .. } => "enrol",
        Event::CredentialOffered { .. } => "credential-offered",
        Event::CredentialTaken { .. } => "credential-taken",
        Event::Session { .. } => "session",
        Event::Violation { .. } => "violation",
        Event::Leg { .. } => "leg",
        Event::CatchUp(_) => "catch-up",
        Event::Upstream { .. } => "upstream",
        Event::LdmSource { .. } => "ldm-source",
        Event::LdmPeer { .. } => "ldm-peer",
        Event::LdmViolation { .. } => "ldm-violation",
        Event::Rtstats { .. } => "rtstats",
        Event::Resend { .. } => "resend",
        Event::Recovered { .. } => "recovered",
        Event::Damaged { .. } => "damaged",
        Event::Fault { .. } => "fault",
        Event::Stirred { .. } => "stirred",
        Event::Silent { .. } => "silent",
        Event::Circuit { .. } => "circuit",
        Event::ProbeSecond(_) => "probe-second",
        Event::ProbeEnded(_) => "probe-ended",
        Event::Relay(_) => "relay",
        Event::Siblings { .. } => "siblings",
        Event::TcpTrial(_) => "tcp-trial",
        Event::Traffic(_) => "traffic",
        Event::Backlog { .. } => "backlog",
        Event::Batch { .. } => "batch",
    }
}

fn samples() -> Vec<Event> {
    let mut samples = of_sites();
    samples.extend(of_peers());
    samples.extend(of_feeds());
    samples.extend([
        Event::Circuit {
            lease: 1,
            site: Some(site()),
            state: "down",
            step: Some(text("tunnel")),
            hop: Some(text("eth0")),
            sentence: Some(text("it is away")),
            remedy: Some(text("look")),
        },
        Event::Stirred { feed: feed(), arrived_us: AT },
        Event::Silent { feed: feed(), since_us: AT, until_us: WallMicros(AT.0 + 1) },
        probe_second(),
        probe_ended(),
        Event::Relay(relay()),
        Event::Siblings { saved: vec![SavedLine { site: site(), feed: feed(), products: 4, bytes: 5 }] },
        Event::TcpTrial(TrialLine {
            name: text("overseas"),
            step: TrialStep::TakenBack,
            knobs: knobs(),
            before: Knobs::default(),
            canaries: 2,
            others: 3,
            canary_bps: Some(4),
            others_bps: Some(5),
            windows: 2,
            reason: text("why"),
        }),
        Event::Traffic(traffic()),
        Event::Backlog { sites: vec![SiteBacklog { site: site(), feeds: vec![lacking()] }] },
        Event::Batch { batch: text("1"), path: "/batches/1".into() },
    ]);
    samples
}

fn probe_second() -> Event {
    Event::ProbeSecond(ProbeSecondLine {
        probe: text("p-1"),
        second: 1,
        sent: 2,
        received: 3,
        lost: 4,
        receiver_dropped: 10,
        reordered: 5,
        duplicated: 6,
        bytes: 7,
        delay_us: Some(delays()),
        jitter_us: Some(8),
        delay_bound_us: Some(9),
    })
}

fn probe_ended() -> Event {
    let step = StepLine {
        rate_bps: 1,
        sent_bps: 2,
        received_bps: 3,
        sent: 4,
        received: 5,
        lost: 6,
        receiver_dropped: 11,
        reordered: 7,
        duplicated: 8,
        elapsed_us: 9,
        delay_us: Some(delays()),
        jitter_us: Some(10),
    };
    Event::ProbeEnded(Box::new(ProbeEndedLine {
        probe: text("p-1"),
        outcome: "failed",
        reason: Some(text("why")),
        sender_lag_us: 1,
        steps: vec![step],
        knee_bps: Some(2),
        knee_reason: Some(text("it may carry more")),
        losses: 3,
        congestion: Some(text("bbr")),
        retransmits: Some(4),
        trials: Some(vec![trial()]),
        excess: Some(vec![excess()]),
        delay_bound_us: Some(5),
    }))
}

fn excess() -> ExcessLine {
    ExcessLine {
        at_us: 1,
        lost: 2,
        excess_us: 3,
        recovery_us: Some(4),
        peak_bps: Some(5),
        backlog_bytes: Some(6),
        predicted_us: Some(7),
    }
}

fn trial() -> TrialEndedLine {
    let round_trip_us = RoundTripLine { min: Some(3), mean: Some(4) };
    let flow = FlowLine {
        congestion: text("bbr"),
        reverse: true,
        goodput_bps: 1,
        retransmits: Some(2),
        round_trip_us,
    };
    TrialEndedLine {
        duration_ms: 1,
        reason: Some(text("why")),
        fairness: Some(0.5),
        limited: true,
        flows: vec![flow],
    }
}

fn delays() -> DelayLine {
    DelayLine { min: -1, median: 2, p99: 3, max: 4 }
}

fn relay() -> RelayLine {
    let segment = |round_trip_us: Option<u64>, loss_ppm: Option<u64>, congestion: &str| SegmentLine {
        round_trip_us,
        loss_ppm,
        congestion: text(congestion),
        rate_bps: 8,
    };
    let tunnel = TunnelLine {
        site: Some(site()),
        site_side: text("10.0.0.9:4000"),
        hub_side: text("10.0.0.2:5000"),
        target: text("hub.example:7370"),
        seconds: 1,
        bytes_from_hub: 2,
        bytes_from_site: 3,
        rate_from_hub_bps: 16,
        near: segment(Some(2_000), Some(100), "bbr"),
        onward: segment(None, None, "cubic"),
        ended: false,
    };
    RelayLine {
        relay: SiteName::parse("campus").unwrap(),
        refused: 4,
        tunnels: vec![tunnel],
        legs: vec![RelayedLegLine { leg: LegId(7), datagrams: 5, bytes: 6, dropped: 7 }],
    }
}

/// Enrolment and sessions.
fn of_sites() -> Vec<Event> {
    vec![
        Event::Enrol { ask: 1, secret_sha256: text("aa"), credential_sha256: text("bb"), peer: peer() },
        Event::CredentialOffered {
            ask: 2,
            site: site(),
            credential_sha256: text("aa"),
            offered_sha256: text("bb"),
            peer: peer(),
        },
        Event::CredentialTaken { site: site(), credential_sha256: text("bb") },
        Event::Session {
            site: Some(site()),
            state: "connected",
            peer: peer(),
            reason: why(),
            software: Some(text("downburst-node 0.1.0")),
            stand_by: true,
            renews: true,
        },
        Event::Violation { site: site(), sentence: text("it can't be") },
    ]
}

/// Upstreams and LDMs.
fn of_peers() -> Vec<Event> {
    vec![
        Event::Upstream {
            upstream: text("national"),
            state: "connected",
            hub: Some(text("National")),
            reason: why(),
        },
        Event::LdmSource {
            source: text("idd"),
            upstream: text("idd.example"),
            state: "connected",
            mode: "primary",
            reason: why(),
        },
        Event::LdmPeer {
            peer: text("ldm.example"),
            site: Some(site()),
            state: "connected",
            what: "feedme",
            reason: why(),
        },
        Event::LdmViolation {
            peer: text("ldm.example"),
            source: Some(text("idd")),
            site: Some(site()),
            sentence: text("it can't be"),
        },
        Event::Rtstats { line: text("20160929125247") },
    ]
}

/// Legs, resends and faults.
fn of_feeds() -> Vec<Event> {
    let reception = ReceptionLine { buffer_bytes: 1000, path: text("/proc"), advice: Some(text("raise it")) };
    vec![
        Event::Leg {
            feed: feed(),
            leg: LegId(2),
            site: site(),
            state: "joined",
            after: Some(Sequence(7)),
            reason: why(),
            reception: Some(reception),
        },
        Event::CatchUp(CatchUpReport {
            feed: feed(),
            leg: LegId(1_073_741_826),
            live_leg: LegId(2),
            state: "ended",
            sites: vec![site()],
            from: Sequence(3),
            to: Sequence(9),
            lacked_bytes: 800,
            sent_bytes: 210,
            saved_bytes: 590,
            sentence: text("one site caught up"),
        }),
        Event::Resend { site: site(), resend: 3, products: 4, bytes: 5, expired: 6 },
        Event::Recovered { feed: feed(), sentence: text("it was cut"), whole: false },
        Event::Damaged { feed: feed(), sentence: text("a file is damaged") },
        Event::Fault { sentence: text("it is wrong"), feed: Some(feed()), site: Some(site()) },
    ]
}

fn site() -> SiteName {
    SiteName::parse("unl.edu").unwrap()
}

fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn text(words: &str) -> String {
    words.to_owned()
}

fn why() -> Option<String> {
    Some(text("why"))
}

fn peer() -> String {
    text("192.0.2.1:5")
}

fn lacking() -> FeedBacklog {
    FeedBacklog {
        feed: FeedName::parse("NGRID").unwrap(),
        known: true,
        products: 1,
        bytes: 2,
        oldest_us: Some(AT),
        lost_products: 3,
        lost_bytes: 4,
        counting: true,
    }
}

fn traffic() -> Traffic {
    let (site, feed) = (SiteName::parse("unl.edu").unwrap(), FeedName::parse("NGRID").unwrap());
    let epoch = "12345678901234567890".to_owned();
    let arrived = FeedTraffic { feed, products: 1, bytes: 2, sizes: vec![2], head: Sequence(9), epoch };
    let leg = LegTraffic {
        leg: LegId(2),
        feed: FeedName::parse("NGRID").unwrap(),
        egress_bytes: 1,
        repair_bytes: 2,
        group_repair_bytes: 3,
        coded_repair_bytes: 4,
        channel_repair_bytes: 5,
        products: 6,
        product_bytes: 7,
        sites: 8,
        backlog_bytes: 9,
        rate_bps: Some(10),
        trials: vec![LegTrial {
            rate_bps: 10,
            packets: 11,
            lost: vec![SiteLoss { site: site.clone(), packets: 12 }],
        }],
    };
    let session = SessionTraffic {
        site,
        clock_offset_us: Some(-4),
        clock_bound_us: Some(5),
        round_trip_us: Some(6),
        site_clock: Some(SiteClockLine {
            synchronised: true,
            error_us: 7,
            estimated_error_us: 8,
            daemon: Some(text("chrony")),
        }),
        path: Some(path()),
        data_connections: 2,
        data_connections_planned: 4,
        data_connections_reason: "it helps".to_owned(),
        tcp_profile: Some(SessionProfile {
            name: text("overseas"),
            state: ProfileState::Canary,
            knobs: knobs(),
        }),
        transfers: vec![Transfer { bytes: 1_000_000, took_us: 400_000 }],
        feeds: vec![progress()],
    };
    Traffic {
        from_us: AT,
        to_us: WallMicros(AT.0 + 1_000_000),
        feeds: vec![arrived],
        legs: vec![leg],
        control_bytes: 3,
        gone: BTreeSet::from([SiteName::parse("cma.example").unwrap()]),
        sessions: vec![session],
        circuits: vec![CircuitTraffic {
            lease: 1,
            site: Some(SiteName::parse("unl.edu").unwrap()),
            out_bytes: 2,
            in_bytes: 3,
        }],
    }
}

fn knobs() -> Knobs {
    Knobs {
        congestion: Some(text("bbr")),
        send_buffer_bytes: Some(4_096),
        receive_buffer_bytes: Some(1 << 30),
        pacing_bps: Some(8_000),
        connections: Some(4),
    }
}

fn path() -> PathFacts {
    PathFacts {
        least_round_trip_us: Some(1),
        sent_segments: 2,
        resent_segments: 3,
        rate_bps: 4,
        is_lower_bound: true,
        congestion: "cubic".to_owned(),
        path_mtu_bytes: Some(1500),
    }
}

fn progress() -> SessionFeed {
    let failed = FailedAction {
        rule: "pqact.conf:3".to_owned(),
        exit: Some(1),
        last_error: "no such file".to_owned(),
        product: "nam".to_owned(),
        sequence: Sequence(7),
        epoch: Some("12345678901234567890".to_owned()),
        count: 2,
        others: vec![Sequence(6)],
    };
    SessionFeed {
        feed: FeedName::parse("NGRID").unwrap(),
        settled_to: Sequence(7),
        pending: 2,
        late: 3,
        transport: Transport::Multicast,
        leg: LegId(2),
        trouble: Some("no space left".to_owned()),
        action_failed: Some(failed),
        linked: Some(LinkedFiles { bytes: 5_000_000, free_bytes: 1_000_000 }),
        reading: Some(HostReadingLine {
            leg: LegId(2),
            dropped: 4_294_967_296,
            asked_bytes: 65_536,
            granted_bytes: 131_072,
            needed_bytes: 5_000_000,
            limit_bytes: Some(212_992),
            priority: Some(20),
            standing: "real-time",
            demotions: 1,
            line: Some(LineReadingLine {
                arrived_bps: 4_000_000,
                offered_bps: 40_000_000,
                packets: 3_300,
                lost: 2_970,
                windows: 7,
            }),
        }),
        heartbeat_us: Some(AT),
        heartbeat_waits_us: Some(WallMicros(AT.0 + 1)),
        heartbeat_waited_us: Some(5),
    }
}
