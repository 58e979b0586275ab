//! Tests of the intake from an upstream.
use serde_json::json;

use super::*;
use crate::testing::{feed, product};

fn line(upstream: &str, feeds: &[&str]) -> UpstreamLine {
    let line = json!({"upstream": upstream, "address": "h:7370", "token": "t", "feeds": feeds});
    serde_json::from_value(line).unwrap()
}

/// An intake of the hub `here` that has connected to the hub `north`.
fn connected() -> UpstreamIntake {
    let mut intake = UpstreamIntake::new("up", "here");
    intake.hub_is("north");
    assert_eq!(intake.is_well("north").len(), 1);
    intake
}

fn came_by(hops: &[&str]) -> ProductInfo {
    let hops =
        hops.iter().fold(None, |before, name| Hops::through(before.as_ref(), HubName::parse(name).unwrap()));
    ProductInfo { hops, ..product(5, "SA", 90) }
}

fn sentence(report: Option<UpstreamReport>) -> String {
    match report {
        Some(UpstreamReport::Fault { sentence, .. }) => sentence,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn no_named_feed_means_all() {
    let takes = |feeds: &[&str]| WantedFeeds::of(&line("up", feeds)).takes(&feed("NGRID"));
    assert!(takes(&[]) && takes(&["NGRID", "HDS"]) && !takes(&["HDS"]));
}

#[test]
fn a_product_goes_on_with_the_upstream_as_its_last_hop() {
    let mut intake = connected();
    let Admission { admitted, complaint } = intake.admit(&came_by(&["origin"]), Some(Class::Grid));
    assert_eq!((admitted, complaint), (Some((Class::Grid, came_by(&["origin", "north"]).hops)), None));
    assert!(serde_json::to_value(intake.status(1)).unwrap()["looped"] == json!(0));
}

#[test]
fn a_circle_of_hubs_is_told_once_for_each_feed_and_connection() {
    let mut intake = connected();
    let looped = came_by(&["here", "far"]);
    let first = intake.admit(&looped, Some(Class::Grid));
    assert_eq!(first.admitted, None);
    assert!(sentence(first.complaint).contains("in a circle; remove the feed"));
    assert_eq!(intake.admit(&looped, Some(Class::Grid)), Admission::default());
    intake.is_well("north");
    assert!(intake.admit(&looped, Some(Class::Grid)).complaint.is_some());
    assert_eq!(intake.status(0).looped, 3);
}

#[test]
fn products_of_feeds_that_are_not_taken_are_counted() {
    let mut intake = connected();
    let first = intake.admit(&came_by(&[]), None);
    assert!(sentence(first.complaint).contains("downburst feeds add TEST"));
    assert_eq!(intake.admit(&came_by(&[]), None), Admission::default());
    assert_eq!((intake.status(0).passed_over, intake.status(0).looped), (2, 0));
}

#[test]
fn heartbeats_of_an_upstream_end_here() {
    let mut intake = connected();
    let heartbeat = product(5, "downburst:heartbeat:5", 90);
    assert_eq!(intake.admit(&heartbeat, Some(Class::Grid)), Admission::default());
    assert_eq!((intake.status(0).passed_over, intake.status(0).looped), (0, 0));
}

#[test]
fn a_hub_of_the_same_name_is_refused_with_advice() {
    let mut intake = UpstreamIntake::new("up", "here");
    intake.hub_is("here");
    let mut reports = intake.is_well("here").into_iter();
    let state = UpstreamReport::State { state: "connected", hub: Some("here".to_owned()), reason: None };
    assert_eq!(reports.next(), Some(state));
    assert!(sentence(reports.next()).contains("same name as this hub, \"here\""));
    assert_eq!(intake.admit(&came_by(&[]), Some(Class::Grid)).admitted, None);
}

#[test]
fn a_name_that_can_not_be_a_hop_is_replaced_by_the_operators() {
    let mut intake = UpstreamIntake::new("up", "here");
    intake.hub_is("no hop: a name\nof two lines");
    assert_eq!(intake.status(0).hub.map(HubName::as_str), Some("up"));
}

#[test]
fn only_changes_of_the_connection_are_told() {
    let mut intake = connected();
    assert_eq!(intake.is_away("the line broke"), Some(closed("closed", "the line broke")));
    assert_eq!(intake.is_away("still away"), None);
    let status = serde_json::to_value(intake.status(7)).unwrap();
    assert_eq!(
        status,
        json!({
            "upstream": "up", "connected": false, "hub": "north", "reason": "still away", "stored": 7, "looped": 0,
            "passed_over": 0,
        })
    );
    let [state, advice] = intake.is_refused("revoked");
    assert_eq!(state, closed("refused", "revoked"));
    assert!(
        sentence(Some(advice))
            .contains("refused this hub: revoked (then: downburst upstreams add up --token")
    );
}

#[test]
fn what_changed_or_is_gone_ends() {
    let (kept, changed, gone) = (line("a", &[]), line("b", &[]), line("c", &[]));
    let wanted = [line("a", &[]), line("b", &["NGRID"]), line("d", &[])];
    let wanted = wanted.into_iter().map(|line| (line.upstream.clone(), line)).collect();
    assert_eq!(outdated([&kept, &changed, &gone].into_iter(), &wanted), ["b", "c"]);
    assert!(own_upstream("up").starts_with("upstream up is this hub itself"));
}
