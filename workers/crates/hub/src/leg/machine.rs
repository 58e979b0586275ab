use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Machine, Micros, Now, Sequence, SiteName};
use downburst_vcmtp::{LegRate, Sender, SenderInput, SenderKey, SenderOutput, SenderStats};

use super::adaptation::Adaptation;
use super::api::{CurrentKeys, LegInput, LegOutput, LegSession, LegSessions, LegSettings};
use super::keys::{KeyStep, Keys};
use super::reading::LogReading;

/// A multicast leg: reads the feed's log ahead of its rate, drives the sender, and adapts to its sites.
///
/// | input or time | asks for |
/// |---|---|
/// | `Head`, while the sender has little to do | `Read` of new products |
/// | the pacer is open | `FirstByte`, `Datagram`, `Sent` |
/// | `Nak` | `Repair` over the same channel, `Gone`, or symbols to the group |
/// | a quarter of a second | `Look`; then `Rate`, `DatagramBytes`, `TakeOff`, `Trial` |
/// | `RightsChanged`, half a second, sooner while a key is handed over | `Look`; then `Barred` |
/// | a site that knows the key is barred, or the key is old | `Look`, `Draw` |
/// | `Drawn` | `Keys`, `Look`, `TellKey` for each session; `Keys` again when the sender takes the key |
///
/// A requested read continues while datagrams leave; products that were read are sent by class. Losses are judged
/// together with other due work, so that an idle leg sleeps.
pub struct Leg<C> {
    sender: Sender,
    log: LogReading,
    keys: Keys,
    adaptation: Adaptation<C>,
    /// A look was requested and is not complete.
    looking: bool,
    /// The highest product whose bytes were all sent.
    sent_to: Sequence,
    outputs: VecDeque<LegOutput<C>>,
}

impl<C: Clone> Leg<C> {
    /// Starts a life of a leg with the open sessions.
    pub fn new(now: Micros, settings: LegSettings, open: &BTreeMap<SiteName, LegSession>) -> Self {
        let LegSettings { mut sender, loss_quantile, interface } = settings;
        sender.datagram_bytes = interface.datagram_bytes(open);
        let rate = LegRate::new(sender.rate_bps, loss_quantile);
        Self {
            log: LogReading::new(sender.after),
            keys: Keys::new(now, sender.key.clone()),
            adaptation: Adaptation::new(rate, interface, sender.datagram_bytes),
            sender: Sender::new(sender),
            looking: false,
            sent_to: Sequence(0),
            outputs: VecDeque::new(),
        }
    }

    /// The key for receivers to verify this leg's proofs; `None` if it makes none.
    pub fn sender_key(&self) -> Option<SenderKey> {
        self.sender.key()
    }

    /// Counters since the start.
    pub fn stats(&self) -> SenderStats {
        self.sender.stats()
    }

    /// All products up to here were sent once.
    pub fn sent_to(&self) -> Sequence {
        if self.sender.backlog_products() == 0 {
            self.log.cursor()
        } else {
            self.sent_to.max(self.log.began())
        }
    }

    /// The present rate, in Ethernet-frame bits per second.
    pub fn rate_bps(&self) -> u64 {
        self.adaptation.rate_bps()
    }

    /// Product bytes that were read but not yet sent.
    pub fn backlog_bytes(&self) -> u64 {
        self.sender.backlog_bytes()
    }

    /// Answers [`LegOutput::Look`].
    pub fn look(&mut self, now: Now, sessions: &LegSessions<'_>) {
        self.looking = false;
        let sealed = self.sender.stats().datagrams;
        self.outputs.extend(self.keys.look(now, sessions, sealed));
        if self.adaptation.is_due(now.monotonic) {
            self.outputs.extend(self.adaptation.look(now, sessions.open, &mut self.sender));
        }
    }

