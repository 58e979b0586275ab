use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{Machine, Micros, ProductInfo, RangeSet, Sequence};
use downburst_vcmtp::{
    HubChannel, LegKey, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, RepairChannel, Request,
    SenderKey, SiteSecret,
};

use super::{LEG, LEG_EPOCH, PlannedReceiver, ReceiverReport, SESSION_OVERHEAD_BYTES, SOCKET_BYTES, clock};
use crate::net::{Dice, LinkConfig, SimulatedLink, Stream};

/// Each product with its predecessor's sequence on the leg, its description and its bytes.
pub(super) type Products = BTreeMap<Sequence, (Sequence, ProductInfo, Bytes)>;

/// The group's key, the sender's key, and whether proofs have MACs while the group is small.
pub(super) type Keys<'a> = (&'a LegKey, Option<SenderKey>, bool);

/// The secret with which a site checks MACs.
pub(super) fn secret_of(number: u64) -> SiteSecret {
    let mut secret = [8; 32];
    secret.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
    SiteSecret { slot: u16::try_from(number).unwrap_or(u16::MAX), secret }
}

/// A receiver, its paths to and from the sender, and its products so far.
pub(super) struct Site {
    pub(super) number: u64,
    plan: PlannedReceiver,
    pub(super) link: SimulatedLink<Bytes>,
    pub(super) up: Stream<Request>,
    pub(super) down: Stream<ReceiverInput>,
    /// The paths of the repair channel's datagrams, and the hub's end of the channel.
    asks: SimulatedLink<Bytes>,
    answers: SimulatedLink<Bytes>,
    hub: HubChannel,
    socket: VecDeque<Bytes>,
    socket_bytes: u64,
    pub(super) receiver: Receiver,
    partial: BTreeMap<Sequence, (Vec<u8>, RangeSet)>,
    given_up: RangeSet,
    report: ReceiverReport,
    faults: Vec<String>,
}

impl Site {
    pub(super) fn new(number: u64, plan: PlannedReceiver, seed: u64, keys: Keys<'_>) -> Self {
        let mut config = ReceiverConfig::new(LEG, LEG_EPOCH, keys.0.clone(), seed ^ number << 32);
        config.sender_key = keys.1;
        config.proof_secret = keys.2.then(|| secret_of(number));
        config.retry_wait = config.retry_wait.max(Micros(plan.session_delay.0 * 3));
        let id = u32::try_from(number).unwrap_or(u32::MAX);
        let channel = RepairChannel { id, port: 1, secret: [9; 32], cipher: keys.0.cipher };
        config.channel = plan.channel.map(|_| channel.clone());
        let way =
            |name| SimulatedLink::new(plan.channel.unwrap_or_default(), Dice::new(seed, number << 32 | name));
        let mut receiver = Receiver::new(config);
        receiver.handle(clock(Micros(0)), ReceiverInput::RoundTrip(Micros(plan.session_delay.0 * 2)));
        Self {
            number,
            link: SimulatedLink::new(plan.link, Dice::new(seed, number)),
            up: Stream::new(plan.session_delay, None),
            down: Stream::new(plan.session_delay, plan.session_rate_bps),
            asks: way(1),
            answers: way(2),
            hub: HubChannel::new(&channel),
            socket: VecDeque::new(),
            socket_bytes: 0,
            receiver,
            partial: BTreeMap::new(),
            given_up: RangeSet::new(),
            report: ReceiverReport::default(),
            faults: Vec::new(),
            plan,
        }
    }

    pub(super) fn lives(&self, now: Micros) -> bool {
        self.plan.dies.is_none_or(|dies| now < dies)
    }

    pub(super) fn listens(&self, now: Micros) -> bool {
        self.lives(now) && now >= self.plan.joins
    }

    /// Makes the network clean from here on.
    pub(super) fn mend(&mut self) {
        for link in [&mut self.link, &mut self.asks, &mut self.answers] {
            link.change(LinkConfig::default());
        }
    }

