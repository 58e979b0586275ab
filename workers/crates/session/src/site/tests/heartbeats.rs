//! Heartbeats at the receiving site.
use super::*;
use crate::HeartbeatOut;

fn beat(sequence: u64) -> ProductInfo {
    info(sequence, "downburst:heartbeat:9", 2)
}

fn outs(messages: &[Message]) -> Vec<HeartbeatOut> {
    let outs = messages.iter().filter_map(|message| match message {
        Message::HeartbeatOut(out) => Some(out.clone()),
        _ => None,
    });
    outs.collect()
}

#[test]
fn a_heartbeat_is_settled_without_a_receipt_and_told_when_it_came_out() {
    let mut bench = Bench::started();
    bench.say(ProductBegin { info: beat(1), ..begin(1, 0, 2) });
    bench.slice(1, 0, b"hi");
    assert_eq!(bench.count(is_complete), 1);
    bench.settled(1, StoreResult::Stored);
    let said = bench.wait(300);
    assert_eq!((bench.receipts(), bench.ranges()), (vec![], vec![(0, 1)]));
    assert_eq!(outs(&said), [], "it is stored, and has not come out");
    let out = HeartbeatOut { key: beat(1).key, at: WallMicros(5) };
    bench.site.handle(at(bench.millis), SiteInput::HeartbeatOut { key: beat(1).key, at: WallMicros(5) });
    assert_eq!(outs(&bench.messages()), [out]);
}
