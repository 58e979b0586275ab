//! Two hubs: one requests from the other with LDM's protocol.
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::rig::TestHub;
use crate::hub::{Event, Hub};
use crate::{Gateway, LdmLine, lock};

/// A hub with its gateway.
struct Side {
    hub: Arc<TestHub>,
    gateway: Gateway,
}

impl Side {
    fn new(origin: &str) -> Self {
        let hub = TestHub::new(origin, &[("IDS", "IDS", None), ("GRIDS", "NGRID", None)]);
        let gateway = Gateway::default();
        gateway.look_at_feeds(&*hub);
        Self { hub, gateway }
    }

    async fn reconcile(&self, line: Value) -> Value {
        let line: LdmLine = serde_json::from_value(line).unwrap();
        self.gateway.reconcile(Arc::clone(&self.hub) as Arc<dyn Hub>, line).await.unwrap()
    }

    /// Listens on a free port, and returns the address.
    async fn serve(&self) -> String {
        let answer = self.reconcile(serde_json::json!({"listen": ["127.0.0.1:0"]})).await;
        answer["addresses"][0].as_str().unwrap().to_owned()
    }

    /// Requests products of these types from the hub at an address.
    async fn ask(&self, address: &str, feeds: &str) {
        let source =
            serde_json::json!({"source": "up", "feeds": feeds, "pattern": ".*", "upstreams": [address]});
        self.reconcile(serde_json::json!({"sources": [source]})).await;
    }

    async fn has(&self, feed: &str, ids: &[&str]) {
        until(|| self.hub.feed(feed).ids() == ids).await;
    }

    async fn is_told(&self, meant: impl Fn(&Event) -> bool) {
        until(|| lock(&self.hub.events).iter().any(&meant)).await;
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap();
}

#[tokio::test]
async fn products_go_on_to_the_hub_that_asks_and_are_counted_at_the_one_that_serves() {
    let (up, down) = (Side::new("up.example"), Side::new("down.example"));
    up.hub.subscribe("ucla", "IDS", ".*");
    up.hub.put("IDS", "SAUS70 KWBC 231200", b"before");
    let address = up.serve().await;
    down.ask(&address, "IDS").await;
    down.has("IDS", &["SAUS70 KWBC 231200"]).await;
    up.hub.put("IDS", "SAUS80 KWBC 231200", b"after");
    up.hub.put("GRIDS", "YTQA98 KWBC", b"not asked for");
    down.has("IDS", &["SAUS70 KWBC 231200", "SAUS80 KWBC 231200"]).await;
    let is_served = |event: &Event| {
        matches!(event, Event::Peer { site: Some(site), state: "connected", what: "feedme", .. }
            if site.as_str() == "ucla")
    };
    up.is_told(is_served).await;
    down.is_told(|event| matches!(event, Event::Source { state: "connected", mode: "primary", .. })).await;
    down.gateway.end().await;
    up.is_told(|event| matches!(event, Event::Peer { state: "closed", .. })).await;
    let sent = lock(&up.hub.sent).clone();
    let (products, bytes) = sent.iter().fold((0, 0), |sum, it| (sum.0 + it.products, sum.1 + it.bytes));
    assert_eq!((products, bytes), (2, 11), "{sent:?}");
    assert!(down.hub.feed("GRIDS").ids().is_empty());
    up.gateway.end().await;
}

#[tokio::test]
async fn a_hub_that_was_away_goes_on_behind_what_it_has() {
    let (up, down) = (Side::new("up.example"), Side::new("down.example"));
    up.hub.subscribe("ucla", "IDS", ".*");
    let address = up.serve().await;
    down.ask(&address, "IDS").await;
    up.hub.put("IDS", "first", b"1");
    down.has("IDS", &["first"]).await;
    down.reconcile(serde_json::json!({})).await;
    up.is_told(|event| matches!(event, Event::Peer { state: "closed", .. })).await;
    up.hub.put("IDS", "second", b"2");
    down.ask(&address, "IDS").await;
    down.has("IDS", &["first", "second"]).await;
    down.gateway.end().await;
    up.gateway.end().await;
    let sent: u64 = lock(&up.hub.sent).iter().map(|sent| sent.products).sum();
    assert_eq!(sent, 2, "nothing went twice");
}

#[tokio::test]
async fn rights_that_change_end_the_connection_and_what_is_not_granted_is_refused() {
    let (up, down) = (Side::new("up.example"), Side::new("down.example"));
    up.hub.subscribe("ucla", "IDS", ".*");
    let address = up.serve().await;
    down.ask(&address, "IDS").await;
    up.is_told(|event| matches!(event, Event::Peer { state: "connected", .. })).await;
    lock(&up.hub.sites).clear();
    up.gateway.look_at_rights(&*up.hub);
    let is_cut_off = |event: &Event| {
        matches!(event, Event::Peer { state: "closed", reason: Some(reason), .. }
            if reason.contains("rights"))
    };
    up.is_told(is_cut_off).await;
    let is_refused = |event: &Event| {
        matches!(event, Event::Peer { state: "refused", site: None, reason: Some(reason), .. }
            if reason.contains("no site with this host"))
    };
    up.is_told(is_refused).await;
    down.gateway.end().await;
    up.gateway.end().await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_failure_with_advice_and_the_rest_is_done() {
    let (one, other) = (Side::new("one.example"), Side::new("other.example"));
    let address = one.serve().await;
    let line = serde_json::json!({"listen": [address, "127.0.0.1:0"]});
    let line: LdmLine = serde_json::from_value(line).unwrap();
    let failure = other.gateway.reconcile(Arc::clone(&other.hub) as Arc<dyn Hub>, line).await.unwrap_err();
    assert_eq!(failure.code, "port-in-use");
    assert!(failure.sentence.contains("stop the LDM that holds it"), "{}", failure.sentence);
    assert_eq!(other.gateway.status().await["addresses"].as_array().unwrap().len(), 1);
    one.gateway.end().await;
    other.gateway.end().await;
}

const PATIENCE: Duration = Duration::from_secs(60);