    /// Cuts the site off: the hub no longer hears it.
    pub(super) fn cut(&mut self) {
        self.up.cut();
        while self.asks.receive(Micros(u64::MAX)).is_some() {}
    }

    /// Returns the next request that has reached the hub by a datagram; each accepted datagram is answered.
    pub(super) fn heard_by_hub(&mut self, now: Micros) -> Option<Request> {
        while let Some(datagram) = self.asks.receive(now) {
            let Some(heard) = self.hub.hear(now, datagram) else { continue };
            self.answer(now, heard.answer);
            if heard.request.is_some() {
                return heard.request;
            }
        }
        None
    }

    pub(super) fn repair_by_channel(&mut self, now: Micros, packet: u64, payload: &[u8]) {
        if let Some(datagram) = self.hub.repair(packet, payload) {
            self.answer(now, datagram);
        }
    }

    fn answer(&mut self, now: Micros, datagram: Bytes) {
        let bytes = datagram.len() as u64 + 46;
        self.answers.send(now, datagram, bytes);
    }

    fn pause_ends(&self, now: Micros) -> Option<Micros> {
        self.plan.paused.filter(|(from, to)| (*from..*to).contains(&now)).map(|(_, to)| to)
    }

    pub(super) fn next_event(&self, now: Micros) -> Option<Micros> {
        if !self.lives(now) {
            return None;
        }
        if let Some(ends) = self.pause_ends(now) {
            return self.link.deadline().into_iter().chain([ends]).min();
        }
        let pending = (!self.socket.is_empty()).then_some(now);
        let streams = self.up.deadline().into_iter().chain(self.down.deadline());
        let streams = streams.chain(self.asks.deadline()).chain(self.answers.deadline());
        streams.chain(self.link.deadline()).chain(self.receiver.deadline()).chain(pending).min()
    }

    pub(super) fn step(&mut self, now: Micros, products: &Products) {
        if !self.lives(now) {
            return;
        }
        while let Some(datagram) = self.link.receive(now) {
            let bytes = datagram.len() as u64;
            if self.socket_bytes + bytes <= SOCKET_BYTES {
                self.socket_bytes += bytes;
                self.socket.push_back(datagram);
            }
        }
        if self.pause_ends(now).is_some() {
            return;
        }
        while let Some(datagram) = self.socket.pop_front() {
            self.socket_bytes -= datagram.len() as u64;
            self.tell(now, ReceiverInput::Datagram(datagram.into()), products);
        }
        while let Some(datagram) = self.answers.receive(now) {
            self.tell(now, ReceiverInput::Datagram(datagram.into()), products);
        }
        while let Some(input) = self.down.receive(now) {
            self.tell(now, input, products);
        }
        self.poll(now, products);
    }

    fn tell(&mut self, now: Micros, input: ReceiverInput, products: &Products) {
        self.receiver.handle(clock(now), input);
        self.poll(now, products);
    }

    fn poll(&mut self, now: Micros, products: &Products) {
        while let Some(output) = self.receiver.poll(clock(now)) {
            self.take(now, output, products);
        }
        if self.receiver.deadline().is_some_and(|due| due <= now) {
            self.fault(format!("the receiver's deadline stays at {now:?}"));
        }
    }

    fn take(&mut self, now: Micros, output: ReceiverOutput, products: &Products) {
        match output {
            ReceiverOutput::Joined { after } => self.report.joined = Some(after),
            ReceiverOutput::Announce { previous, info } => self.announce(now, previous, &info, products),
            ReceiverOutput::Block { sequence, offset, bytes } => {
                self.block(now, sequence, offset, &bytes, products);
            }
            ReceiverOutput::Head { previous, head } => {
                let between = (previous.0 + 1).max(1)..=head.0;
                if products.keys().any(|sequence| between.contains(&sequence.0)) {
                    self.fault(format!("{head:?} was said to follow {previous:?}"));
                }
            }
            ReceiverOutput::Nak(request) => {
                self.up.send(now, request, SESSION_OVERHEAD_BYTES);
            }
            ReceiverOutput::GaveUp(packets) => {
                packets.iter().for_each(|(first, last)| {
                    self.given_up.insert(first, last);
                });
            }
            ReceiverOutput::Ask(datagram) => {
                let bytes = datagram.len() as u64 + 46;
                self.asks.send(now, datagram, bytes);
            }
            ReceiverOutput::TooSlow => self.report.too_slow = true,
            ReceiverOutput::Silent | ReceiverOutput::Channel { .. } => {}
            ReceiverOutput::Forged => self.fault("a forgery was seen where nobody forges".to_owned()),
        }
    }

