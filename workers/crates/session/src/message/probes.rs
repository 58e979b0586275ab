//! Messages about probes of the path between a hub's node and a site. The packets go by UDP, or in connections by TCP,
//! to a port of the node that is open for one probe.
use downburst_model::Micros;
use downburst_probe::{Control, Figures, Flow, FlowFigures, Key, Sent};
use minicbor::{Decode, Encode};

/// Hub to site: an order in a probe of the path.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PathProbe {
    /// The number of the probe, which answers repeat. A site has one probe at a time: a new number ends the former.
    #[n(0)]
    pub run: u32,
    /// The order.
    #[n(1)]
    pub order: ProbeOrder,
}

/// An order in a probe.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ProbeOrder {
    /// Open a socket towards the node, and send it hellos until the probe ends. Answered by [`ProbeSaid::Ready`] or
    /// [`ProbeSaid::Refused`].
    #[n(0)]
    Open(#[n(0)] ProbeOpen),
    /// A step begins: send it, or say [`ProbeSaid::Ready`] and count what arrives of it.
    #[n(1)]
    Step(#[n(0)] ProbeStep),
    /// The node has sent this step: answer with [`ProbeSaid::Arrived`] once no more arrives.
    #[n(2)]
    Sent {
        /// The step.
        #[n(0)]
        step: u16,
        /// Its packets.
        #[n(1)]
        packets: u64,
    },
    /// Send no more of the present step; answer with [`ProbeSaid::Sent`].
    #[n(3)]
    Hold,
    /// The probe is over.
    #[n(4)]
    Close,
    /// Open the connections of a trial, and prepare its flows. Answered by [`ProbeSaid::TrialReady`].
    #[n(5)]
    Trial(#[n(0)] ProbeTrial),
    /// The prepared trial begins now. Answered by [`ProbeSaid::TrialEnded`] after its length in time.
    #[n(6)]
    Begin {
        /// The trial.
        #[n(0)]
        trial: u16,
    },
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProbeOpen {
    /// The key of its datagrams.
    #[n(0)]
    pub key: Key,
    /// The UDP port of the node, at the address of the session.
    #[n(1)]
    pub port: u16,
    /// True: the node sends, and the site counts; else the reverse.
    #[n(2)]
    pub out: bool,
    /// The UDP payload of each packet.
    #[n(3)]
    pub packet_bytes: u16,
    /// The highest rate of a step, bits per second of frames.
    #[n(4)]
    pub most_bps: u64,
    /// By TCP, to a TCP port of that number; absent: by UDP. A site that knows it says so in its [`ProbeSaid::Ready`].
    #[n(5)]
    pub tcp: Option<ProbeTcp>,
    /// The other end; absent: the hub's node, at the address of the session. A receiver that does not know this field
    /// refuses the order, or answers without [`ProbeSaid::Listening`].
    #[n(6)]
    pub other_end: Option<OtherEnd>,
}

/// The other end of a probe between a relay and a site whose session it carries. The hub orders both of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum OtherEnd {
    /// To a relay: a site. Open a port, which [`ProbeSaid::Listening`] names (that of the order means nothing), and
    /// take the part of the hub's node. `out`: this relay sends.
    #[n(0)]
    Site,
    /// To a site: the relay to which it connected for this session, at the port of the order.
    #[n(1)]
    Relay,
}

/// A probe over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProbeTcp {
    /// True: trials of greedy flows, each with its own connection; else one connection with records of the steps.
    #[n(0)]
    pub trials: bool,
    /// The congestion control of the records' sender; absent: its kernel's default.
    #[n(1)]
    pub control: Option<Control>,
}

/// A trial of greedy flows beside each other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProbeTrial {
    /// Its number, from 0.
    #[n(0)]
    pub trial: u16,
    /// The limit of all flows of a direction together, bits per second of frames.
    #[n(1)]
    pub rate_bps: u64,
    /// Its length in time.
    #[n(2)]
    pub duration_ms: u64,
    /// The flows, numbered by their place.
    #[n(3)]
    pub flows: Vec<Flow>,
}

/// A step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProbeStep {
    /// Its number, from 0.
    #[n(0)]
    pub step: u16,
    /// Bits per second of frames.
    #[n(1)]
    pub rate_bps: u64,
    /// Its length in time.
    #[n(2)]
    pub duration_ms: u64,
}

/// Site to hub: an answer in a probe.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PathProbed {
    /// The number of the probe.
    #[n(0)]
    pub run: u32,
    /// The answer.
    #[n(1)]
    pub said: ProbeSaid,
}

/// An answer in a probe.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ProbeSaid {
    /// The socket is open, or the site counts this step from now on.
    #[n(0)]
    Ready {
        /// The step; absent: none has begun.
        #[n(0)]
        step: Option<u16>,
        /// True: the site probes by TCP, as the order to open says. Absent of a site that knows UDP only.
        #[n(1)]
        tcp: Option<bool>,
    },
    /// The site does not take part, or no more, for this reason.
    #[n(1)]
    Refused(#[n(0)] String),
    /// The site has sent a step.
    #[n(2)]
    Sent {
        /// The step.
        #[n(0)]
        step: u16,
        /// The packets that it sent.
        #[n(1)]
        sent: Sent,
    },
    /// A second of a step that the site counts.
    #[n(3)]
    Second {
        /// The step.
        #[n(0)]
        step: u16,
        /// The second, from 0.
        #[n(1)]
        second: u64,
        /// Its arrivals.
        #[n(2)]
        figures: Figures,
    },
    /// A step that the site counted.
    #[n(4)]
    Arrived {
        /// The step.
        #[n(0)]
        step: u16,
        /// Its arrivals.
        #[n(1)]
        figures: Figures,
    },
    /// The connections of a trial stand.
    #[n(5)]
    TrialReady {
        /// The trial.
        #[n(0)]
        trial: u16,
        /// Absent: it can begin; else the reason why not.
        #[n(1)]
        refusal: Option<String>,
    },
    /// A trial is over.
    #[n(6)]
    TrialEnded {
        /// The trial.
        #[n(0)]
        trial: u16,
        /// The site's figures of each flow.
        #[n(1)]
        flows: Vec<FlowFigures>,
    },
    /// A relay has opened a port for a site.
    #[n(7)]
    Listening {
        /// The UDP port.
        #[n(0)]
        port: u16,
    },
    /// The first hello of that site came.
    #[n(8)]
    Heard {
        /// True: by IPv6, whose headers are longer.
        #[n(0)]
        ipv6: bool,
    },
}

/// The longest step of a probe: a soak of a week and a day. A site sends no longer.
pub const LONGEST_PROBE_STEP: Micros = Micros::from_secs(8 * 24 * 3_600);
