//! Settings for the connection to the brokers: the `shared_log` of the node's start job.

use std::path::PathBuf;

use serde::Deserialize;

/// The brokers, and the role of this node for the logs there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `host:port`; several are separated by commas.
    pub servers: String,
    /// The prefix of the topics' names.
    pub prefix: String,
    /// The role of this node: ingest or copy.
    pub role: Role,
    /// The security of the connections.
    #[serde(default)]
    pub security: Security,
    /// PEM file of the authority of the brokers' certificates; absent: the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// PEM file of this node's certificate, if brokers require one.
    #[serde(default)]
    pub certificate_file: Option<PathBuf>,
    /// PEM file of that certificate's key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    #[serde(default)]
    pub sasl_mechanism: String,
    /// The user.
    #[serde(default)]
    pub sasl_user: String,
    /// The file with the password.
    #[serde(default)]
    pub sasl_password_file: Option<PathBuf>,
    /// Replicas of each topic that is created; 0: the brokers' default.
    #[serde(default)]
    pub replication: i32,
    /// The most megabytes that a sender's copy of each feed takes; 0: as much as the feed keeps.
    #[serde(default)]
    pub copy_mb: u64,
}

/// The role of a node for the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Appends to them as the only writer, and serves sites.
    Ingest,
    /// Copies them, and serves sites.
    Sender,
}

/// The security of the connections to brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    /// In plain text.
    #[default]
    Plaintext,
    /// By TLS.
    Tls,
    /// In plain text, with a password.
    Sasl,
    /// By TLS, with a password.
    SaslTls,
}

impl Security {
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Tls => "SSL",
            Self::Sasl => "SASL_PLAINTEXT",
            Self::SaslTls => "SASL_SSL",
        }
    }

    pub(crate) fn has_password(self) -> bool {
        matches!(self, Self::Sasl | Self::SaslTls)
    }
}