    fn announce(&mut self, now: Micros, previous: Sequence, info: &ProductInfo, products: &Products) {
        let sequence = info.key.sequence;
        match products.get(&sequence) {
            Some((before, sent, _)) if *before == previous && sent == info => {}
            _ => self.fault(format!("{sequence:?} was announced behind {previous:?}, or wrongly")),
        }
        let buffer = vec![0; usize::try_from(info.size).unwrap_or(0)];
        if self.partial.insert(sequence, (buffer, RangeSet::new())).is_some() {
            self.fault(format!("{sequence:?} was announced twice"));
        }
        self.finish_product(now, sequence, products);
    }

    fn block(&mut self, now: Micros, sequence: Sequence, offset: u64, bytes: &[u8], products: &Products) {
        let Some((buffer, received)) = self.partial.get_mut(&sequence) else {
            return self.fault(format!("a block of {sequence:?}, which is not announced or whole"));
        };
        let end = offset + bytes.len() as u64;
        let place = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(target) = buffer.get_mut(place..place.saturating_add(bytes.len())) else {
            return self.fault(format!("a block of {sequence:?} at {offset}, beyond its end"));
        };
        target.copy_from_slice(bytes);
        if end > offset && received.insert(offset, end - 1) != bytes.len() as u64 {
            self.fault(format!("a block of {sequence:?} at {offset} came twice"));
        }
        self.finish_product(now, sequence, products);
    }

    fn finish_product(&mut self, now: Micros, sequence: Sequence, products: &Products) {
        let whole = |(buffer, received): &(Vec<u8>, RangeSet)| received.count() == buffer.len() as u64;
        if !self.partial.get(&sequence).is_some_and(whole) {
            return;
        }
        let bytes = self.partial.remove(&sequence).map(|(buffer, _)| buffer);
        if products.get(&sequence).map(|(_, _, sent)| sent.as_ref()) != bytes.as_deref() {
            self.fault(format!("{sequence:?} arrived with other bytes"));
        }
        self.report.whole.insert(sequence, now);
    }

    /// True if all products are complete, or packets were given up and the session is idle, and no datagram waits.
    pub(super) fn is_settled(&self, now: Micros, products: &Products) -> bool {
        let Some(joined) = self.report.joined else { return false };
        let all = products.range(joined..).filter(|(sequence, _)| **sequence > joined).count();
        let quiet = self.up.deadline().is_none() && self.down.deadline().is_none();
        let explained = self.report.whole.len() == all || (!self.given_up.is_empty() && quiet);
        explained && self.pause_ends(now).is_none() && self.socket.is_empty()
    }

    pub(super) fn finish(mut self, products: &Products) -> (ReceiverReport, Vec<String>) {
        let joined = self.report.joined.unwrap_or(Sequence(u64::MAX));
        let expected = products.keys().filter(|sequence| **sequence > joined);
        self.report.lacking =
            expected.filter(|sequence| !self.report.whole.contains_key(sequence)).copied().collect();
        self.report.stats = self.receiver.stats();
        self.report.link = self.link.stats();
        if self.plan.dies.is_none() {
            if self.report.joined.is_none() {
                self.fault("it never joined".to_owned());
            }
            if !self.report.lacking.is_empty() && self.given_up.is_empty() {
                self.fault(format!("it lacks {:?} and gave nothing up", self.report.lacking));
            }
        }
        (self.report, self.faults)
    }

    fn fault(&mut self, sentence: String) {
        self.faults.push(format!("site {}: {sentence}", self.number));
    }
}