    /// Does the work without urgency: keys and the judgement of losses; false if nothing is due.
    fn attend(&mut self, now: Now) -> bool {
        if self.looking {
            return false;
        }
        match self.keys.poll(now) {
            Some(KeyStep::Look) => self.ask_for_look(),
            Some(KeyStep::Draw) => {
                self.ask_for_look();
                self.outputs.push_back(LegOutput::Draw);
            }
            Some(KeyStep::Announce(keys)) => {
                self.outputs.push_back(LegOutput::Keys(keys));
                self.ask_for_look();
            }
            Some(KeyStep::Use(key)) => {
                self.outputs.push_back(LegOutput::Keys(CurrentKeys::first(key.clone())));
                self.sender.handle(now, SenderInput::Key(key));
            }
            None if self.adaptation.is_due(now.monotonic) => self.ask_for_look(),
            None => return false,
        }
        true
    }

    fn ask_for_look(&mut self) {
        self.looking = true;
        self.outputs.push_back(LegOutput::Look);
    }

    fn said(&mut self, output: SenderOutput) -> LegOutput<C> {
        match output {
            SenderOutput::Datagram(datagram) => LegOutput::Datagram(datagram),
            SenderOutput::FirstByte(sequence) => LegOutput::FirstByte(sequence),
            SenderOutput::Sent(sequence) => {
                self.sent_to = self.sent_to.max(sequence);
                LegOutput::Sent(sequence)
            }
            SenderOutput::Repair { site: session, packet, payload } => {
                let channel = self.adaptation.channel_of(session);
                LegOutput::Repair { session, channel, packet, payload }
            }
            SenderOutput::Gone { site: session, packets } => LegOutput::Gone { session, packets },
        }
    }
}

impl<C: Clone> Machine for Leg<C> {
    type Input = LegInput<C>;
    type Output = LegOutput<C>;

    fn handle(&mut self, now: Now, input: LegInput<C>) {
        match input {
            LegInput::Head(head) => self.log.grown(head),
            LegInput::Product { info, bytes } => {
                self.sender.handle(now, SenderInput::Product { info, bytes });
            }
            LegInput::ReadTo(sequence) => self.log.read_to(sequence),
            LegInput::ReadFailed => self.log.failed(),
            LegInput::Nak { session, request, channel } => {
                let sent = self.sender.stats().packets;
                self.adaptation.asked(now.monotonic, session, &request, channel, sent);
                self.sender.handle(now, SenderInput::Nak { site: session, request });
            }
            LegInput::Reader { session, secret } => {
                self.adaptation.reader(now.monotonic, session);
                self.sender.handle(now, SenderInput::Reader { site: session, secret });
            }
            LegInput::Forged => self.sender.handle(now, SenderInput::Forged),
            LegInput::Listener => self.sender.handle(now, SenderInput::Listener),
            LegInput::Rate(rate_bps) => {
                self.adaptation.ask_rate(rate_bps);
                self.sender.handle(now, SenderInput::Rate(rate_bps));
            }
            LegInput::Cap(rate_bps) => {
                let rate_bps = self.adaptation.cap(rate_bps);
                self.sender.handle(now, SenderInput::Rate(rate_bps));
            }
            LegInput::Deadline(deadline) => self.sender.handle(now, SenderInput::Deadline(deadline)),
            LegInput::Mtu(mtu_bytes) => self.adaptation.mtu(mtu_bytes),
            LegInput::KeysTold { site, credential } => self.keys.told(now, site, credential),
            LegInput::CredentialRenewed { site, former, credential } => {
                self.keys.renewed(&site, &former, credential);
            }
            LegInput::KeyTaken { site, key_id } => self.keys.taken(now, site, key_id),
            LegInput::RightsChanged => self.keys.rights_changed(),
            LegInput::Drawn(secret) => self.keys.drawn(now, secret),
        }
    }

    fn poll(&mut self, now: Now) -> Option<LegOutput<C>> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            if self.log.due(&self.sender) {
                return Some(LegOutput::Read(self.log.next()));
            }
            if let Some(output) = self.sender.poll(now) {
                return Some(self.said(output));
            }
            if !self.attend(now) {
                return None;
            }
        }
    }

    fn deadline(&self) -> Option<Micros> {
        if !self.outputs.is_empty() || self.log.due(&self.sender) {
            return Some(Micros(0));
        }
        let keys = self.keys.deadline().filter(|_| !self.looking);
        self.sender.deadline().into_iter().chain(keys).min()
    }
}
