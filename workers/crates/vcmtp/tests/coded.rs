//! Coded repair of blocks: a sender and receivers that lose selected packets.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
mod common;

use bytes::Bytes;
use common::*;
use downburst_model::{Class, Machine, RangeSet};
use downburst_vcmtp::{
    Receiver, ReceiverInput, Request, Sender, SenderConfig, SenderInput, SenderOutput, SymbolsHeard,
};

/// A group on a network without delay. Requests and answers of single sites are never lost.
struct Group {
    sender: Sender,
    receivers: Vec<(Receiver, Taken)>,
    now: u64,
    /// Numbers of packets repaired to single sites.
    alone: Vec<(u64, u64)>,
    /// Datagrams that were coded repairs.
    symbols: u64,
}

impl Group {
    fn new(receivers: usize, rate_bps: u64) -> Self {
        Self::of(receivers, sender_config(rate_bps))
    }

    fn of(receivers: usize, config: SenderConfig) -> Self {
        let receiver = || (Receiver::new(receiver_config()), Taken::default());
        let mut group = Self {
            sender: Sender::new(config),
            receivers: (0..receivers).map(|_| receiver()).collect(),
            now: 0,
            alone: vec![],
            symbols: 0,
        };
        group.sender.handle(at(0), SenderInput::Members(receivers as u64));
        group.run(1_000, &|_, _| false);
        group
    }

    /// Advances time; `loses` decides if a receiver loses a packet or symbol of that number.
    fn run(&mut self, micros: u64, loses: &dyn Fn(usize, u64) -> bool) {
        let until = self.now + micros;
        loop {
            self.settle(loses);
            let receivers = self.receivers.iter().filter_map(|(receiver, _)| receiver.deadline());
            match receivers.chain(self.sender.deadline()).min() {
                Some(due) if due.0 <= until => self.now = due.0.max(self.now),
                _ => break,
            }
        }
        self.now = until;
    }

    fn settle(&mut self, loses: &dyn Fn(usize, u64) -> bool) {
        loop {
            let outputs = drain(&mut self.sender, at(self.now));
            for site in 0..self.receivers.len() {
                let (receiver, taken) = &mut self.receivers[site];
                let asked = taken.requests.len();
                taken.poll(receiver, self.now);
                for request in taken.requests.iter().skip(asked).cloned() {
                    self.sender.handle(at(self.now), SenderInput::Nak { site: site as u64, request });
                }
            }
            if outputs.is_empty() && self.sender.deadline().is_none_or(|due| due.0 > self.now) {
                return;
            }
            outputs.into_iter().for_each(|output| self.carry(output, loses));
        }
    }

    fn carry(&mut self, output: SenderOutput, loses: &dyn Fn(usize, u64) -> bool) {
        match output {
            SenderOutput::Datagram(datagram) => self.multicast(&datagram.freeze(), loses),
            SenderOutput::Repair { site, packet, payload } => {
                self.alone.push((site, packet));
                let (receiver, taken) = &mut self.receivers[site as usize];
                taken.input(receiver, self.now, ReceiverInput::Repair { packet, payload });
            }
            SenderOutput::Gone { .. } => panic!("nothing leaves the window here"),
            _ => {}
        }
    }

    fn multicast(&mut self, datagram: &Bytes, loses: &dyn Fn(usize, u64) -> bool) {
        let number = number(datagram);
        // Notices have the two highest bits set.
        self.symbols += u64::from(number >> 62 == 0b10);
        for (site, (receiver, taken)) in self.receivers.iter_mut().enumerate() {
            if !loses(site, number) {
                taken.feed(receiver, self.now, datagram);
            }
        }
    }

    fn send(&mut self, sequence: u64, size: usize, class: Class) {
        self.sender.handle(at(self.now), product(sequence, size, class));
    }

    fn assert_whole(&self, sequence: u64, size: usize) {
        for (site, (receiver, taken)) in self.receivers.iter().enumerate() {
            assert!(taken.is_whole(sequence, size), "site {site}: {:?}", receiver.stats());
            assert_eq!(taken.given_up, RangeSet::new());
        }
    }
}

const SIZE: usize = 1_200_000;

