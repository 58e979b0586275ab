//! The variables of a connection: their names, and their places in the kernel's record and in a stored one.
use Width::{Bit, Byte, Eight, Four};

/// A variable of `struct tcp_info`. The names are the kernel's, without the prefix `tcpi_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    /// State of the congestion control: 0 open, 1 disorder, 2 reduced, 3 recovery, 4 loss.
    CaState,
    /// 1 while the delivery rate is bounded by what the application wrote.
    AppLimited,
    /// Bytes of a segment.
    SndMss,
    /// Segments in flight.
    Unacked,
    /// Segments held to be lost.
    Lost,
    /// Segments that were sent again and are in flight.
    Retrans,
    /// Smoothed round trip, in microseconds.
    Rtt,
    /// Its variation, in microseconds.
    Rttvar,
    /// Slow-start threshold, in segments.
    SndSsthresh,
    /// Congestion window, in segments.
    SndCwnd,
    /// Segments that were sent again since the connection began.
    TotalRetrans,
    /// The kernel's sending rate, in bytes per second.
    PacingRate,
    /// Its bound, in bytes per second; absent: there is none.
    MaxPacingRate,
    /// Bytes that the peer acknowledged.
    BytesAcked,
    /// Bytes that the kernel holds and has not sent yet.
    NotsentBytes,
    /// Least round trip, in microseconds.
    MinRtt,
    /// Recent rate of acknowledgements, in bytes per second.
    DeliveryRate,
    /// Time in which bytes were to be sent or acknowledged, in microseconds.
    BusyTime,
    /// Of this, limited by the peer's window.
    RwndLimited,
    /// Of this, limited by the send buffer.
    SndbufLimited,
    /// Bytes that were sent, with those sent again.
    BytesSent,
    /// Bytes that were sent again.
    BytesRetrans,
    /// Times that segments were found out of order.
    ReordSeen,
    /// The peer's advertised window, in bytes.
    SndWnd,
}

/// The room of a value in `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// The lowest bit of a byte.
    Bit,
    Byte,
    Four,
    Eight,
}

/// Where a variable stands.
pub(crate) struct Field {
    pub(crate) variable: Variable,
    pub(crate) name: &'static str,
    /// In `struct tcp_info`, as in `include/uapi/linux/tcp.h`. Kernels add fields at the end only.
    pub(crate) offset: usize,
    pub(crate) width: Width,
    /// Counts from the connection's beginning on: only differences have a meaning.
    pub(crate) counts: bool,
}

impl Variable {
    /// Every variable, in the order of the kernel's record.
    pub fn all() -> impl Iterator<Item = Self> {
        FIELDS.iter().map(|field| field.variable)
    }

    /// The variable with this name.
    pub fn named(name: &str) -> Option<Self> {
        FIELDS.iter().find(|field| field.name == name).map(|field| field.variable)
    }

    /// The variables with these names; without names, every variable.
    ///
    /// # Errors
    ///
    /// A sentence: no variable has a given name.
    pub fn chosen(names: &[String]) -> Result<Vec<Self>, String> {
        if names.is_empty() {
            return Ok(Self::all().collect());
        }
        names.iter().map(|name| Self::named(name).ok_or_else(|| unknown(name))).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        FIELDS.get(self.index()).map_or("", |field| field.name)
    }

    /// True if it counts from the connection's beginning on.
    pub fn counts(self) -> bool {
        FIELDS.get(self.index()).is_some_and(|field| field.counts)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = Variable::all().map(Variable::name).collect();
    let name: String = name.chars().take(64).collect();
    format!("no variable is named {name:?}; there are {}", known.join(", "))
}

impl Width {
    /// Its bytes, in the kernel's record and in a stored one.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Bit | Byte => 1,
            Four => 4,
            Eight => 8,
        }
    }
}

const fn field(variable: Variable, name: &'static str, offset: usize, width: Width, counts: bool) -> Field {
    Field { variable, name, offset, width, counts }
}

pub(crate) const VARIABLES: usize = 24;

/// In the order of [`Variable`].
pub(crate) const FIELDS: [Field; VARIABLES] = [
    field(Variable::CaState, "ca_state", 1, Byte, false),
    field(Variable::AppLimited, "app_limited", 7, Bit, false),
    field(Variable::SndMss, "snd_mss", 16, Four, false),
    field(Variable::Unacked, "unacked", 24, Four, false),
    field(Variable::Lost, "lost", 32, Four, false),
    field(Variable::Retrans, "retrans", 36, Four, false),
    field(Variable::Rtt, "rtt", 68, Four, false),
    field(Variable::Rttvar, "rttvar", 72, Four, false),
    field(Variable::SndSsthresh, "snd_ssthresh", 76, Four, false),
    field(Variable::SndCwnd, "snd_cwnd", 80, Four, false),
    field(Variable::TotalRetrans, "total_retrans", 100, Four, true),
    field(Variable::PacingRate, "pacing_rate", 104, Eight, false),
    field(Variable::MaxPacingRate, "max_pacing_rate", 112, Eight, false),
    field(Variable::BytesAcked, "bytes_acked", 120, Eight, true),
    field(Variable::NotsentBytes, "notsent_bytes", 144, Four, false),
    field(Variable::MinRtt, "min_rtt", 148, Four, false),
    field(Variable::DeliveryRate, "delivery_rate", 160, Eight, false),
    field(Variable::BusyTime, "busy_time", 168, Eight, true),
    field(Variable::RwndLimited, "rwnd_limited", 176, Eight, true),
    field(Variable::SndbufLimited, "sndbuf_limited", 184, Eight, true),
    field(Variable::BytesSent, "bytes_sent", 200, Eight, true),
    field(Variable::BytesRetrans, "bytes_retrans", 208, Eight, true),
    field(Variable::ReordSeen, "reord_seen", 220, Four, true),
    field(Variable::SndWnd, "snd_wnd", 228, Four, false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variables_and_names_are_found() {
        for (index, field) in FIELDS.iter().enumerate() {
            assert_eq!(field.variable.index(), index, "{}", field.name);
            assert_eq!(Variable::named(field.name), Some(field.variable));
            assert_eq!(field.variable.name(), field.name);
        }
        assert!(FIELDS.is_sorted_by_key(|field| field.offset));
        assert_eq!(Variable::named("nonesuch"), None);
        assert!(Variable::BytesAcked.counts() && !Variable::Rtt.counts());
    }
}
