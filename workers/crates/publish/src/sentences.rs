//! Faults of brokers and connections in the words of people.
use downburst_wis2::Broker;
use rumqttc::v5::mqttbytes::v5::{ConnectReturnCode, PubAckReason};
use rumqttc::v5::{ConnectionError, StateError, TlsError};

pub(crate) const NO_SUBSCRIBER: &str = "no client is subscribed at the broker, as a Global Broker would be";
pub(crate) const NO_ANSWER: &str = "the broker has not answered within 60 s";

/// A notification that the broker has refused.
pub(crate) fn refusal(reason: PubAckReason) -> String {
    let (words, code) = match reason {
        PubAckReason::Success => ("success", 0),
        PubAckReason::NoMatchingSubscribers => ("no matching subscribers", 16),
        PubAckReason::UnspecifiedError => ("unspecified error", 128),
        PubAckReason::ImplementationSpecificError => ("implementation specific error", 131),
        PubAckReason::NotAuthorized => ("not authorized", 135),
        PubAckReason::TopicNameInvalid => ("topic name invalid", 144),
        PubAckReason::PacketIdentifierInUse => ("packet identifier in use", 145),
        PubAckReason::QuotaExceeded => ("quota exceeded", 151),
        PubAckReason::PayloadFormatInvalid => ("payload format invalid", 153),
    };
    format!("the broker refuses it: {words} ({code})")
}

/// The reason for which a connection did not come, or ended.
pub(crate) fn fault(broker: &Broker, error: &ConnectionError, was_connected: bool) -> String {
    let (host, port) = (&broker.host, broker.port);
    match error {
        ConnectionError::ConnectionRefused(code) => refused(broker, *code),
        ConnectionError::MqttState(StateError::ConnFail { reason }) => refused(broker, *reason),
        ConnectionError::Tls(error) => encryption(host, error),
        ConnectionError::Timeout(_) => format!("{host} does not answer at port {port}"),
        ConnectionError::MqttState(StateError::AwaitPingResp) => {
            "the broker does not answer any more".to_owned()
        }
        error if was_connected => format!("the connection ended: {error}"),
        ConnectionError::Io(error) => format!("{host} takes no connection at port {port}: {error}"),
        error => format!("{host} is no broker of MQTT 5: {error}"),
    }
}

fn refused(broker: &Broker, code: ConnectReturnCode) -> String {
    let words = match code {
        ConnectReturnCode::NotAuthorized => "not authorized".to_owned(),
        ConnectReturnCode::BadUserNamePassword => "bad user name or password".to_owned(),
        code => format!("{code:?}"),
    };
    match &broker.user {
        Some(user) => format!("the broker refuses user {user}: {words}; check the password in password-file"),
        None => format!("the broker refuses clients without a user: {words}"),
    }
}

fn encryption(host: &str, error: &TlsError) -> String {
    let text = error.to_string();
    if text.contains("UnknownIssuer") {
        return format!(
            "the certificate of {host} is of an unknown authority; name its certificate by ca-file"
        );
    }
    format!("the certificate or the encryption of {host} is refused: {text}")
}
