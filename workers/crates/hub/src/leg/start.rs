//! The start of a leg, from its line in the plan.
use std::net::{IpAddr, SocketAddr};

use downburst_model::{Epoch, FeedName, Micros, Sequence};
use downburst_session::LegJoin;
use downburst_vcmtp::{LegKey, SenderConfig, SigningSeed};

use super::api::{LegInterface, LegSettings};
use crate::plans::LegLine;

/// The secrets and identifiers that are drawn at the start of a leg.
#[derive(Clone, Debug)]
pub struct LegDraws {
    /// Its first key.
    pub key: LegKey,
    /// The life of the leg.
    pub leg_epoch: u64,
    /// The seed of the sender's signing key.
    pub signing_seed: SigningSeed,
}

/// A leg that is about to start.
#[derive(Clone, Debug)]
pub struct LegStart<'a> {
    /// Its line in the plan.
    pub line: &'a LegLine,
    /// Its secrets.
    pub draws: &'a LegDraws,
    /// The address of its group.
    pub group: SocketAddr,
    /// Its feed.
    pub feed: FeedName,
    /// The life of the feed's log.
    pub epoch: Epoch,
    /// The head of the log: the leg carries all later products.
    pub after: Sequence,
}

impl LegStart<'_> {
    /// The settings of its machine. The interface of its datagrams may have an MTU.
    pub fn settings(&self, mtu_bytes: Option<u64>) -> LegSettings {
        let Self { line, draws, after, .. } = self;
        let config = SenderConfig::new(line.leg, draws.leg_epoch, draws.key.clone(), *after, line.rate_bps);
        let repair_window = line.losses.repair_seconds.map(|seconds| Micros::from_secs(seconds.into()));
        let sender = SenderConfig {
            signing_seed: Some(draws.signing_seed.clone()),
            burst_bytes: line.burst_bytes.unwrap_or(config.burst_bytes),
            most_parity: line.losses.parity_percent / 100.0,
            repair_window: repair_window.unwrap_or(config.repair_window),
            frame_overhead_bytes: SenderConfig::frame_overhead_bytes_of(self.group.is_ipv6()),
            ..config
        };
        let (is_circuit, is_relayed) = (line.circuit.is_some(), line.relay.is_some());
        let interface = LegInterface { mtu_bytes, is_circuit, is_relayed };
        LegSettings { sender, loss_quantile: line.losses.loss_quantile, interface }
    }

    /// The join parameters that are the same for every site, except for the sender's key and address.
    pub fn join(&self) -> LegJoin {
        LegJoin {
            leg: self.line.leg,
            feed: self.feed.clone(),
            epoch: self.epoch,
            leg_epoch: self.draws.leg_epoch,
            group: self.group.ip().to_string(),
            port: self.group.port(),
            key: self.draws.key.clone(),
            key_in_use: None,
            sender_key: None,
            proof_secret: None,
            pass: None,
            interface: String::new(),
            rate_bps: self.line.rate_bps,
            source: None,
            channel: None,
        }
    }
}

impl LegLine {
    /// The address of a multicast leg's group.
    ///
    /// # Errors
    ///
    /// A sentence, if the line describes no group with a port and a rate.
    pub fn group_address(&self) -> Result<SocketAddr, String> {
        let address = self.group.parse::<IpAddr>().ok().filter(IpAddr::is_multicast);
        match address {
            Some(address) if self.port != 0 && self.rate_bps > 0 => Ok(SocketAddr::new(address, self.port)),
            _ => Err(format!(
                "leg {} needs a multicast group, a port and a rate, not {:?} port {} at {} b/s",
                self.leg.0, self.group, self.port, self.rate_bps
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::LegId;

    use super::*;

    fn line(changes: serde_json::Value) -> LegLine {
        let mut line = serde_json::json!({"leg": 5, "transport": "multicast", "sites": [], "group": "239.0.0.1",
            "port": 17, "rate_bps": 8_000_000});
        line.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    fn draws() -> LegDraws {
        LegDraws { key: LegKey::new(1, [7; 32]), leg_epoch: 99, signing_seed: SigningSeed([3; 32]) }
    }

    fn started<T>(changes: serde_json::Value, look: impl FnOnce(LegStart<'_>) -> T) -> T {
        let (line, draws) = (line(changes), draws());
        let (group, feed) = (line.group_address().unwrap(), FeedName::parse("NGRID").unwrap());
        look(LegStart { line: &line, draws: &draws, group, feed, epoch: Epoch(4), after: Sequence(12) })
    }

    #[test]
    fn a_leg_needs_a_multicast_group_a_port_and_a_rate() {
        let group = line(serde_json::json!({})).group_address();
        assert_eq!(group, Ok("239.0.0.1:17".parse().unwrap()));
        let group = line(serde_json::json!({"group": "ff15::5"})).group_address();
        assert_eq!(group, Ok("[ff15::5]:17".parse().unwrap()));
        for bad in [
            serde_json::json!({"group": "192.0.2.1"}),
            serde_json::json!({"group": ""}),
            serde_json::json!({"port": 0}),
            serde_json::json!({"rate_bps": 0}),
        ] {
            let sentence = line(bad).group_address().unwrap_err();
            assert!(
                sentence.starts_with("leg 5 needs a multicast group, a port and a rate, not"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn the_settings_are_those_of_the_line_and_defaults_where_it_has_none() {
        let usual = started(serde_json::json!({}), |start| start.settings(Some(1_400)));
        let config = SenderConfig::new(LegId(5), 99, draws().key, Sequence(12), 8_000_000);
        assert_eq!(
            (usual.sender.leg, usual.sender.leg_epoch, usual.sender.after),
            (LegId(5), 99, Sequence(12))
        );
        assert_eq!(usual.sender.burst_bytes, config.burst_bytes);
        assert_eq!(usual.sender.repair_window, config.repair_window);
        assert_eq!(usual.sender.frame_overhead_bytes, SenderConfig::frame_overhead_bytes_of(false));
        assert_eq!((usual.interface.mtu_bytes, usual.interface.is_circuit), (Some(1_400), false));
        assert!(usual.sender.signing_seed.is_some_and(|seed| seed.0 == [3; 32]));
        let own = serde_json::json!({"burst_bytes": 77, "parity_percent": 25.0, "repair_seconds": 9,
            "loss_quantile": 0.75, "group": "ff15::5", "circuit": 3});
        let own = started(own, |start| start.settings(None));
        assert_eq!((own.sender.burst_bytes, own.sender.repair_window), (77, Micros::from_secs(9)));
        assert!((own.sender.most_parity - 0.25).abs() < f64::EPSILON);
        assert!((own.loss_quantile - 0.75).abs() < f64::EPSILON);
        assert_eq!(own.sender.frame_overhead_bytes, SenderConfig::frame_overhead_bytes_of(true));
        assert!(own.interface.is_circuit);
    }

    #[test]
    fn a_join_names_the_group_and_the_lives_of_log_and_leg() {
        let join = started(serde_json::json!({"group": "ff15::5"}), |start| start.join());
        assert_eq!((join.group.as_str(), join.port, join.rate_bps), ("ff15::5", 17, 8_000_000));
        assert_eq!((join.feed.as_str(), join.epoch, join.leg_epoch), ("NGRID", Epoch(4), 99));
        assert!(join.channel.is_none() && join.interface.is_empty(), "these are each site's own");
    }
}
