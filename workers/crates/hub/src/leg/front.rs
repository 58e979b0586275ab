//! A running leg, as the rest of the hub sees it.
use downburst_model::SiteName;
use downburst_session::{KeyTaken, LegJoin};
use downburst_vcmtp::{LegKey, RepairChannel, Request};

use super::api::LegInput;
use super::proofs::ProofSecrets;

/// The join parameters of a running leg, and the inputs that sites and the agent cause for its machine. Messages of
/// sites about an earlier life of the leg cause none.
pub struct LegFront {
    join: LegJoin,
    proof_secrets: ProofSecrets,
}

/// The parts of an offer that differ among sites.
#[derive(Debug)]
pub struct LegOffer {
    /// The interface on which the site receives the leg.
    pub interface: String,
    /// The latest key, and the key in use if that is another one.
    pub keys: (LegKey, Option<LegKey>),
    /// Its channel for repairs, if there is one.
    pub channel: Option<RepairChannel>,
}

impl LegFront {
    /// The front of a leg with these parameters for every site.
    pub fn new(join: LegJoin, proof_secrets: ProofSecrets) -> Self {
        Self { join, proof_secrets }
    }

    /// The join parameters that are the same for every site.
    pub fn join(&self) -> &LegJoin {
        &self.join
    }

    /// Offers the leg to the session of a site: its join parameters, and the inputs that precede them.
    pub fn offer<C>(
        &self,
        site: &SiteName,
        (session, credential): (u64, &str),
        offer: LegOffer,
    ) -> (LegJoin, [LegInput<C>; 2]) {
        let LegOffer { interface, keys: (key, key_in_use), channel } = offer;
        let secret = self.proof_secrets.of(session);
        let inputs = [
            LegInput::KeysTold { site: site.clone(), credential: credential.to_owned() },
            LegInput::Reader { session, secret: Some(secret.clone()) },
        ];
        let proof_secret = Some(Box::new(secret));
        let join = LegJoin { interface, key, key_in_use, channel, proof_secret, ..self.join.clone() };
        (join, inputs)
    }

    /// The input when a site confirmed a key that was sent in advance.
    pub fn key_taken<C>(&self, site: &SiteName, taken: &KeyTaken) -> Option<LegInput<C>> {
        let key_id = taken.key_id;
        self.is_of_this_life(taken.leg_epoch).then(|| LegInput::KeyTaken { site: site.clone(), key_id })
    }

    /// The input when a site requests packets over its session.
    pub fn nak<C>(&self, session: u64, leg_epoch: u64, request: Request) -> Option<LegInput<C>> {
        self.is_of_this_life(leg_epoch).then_some(LegInput::Nak { session, request, channel: None })
    }

    /// The input when a site received packets that are not the leg's.
    pub fn forged<C>(&self, leg_epoch: u64) -> Option<LegInput<C>> {
        self.is_of_this_life(leg_epoch).then_some(LegInput::Forged)
    }

    /// The input when the plan changes the rate.
    pub fn rate<C>(&mut self, rate_bps: u64) -> LegInput<C> {
        self.join.rate_bps = rate_bps;
        LegInput::Rate(rate_bps)
    }

    fn is_of_this_life(&self, leg_epoch: u64) -> bool {
        leg_epoch == self.join.leg_epoch
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, FeedName, LegId};
    use downburst_vcmtp::Cipher;

    use super::*;

    type Input = LegInput<()>;

    fn key(id: u8) -> LegKey {
        LegKey::new(id, [id; 32])
    }

    fn front() -> LegFront {
        let join = LegJoin {
            leg: LegId(5),
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: Epoch(1),
            leg_epoch: 99,
            group: "239.0.0.1".to_owned(),
            port: 17,
            key: key(1),
            key_in_use: None,
            sender_key: None,
            proof_secret: None,
            pass: None,
            interface: String::new(),
            rate_bps: 8,
            source: None,
            channel: None,
        };
        LegFront::new(join, ProofSecrets::new([4; 32]))
    }

    fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    #[test]
    fn an_offer_has_the_latest_keys_and_a_secret_that_the_machine_knows_as_well() {
        let channel = RepairChannel { id: 3, port: 0, secret: [8; 32], cipher: Cipher::Aes256Gcm };
        let offer = LegOffer {
            interface: "eth1".to_owned(),
            keys: (key(2), Some(key(1))),
            channel: Some(channel.clone()),
        };
        let (join, inputs) = front().offer::<()>(&oslo(), (7, "digest"), offer);
        assert_eq!((join.key, join.key_in_use, join.interface.as_str()), (key(2), Some(key(1)), "eth1"));
        assert_eq!(join.channel.map(|it| it.id), Some(channel.id));
        assert_eq!((join.leg, join.rate_bps), (LegId(5), 8));
        let [LegInput::KeysTold { site, credential }, LegInput::Reader { session: 7, secret: Some(secret) }] =
            inputs
        else {
            panic!("other inputs")
        };
        assert_eq!((site, credential.as_str()), (oslo(), "digest"));
        assert_eq!(join.proof_secret.map(|it| it.secret), Some(secret.secret));
    }

    #[test]
    fn messages_about_another_life_of_the_leg_are_ignored() {
        let front = front();
        let taken = |leg_epoch| KeyTaken { leg: LegId(5), leg_epoch, key_id: 2 };
        let inputs = |leg_epoch| -> [Option<Input>; 3] {
            [
                front.key_taken(&oslo(), &taken(leg_epoch)),
                front.nak(7, leg_epoch, Request::default()),
                front.forged(leg_epoch),
            ]
        };
        assert!(inputs(98).iter().all(Option::is_none));
        let [Some(key), Some(nak), Some(LegInput::Forged)] = inputs(99) else { panic!("one is missing") };
        assert!(matches!(key, LegInput::KeyTaken { key_id: 2, .. }));
        assert!(matches!(nak, LegInput::Nak { session: 7, channel: None, .. }), "over the session");
    }

    #[test]
    fn a_site_that_joins_later_gets_the_new_rate() {
        let mut front = front();
        assert!(matches!(front.rate::<()>(9), LegInput::Rate(9)));
        assert_eq!(front.join().rate_bps, 9);
    }
}
