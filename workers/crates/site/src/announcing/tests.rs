//! Sites and a relay over a network that loses, doubles and delays datagrams, with a host that forges and replays them.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use downburst_model::{LegId, Micros};
use downburst_session::{FanOutPass, UnicastFanOut};
use proptest::prelude::*;

use super::announcer::REPEAT;
use super::message::{Codec, Kind, Message};
use super::receivers::EXPIRY;
use super::*;

const LEG: LegId = LegId(7);
const SECOND: Micros = Micros::from_secs(1);

fn pass() -> FanOutPass {
    FanOutPass([5; 32])
}

fn receivers(sites: u64) -> Receivers {
    Receivers::new(LEG, &UnicastFanOut { sites, pass: pass() }, &[9; 32])
}

fn announcer(now: Micros) -> Announcer {
    Announcer::new(now, LEG, &pass())
}

fn host(number: u16) -> SocketAddr {
    SocketAddr::new([10, 0, 0, 9].into(), 4_000 + number)
}

fn sent_to(receivers: &mut Receivers, now: Micros) -> Vec<SocketAddr> {
    receivers.at(now).collect()
}

/// Announces until the relay has taken the site.
fn announce(receivers: &mut Receivers, now: Micros, from: SocketAddr) -> Announcer {
    let (mut site, mut now) = (announcer(now), now);
    for _ in 0..2 {
        let question = site.poll(now).unwrap();
        if let Some(answer) = receivers.handle(now, from, &question) {
            assert_eq!(answer.len(), question.len());
            assert!(site.handle(now, &answer));
        }
        now = site.deadline();
    }
    site
}

#[test]
fn a_relay_sends_to_an_address_once_its_cookie_has_come_back() {
    let (mut relay, mut site) = (receivers(2), announcer(Micros(0)));
    let first = site.poll(Micros(0)).unwrap();
    let challenge = relay.handle(Micros(1), host(1), &first).unwrap();
    assert_eq!(sent_to(&mut relay, Micros(1)), []);
    assert!(site.handle(Micros(2), &challenge) && !site.is_taken());
    assert_eq!(site.poll(Micros(2)), None, "not at once");
    let second = site.poll(Micros(20_000)).unwrap();
    let elsewhere = relay.handle(Micros(20_001), host(2), &second).unwrap();
    assert_eq!(sent_to(&mut relay, Micros(20_001)), [], "it is the cookie of another address");
    assert_eq!(Codec::new(LEG, &pass()).read(&elsewhere).unwrap().kind, Kind::Challenge);
    let taken = relay.handle(Micros(20_002), host(1), &second).unwrap();
    assert!(site.handle(Micros(20_003), &taken) && site.is_taken());
    assert_eq!(sent_to(&mut relay, Micros(20_003)), [host(1)]);
    assert_eq!(site.deadline(), Micros(20_003).plus(REPEAT));
    assert_eq!(relay.handle(Micros(20_004), host(1), &site.leave()), None);
    assert_eq!(sent_to(&mut relay, Micros(20_004)), []);
}

#[test]
fn an_announcement_without_repetition_expires() {
    let mut relay = receivers(2);
    announce(&mut relay, Micros(0), host(1));
    assert_eq!(sent_to(&mut relay, EXPIRY), [host(1)]);
    assert_eq!(sent_to(&mut relay, EXPIRY.plus(SECOND)), []);
}

#[test]
fn a_leg_has_no_more_receivers_than_sites_and_a_silent_one_makes_room() {
    let mut relay = receivers(2);
    let (mut first, _) = (announce(&mut relay, Micros(0), host(1)), announce(&mut relay, Micros(0), host(2)));
    assert!(!announce(&mut relay, SECOND, host(3)).is_taken());
    assert_eq!(sent_to(&mut relay, SECOND), [host(1), host(2)]);
    let again = Micros::from_secs(9);
    relay.handle(again, host(1), &first.poll(again).unwrap()).unwrap();
    assert!(announce(&mut relay, again, host(3)).is_taken());
    assert_eq!(sent_to(&mut relay, again), [host(1), host(3)]);
    relay.bound(1);
    assert_eq!(sent_to(&mut relay, again), [host(3)]);
    relay.bound(0);
    assert!(sent_to(&mut relay, again).is_empty() && !announce(&mut relay, again, host(1)).is_taken());
}

#[test]
fn a_cookie_of_an_hour_ago_is_worth_nothing() {
    let mut relay = receivers(2);
    let mut site = announce(&mut relay, Micros(0), host(1));
    let late = Micros::from_secs(3_600);
    let challenge = relay.handle(late, host(1), &site.poll(late).unwrap()).unwrap();
    assert_eq!(sent_to(&mut relay, late), []);
    assert!(site.handle(late, &challenge));
    relay.handle(late.plus(SECOND), host(1), &site.poll(late.plus(SECOND)).unwrap()).unwrap();
    assert_eq!(sent_to(&mut relay, late.plus(SECOND)), [host(1)]);
}

#[test]
fn a_stranger_is_not_answered_and_a_repeated_challenge_starts_nothing() {
    let mut relay = receivers(2);
    for (leg, pass) in [(LEG, FanOutPass([6; 32])), (LegId(8), pass())] {
        let question = Announcer::new(Micros(0), leg, &pass).poll(Micros(0)).unwrap();
        assert_eq!(relay.handle(Micros(0), host(1), &question), None);
    }
    let mut site = announcer(Micros(0));
    let challenge = relay.handle(Micros(0), host(1), &site.poll(Micros(0)).unwrap()).unwrap();
    site.handle(Micros(0), &challenge);
    assert!(site.poll(SECOND).is_some());
    let due = site.deadline();
    assert!((0..1_000).all(|_| site.handle(SECOND, &challenge)));
    assert_eq!(site.deadline(), due);
}

