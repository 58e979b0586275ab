//! The role of a connection, and its reports to its owner.
use downburst_session::Nodes;

/// The role of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It carries feeds.
    Serve,
    /// Another hub serves; this connection is in reserve.
    StandBy,
    /// It ends, and another one takes over: everything received on it is settled, and reported
    /// here or by the other one.
    Leave,
    /// It ends.
    End,
}

/// A report about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The hub accepted the site.
    Well {
        /// The hub's name.
        hub: String,
        /// The role for which the connection was made.
        role: Role,
    },
    /// There is no connection.
    Away {
        /// The reason, as text.
        sentence: String,
        /// True if the cause is silence.
        silent: bool,
    },
    /// The hub refuses the site.
    Refused(String),
    /// The hub's acceptance can't be stored.
    Unkept(String),
    /// The hub has several nodes, which serve these feeds.
    Nodes(Nodes),
}
