//! What a connection is for, and what it reports to whoever keeps it.
use downburst_session::Nodes;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Feeds come by it.
    Serve,
    /// Another hub serves; this one is kept at hand.
    StandBy,
    /// It ends, and another one goes on: all that came by it is settled, and said here or left to the other one.
    Leave,
    /// It ends.
    End,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The hub let the site in.
    Well {
        /// The hub's name.
        hub: String,
        /// What the connection was made for.
        role: Role,
    },
    /// There is no connection.
    Away {
        /// Why, for people.
        sentence: String,
        /// Because nothing was heard.
        silent: bool,
    },
    /// The hub does not take the site.
    Refused(String),
    /// What the hub said can't be kept.
    Unkept(String),
    /// The hub is several nodes, which serve these feeds.
    Nodes(Nodes),
}