#[test]
fn what_several_sites_lost_of_a_block_costs_what_the_second_worst_lost() {
    let mut group = Group::new(5, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    // Site n loses 8 + n packets of the 840, each others.
    let loses = |site: usize, number: u64| {
        number >> 63 == 0
            && (10..10 + 90 * (8 + site as u64)).contains(&number)
            && number % 90 == site as u64 * 7
    };
    group.run(1_000_000, &loses);
    group.assert_whole(1, SIZE);
    let lost: Vec<u64> = group.receivers.iter().map(|(receiver, _)| receiver.stats().missed).collect();
    assert_eq!(lost, [8, 9, 10, 10, 10], "what the rule above makes of 840 packets");
    assert_eq!((group.symbols, group.alone.len()), (10, 0));
    assert!(group.receivers.iter().all(|(receiver, _)| receiver.stats().decoded >= 8));
}

#[test]
fn where_loss_is_steady_symbols_come_before_anybody_asks_and_where_there_is_none_nothing_does() {
    // Each site loses a packet of fifty, each others.
    let lossy = |site: usize, number: u64| number >> 63 == 0 && number % 50 == site as u64 * 6;
    let play = |most_parity: f64| {
        let mut group = Group::of(7, SenderConfig { most_parity, ..sender_config(100_000_000) });
        for sequence in 1..=60 {
            group.send(sequence, SIZE, Class::Grid);
            group.run(150_000, &lossy);
        }
        let (sent, began) = (group.sender.stats().coded_repair_bytes, group.now);
        group.send(61, SIZE, Class::Grid);
        while !group.receivers.iter().all(|(_, taken)| taken.is_whole(61, SIZE)) {
            group.run(1_000, &lossy);
        }
        (sent, group.now - began, group)
    };
    let ((answered, without_us, _), (sent, with_us, mut group)) = (play(0.0), play(0.05));
    println!("whole after {with_us} us, {without_us} us without; symbols {sent} B, {answered} B without");
    assert!(with_us + 10_000 < without_us, "{with_us} us, {without_us} us without");
    assert!(sent * 4 < answered * 5, "{sent} bytes of symbols, {answered} without parity");
    let (well, before) = (|_: usize, _: u64| false, group.symbols);
    for sequence in 62..=200 {
        group.send(sequence, SIZE, Class::Grid);
        group.run(110_000, &well);
    }
    let (later, at_last) = (group.symbols - before, group.symbols);
    assert!(later < 139 * 840 / 100, "{later} symbols of 116,760 packets while the share falls");
    group.send(201, SIZE, Class::Grid);
    group.run(110_000, &well);
    assert!(group.symbols <= at_last + 1, "nothing is sent that nobody needs");
}

#[test]
fn one_site_with_losses_is_served_alone_and_costs_the_group_nothing() {
    let mut group = Group::new(7, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    group.run(1_000_000, &|site, number| site == 3 && number % 20 == 19);
    group.assert_whole(1, SIZE);
    assert_eq!(group.symbols, 0);
    assert!(group.alone.iter().all(|(site, _)| *site == 3) && group.alone.len() >= 42, "{:?}", group.alone);
    assert_eq!(group.sender.stats().group_repair_bytes, 0);
}

#[test]
fn what_all_sites_lost_goes_out_once() {
    let mut group = Group::new(40, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    group.run(1_000_000, &|_, number| number >> 63 == 0 && number % 50 == 49);
    group.assert_whole(1, SIZE);
    assert_eq!((group.symbols, group.alone.len()), (17, 0));
}

#[test]
fn lost_symbols_are_made_up_by_others() {
    let mut group = Group::new(6, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    let loses = |site: usize, number: u64| match number >> 63 {
        0 => number % 61 == site as u64,
        _ => number % 4 == site as u64 % 4,
    };
    group.run(3_000_000, &loses);
    group.assert_whole(1, SIZE);
    assert!(group.symbols > 14 && group.symbols < 30, "{}", group.symbols);
}

#[test]
fn who_gets_no_symbol_at_all_gets_packets_in_the_end() {
    let mut group = Group::new(3, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    group.run(20_000_000, &|site, number| {
        if number >> 63 == 0 { number % 50 == site as u64 } else { site == 1 }
    });
    group.assert_whole(1, SIZE);
    assert!(group.alone.iter().filter(|(site, _)| *site == 1).count() >= 16);
    assert!(group.symbols < 100, "{}", group.symbols);
}

#[test]
fn a_lost_tail_is_repaired_soon_after_the_leg_fell_idle() {
    let mut group = Group::new(3, 100_000_000);
    group.send(1, 100_000, Class::Grid);
    group.run(150_000, &|site, number| number >> 63 == 0 && number + site as u64 == 72);
    group.assert_whole(1, 100_000);
}

#[test]
fn small_and_urgent_products_wait_for_no_block() {
    for (size, class) in [(2_000, Class::Grid), (200_000, Class::Warning)] {
        let mut group = Group::new(3, 100_000_000);
        group.send(1, 5_000_000, Class::Bulk);
        group.run(20_000, &|_, _| false);
        group.send(2, size, class);
        let first = group.sender.stats().datagrams;
        // Two sites lose one each of its first packets, on a leg that is busy for long.
        group.run(60_000, &|site, number| site < 2 && number == first + 1 + site as u64);
        group.assert_whole(2, size);
        assert_eq!(group.symbols, 0);
    }
}

#[test]
fn a_site_that_joins_within_a_block_is_repaired_too() {
    let mut group = Group::new(3, 100_000_000);
    group.send(1, SIZE, Class::Grid);
    group.run(50_000, &|site, _| site == 2);
    group.receivers[2] = (Receiver::new(receiver_config()), Taken::default());
    group.send(2, SIZE, Class::Grid);
    group.run(3_000_000, &|site, number| number >> 63 == 0 && number % 40 == site as u64);
    for (receiver, taken) in &group.receivers {
        assert!(taken.is_whole(2, SIZE), "{:?}", receiver.stats());
    }
}

/// The answers of a sender of one large product to a third request for ten packets, after two others drew ten
/// symbols.
fn answers_to(late: impl Fn(u64) -> Request) -> usize {
    let mut sender = Sender::new(sender_config(100_000_000));
    sender.handle(at(0), SenderInput::Members(3));
    sender.handle(at(1_000), product(1, SIZE, Class::Grid));
    let sent = run(&mut sender, 1_000, 150_000);
    let heard = datagrams(&sent).len() as u64;
    let request = || Request {
        packets: [(101, 110)].into_iter().collect(),
        heard: Some(heard),
        symbols: vec![],
        unanswered: false,
        losses: None,
    };
    for site in [1, 2] {
        sender.handle(at(150_000), SenderInput::Nak { site, request: request() });
    }
    let repaired = run(&mut sender, 150_000, 400_000);
    let (symbols, heads): (Vec<u64>, Vec<u64>) =
        datagrams(&repaired).iter().map(number).partition(|number| number >> 63 == 1);
    assert_eq!(symbols.len(), 10);
    let last = heads.into_iter().max().unwrap();
    sender.handle(at(400_000), SenderInput::Nak { site: 3, request: late(last) });
    let alone = |(_, output): &(u64, SenderOutput)| matches!(output, SenderOutput::Repair { .. });
    run(&mut sender, 400_000, 800_000).iter().filter(|said| alone(said)).count()
}

fn number(datagram: &Bytes) -> u64 {
    u64::from_be_bytes(datagram[6..14].try_into().unwrap())
}

#[test]
fn a_request_counts_for_what_was_lacking_after_the_symbols_it_could_not_know_of() {
    let request = |heard, symbols| Request {
        packets: [(101, 110)].into_iter().collect(),
        heard: Some(heard),
        symbols,
        unanswered: false,
        losses: None,
    };
    let knowing = |made| vec![SymbolsHeard { block: 1, made }];
    assert_eq!(answers_to(|_| request(840, vec![])), 0, "it was made before the symbols left");
    assert_eq!(answers_to(|last| request(last, vec![])), 10, "it was made after them: all were lost");
    assert_eq!(answers_to(|_| request(840, knowing(10))), 10, "the last of them told of the others");
    assert_eq!(answers_to(|_| request(840, knowing(4))), 4, "six may be on their way");
    assert_eq!(answers_to(|_| request(840, knowing(9_999))), 10, "whoever claims more than was made");
}