proptest! {
    /// A host becomes no receiver and gets no answer, whatever it sends and whichever messages it changes.
    #[test]
    fn hostile_datagrams_win_nothing(
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        (place, bit) in (0_usize..ANNOUNCEMENT_BYTES, 0_u8..8),
        length in 0_usize..ANNOUNCEMENT_BYTES,
    ) {
        let (mut relay, mut site) = (receivers(4), announcer(Micros(0)));
        let good = site.poll(Micros(0)).unwrap();
        let mut changed = good;
        changed[place] ^= 1 << bit;
        for datagram in [&noise[..], &changed, &good[..length], &[&good[..], &noise, &[0]].concat()] {
            prop_assert_eq!(relay.handle(Micros(0), host(1), datagram), None);
        }
        let challenge = relay.handle(Micros(0), host(1), &good).unwrap();
        let mut changed = challenge;
        changed[place] ^= 1 << bit;
        prop_assert!(!site.handle(Micros(0), &noise) && !site.handle(Micros(0), &changed));
        prop_assert!(sent_to(&mut relay, Micros(0)).is_empty());
    }

    /// Cookies that a member of the leg invents are worth nothing either.
    #[test]
    fn invented_cookies_are_answered_by_a_challenge(cookie in any::<[u8; 32]>(), at in 0_u64..1 << 40) {
        let mut relay = receivers(4);
        let codec = Codec::new(LEG, &pass());
        let question = codec.write(Message { kind: Kind::Announce, cookie });
        let answer = relay.handle(Micros(at), host(1), &question).unwrap();
        prop_assert_eq!(codec.read(&answer).unwrap().kind, Kind::Challenge);
        prop_assert!(sent_to(&mut relay, Micros(at)).is_empty());
    }

    /// Sites behind a bad network are receivers most of the time, a spy that replays all it sees never is, and
    /// those that fall silent are forgotten.
    #[test]
    fn sites_stay_receivers_over_a_bad_network(seed in any::<u64>()) {
        let mut world = World::new(seed);
        let mut unsent = 0;
        for _ in 0..600 {
            world.step();
            prop_assert!(!sent_to(&mut world.relay, world.now).contains(&host(SPY)), "seed {}", seed);
            if world.now > Micros::from_secs(20) {
                unsent += SITES as usize - sent_to(&mut world.relay, world.now).len();
            }
        }
        prop_assert!(unsent <= 20, "{} seconds without, seed {}", unsent / 10, seed);
        prop_assert!(world.answered_bytes <= world.asked_bytes);
        world.now = world.now.plus(EXPIRY).plus(SECOND);
        prop_assert!(sent_to(&mut world.relay, world.now).is_empty());
    }
}

const SITES: u16 = 4;
const SPY: u16 = 99;

/// A relay, its sites, and datagrams on their way, in steps of 0.1 s.
struct World {
    now: Micros,
    relay: Receivers,
    sites: BTreeMap<u16, Announcer>,
    /// By arrival.
    on_way: Vec<(Micros, u16, bool, [u8; ANNOUNCEMENT_BYTES])>,
    random: u64,
    asked_bytes: usize,
    answered_bytes: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let sites = (0..SITES).map(|number| (number, announcer(Micros(0)))).collect();
        let relay = receivers(SITES.into());
        let random = seed | 1;
        Self { now: Micros(0), relay, sites, on_way: Vec::new(), random, asked_bytes: 0, answered_bytes: 0 }
    }

    /// Xorshift.
    fn draw(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % most
    }

    /// A fifth is lost, a tenth comes twice, and each takes up to 0.3 s. The spy sees all, and sends it again as its
    /// own.
    fn put(&mut self, site: u16, to_relay: bool, datagram: [u8; ANNOUNCEMENT_BYTES]) {
        for copy in 0..2 {
            let is_lost = if copy == 0 { self.draw(5) == 0 } else { self.draw(10) > 0 };
            if !is_lost {
                let due = Micros(self.now.0 + self.draw(300_000));
                self.on_way.push((due, site, to_relay, datagram));
            }
        }
        if to_relay && site != SPY {
            self.on_way.push((self.now, SPY, true, datagram));
        }
    }

    fn step(&mut self) {
        self.now = self.now.plus(Micros(100_000));
        let now = self.now;
        let said: Vec<_> =
            self.sites.iter_mut().filter_map(|(number, site)| Some((*number, site.poll(now)?))).collect();
        said.into_iter().for_each(|(number, datagram)| self.put(number, true, datagram));
        let (come, stay) = std::mem::take(&mut self.on_way).into_iter().partition(|(due, ..)| *due <= now);
        self.on_way = stay;
        let come: Vec<_> = come;
        for (_, number, to_relay, datagram) in come {
            if to_relay {
                self.asked_bytes += datagram.len();
                if let Some(answer) = self.relay.handle(now, host(number), &datagram) {
                    self.answered_bytes += answer.len();
                    self.put(number, false, answer);
                }
            } else if let Some(site) = self.sites.get_mut(&number) {
                assert!(site.handle(now, &datagram));
            }
        }
    }
}
