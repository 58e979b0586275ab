//! Sentences for operators about brokers that can't be used.

use std::sync::{Arc, Mutex, PoisonError};

use downburst_log::LogError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A client's last report about its connections.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<String>>);

impl Heard {
    /// A report that all brokers are down says less than the report about one of them.
    pub(crate) fn hear(&self, reason: &str) {
        if !reason.contains("brokers are down") {
            reason.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn last(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One sentence about brokers that did not carry out a request.
pub(crate) fn explained(servers: &str, action: &str, error: &KafkaError, heard: &Heard) -> LogError {
    let (said, told) = (heard.last(), error.to_string());
    let meant = MEANINGS.iter().find(|(part, _)| said.contains(part) || told.contains(part));
    let sentence = match (meant, error.rdkafka_error_code()) {
        (Some((_, meaning)), _) => format!("Kafka at {servers} {meaning}"),
        (None, Some(code)) if NO_ANSWER.contains(&code) => {
            let does = "does not answer; start it, correct kafka.servers, or set kafka.security as it wants";
            format!("Kafka at {servers} {does}")
        }
        (None, _) => format!("Kafka at {servers} could not {action}: {told}; check the brokers' logs"),
    };
    LogError::Store { sentence }
}

/// One sentence about a topic that can't be used.
pub(crate) fn refused(topic: &str, what: &str) -> LogError {
    LogError::Store { sentence: format!("the topic {topic} {what}") }
}

const NO_ANSWER: [RDKafkaErrorCode; 5] = [
    RDKafkaErrorCode::BrokerTransportFailure,
    RDKafkaErrorCode::OperationTimedOut,
    RDKafkaErrorCode::AllBrokersDown,
    RDKafkaErrorCode::MessageTimedOut,
    RDKafkaErrorCode::RequestTimedOut,
];
const MEANINGS: [(&str, &str); 6] = [
    (
        "Authentication failed",
        "refused user or password; correct kafka.sasl_user and kafka.sasl_password_file",
    ),
    ("certificate verify failed", "shows a certificate of an unknown authority; correct kafka.ca_file"),
    ("SSL handshake", "does not speak TLS as asked; correct kafka.security or the port"),
    ("Failed to resolve", "is at a host whose name can't be resolved; correct kafka.servers"),
    ("Connection refused", "can't be reached: no server listens there; start it, or correct kafka.servers"),
    (
        "authorization failed",
        "does not give this user the necessary rights; grant it rights to the topics and transactional ids that \
         begin with kafka.prefix",
    ),
];
