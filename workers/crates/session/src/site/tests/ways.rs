//! The ways by relays that the hub tells, and the report of a relay.
use super::*;
use crate::{RelayReport, Ways};

#[test]
fn the_ways_are_passed_to_the_driver() {
    let mut bench = Bench::started();
    bench.say(Ways { chains: vec!["a:1,b:2".to_owned()] });
    bench.messages();
    let told = bench
        .others
        .iter()
        .any(|it| matches!(it, SiteOutput::Event(SiteEvent::Ways(chains)) if *chains == ["a:1,b:2"]));
    assert!(told);
}

#[test]
fn a_report_goes_to_the_hub_while_there_is_a_session() {
    let report = RelayReport { refused: 5, ..RelayReport::default() };
    let mut bench = Bench::started();
    bench.messages();
    bench.site.handle(at(bench.millis), SiteInput::RelayReport(report.clone()));
    assert_eq!(bench.messages(), [Message::RelayReport(report.clone())]);
    bench.site.handle(at(bench.millis), SiteInput::Disconnected);
    bench.site.handle(at(bench.millis), SiteInput::RelayReport(report));
    assert!(bench.messages().is_empty());
}
