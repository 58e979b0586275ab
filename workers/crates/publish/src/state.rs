//! The notifications on their way, from both sides of the thread.
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, PubAckReason};
use rumqttc::v5::{AsyncClient, Event};

use crate::sentences;

/// The end of a notification's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The broker has it for a subscriber.
    Taken,
    /// The broker has refused it; it may take it later.
    Refused(String),
    /// The broker will never take it.
    Invalid(String),
    /// The connection ended before the answer.
    Lost(String),
}

/// The state of an outlet.
#[derive(Default)]
pub(crate) struct State {
    /// While connected.
    client: Option<AsyncClient>,
    /// Given to the client, in this order, and not yet sent.
    submitted: VecDeque<(u64, Instant)>,
    /// Sent, by the numbers of their packets.
    sent: BTreeMap<u16, (u64, Instant)>,
    answers: Vec<(u64, Answer)>,
    /// The reason for having no connection; empty while connected.
    fault: String,
}

impl State {
    pub(crate) fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    pub(crate) fn fault(&self) -> &str {
        &self.fault
    }

    pub(crate) fn take_answers(&mut self) -> Vec<(u64, Answer)> {
        std::mem::take(&mut self.answers)
    }

    /// Gives a notification to the client; false without a connection, and while too many are under way.
    pub(crate) fn submit(&mut self, token: u64, topic: &str, payload: &[u8]) -> bool {
        let Some(client) = &self.client else { return false };
        if self.submitted.len() + self.sent.len() >= MOST {
            return false;
        }
        let given = client.try_publish(topic, QoS::AtLeastOnce, false, payload.to_vec());
        if given.is_ok() {
            self.submitted.push_back((token, Instant::now()));
        }
        given.is_ok()
    }

    /// Takes what happened on the connection; true if the caller should look.
    pub(crate) fn heard(&mut self, event: &Event, client: &AsyncClient) -> bool {
        match event {
            Event::Incoming(Packet::ConnAck(_)) => {
                self.client = Some(client.clone());
                self.fault.clear();
                true
            }
            Event::Outgoing(Outgoing::Publish(number)) => {
                // Packets are sent in the order in which they were given.
                let first = self.submitted.pop_front();
                self.sent.extend(first.map(|one| (*number, one)));
                false
            }
            Event::Incoming(Packet::PubAck(answer)) => {
                let Some((token, _)) = self.sent.remove(&answer.pkid) else { return false };
                self.answers.push((token, answer_of(answer.reason)));
                true
            }
            _ => false,
        }
    }

    /// True if the broker owes an answer for too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let under_way = self.submitted.iter().chain(self.sent.values());
        under_way.into_iter().any(|(_, since)| now.saturating_duration_since(*since) > ANSWER)
    }

    /// Ends the connection: what was under way is lost.
    pub(crate) fn lost(&mut self, fault: &str) {
        fault.clone_into(&mut self.fault);
        self.client = None;
        let sent = std::mem::take(&mut self.sent).into_values();
        let all = sent.chain(std::mem::take(&mut self.submitted));
        self.answers.extend(all.map(|(token, _)| (token, Answer::Lost(fault.to_owned()))));
    }
}

/// Only 0 is an announcement: with 16 the broker has thrown the notification away.
fn answer_of(reason: PubAckReason) -> Answer {
    match reason {
        PubAckReason::Success => Answer::Taken,
        PubAckReason::NoMatchingSubscribers => Answer::Refused(sentences::NO_SUBSCRIBER.to_owned()),
        PubAckReason::TopicNameInvalid | PubAckReason::PayloadFormatInvalid => {
            Answer::Invalid(sentences::refusal(reason))
        }
        _ => Answer::Refused(sentences::refusal(reason)),
    }
}

/// Limit of notifications under way.
pub(crate) const MOST: usize = 100;
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use rumqttc::v5::MqttOptions;
    use rumqttc::v5::mqttbytes::v5::{ConnAck, ConnectReturnCode, PubAck};

    use super::*;

    fn connected() -> (State, AsyncClient, rumqttc::v5::EventLoop) {
        let (client, events) = AsyncClient::new(MqttOptions::new("a", "localhost", 1), MOST);
        let mut state = State::default();
        assert!(!state.submit(0, "t", b""), "not connected");
        let code = ConnectReturnCode::Success;
        let connack = ConnAck { session_present: false, code, properties: None };
        assert!(state.heard(&Event::Incoming(Packet::ConnAck(connack)), &client));
        (state, client, events)
    }

    fn answer(number: u16, reason: PubAckReason) -> Event {
        Event::Incoming(Packet::PubAck(PubAck { reason, ..PubAck::new(number, None) }))
    }

    #[test]
    fn answers_belong_to_the_notifications_in_their_order() {
        let (mut state, client, _events) = connected();
        for token in 10..14 {
            assert!(state.submit(token, "t", b"x"));
            state.heard(&Event::Outgoing(Outgoing::Publish((token - 9) as u16)), &client);
        }
        assert!(!state.heard(&answer(9, PubAckReason::Success), &client), "of no notification");
        state.heard(&answer(2, PubAckReason::NotAuthorized), &client);
        state.heard(&answer(1, PubAckReason::Success), &client);
        state.heard(&answer(3, PubAckReason::TopicNameInvalid), &client);
        state.lost("it ended");
        let found = state.take_answers();
        assert_eq!(found[0], (11, Answer::Refused("the broker refuses it: not authorized (135)".to_owned())));
        assert_eq!(found[1], (10, Answer::Taken));
        assert!(matches!(&found[2], (12, Answer::Invalid(_))));
        assert_eq!(found[3], (13, Answer::Lost("it ended".to_owned())));
        assert_eq!((state.is_connected(), state.fault()), (false, "it ended"));
    }

    #[test]
    fn no_more_are_under_way_than_agreed_and_none_for_ever() {
        let (mut state, _client, _events) = connected();
        assert!((0..200).filter(|token| state.submit(*token, "t", b"x")).count() == MOST);
        let now = Instant::now();
        assert!(!state.is_overdue(now) && state.is_overdue(now + ANSWER + Duration::from_secs(5)));
    }
}
