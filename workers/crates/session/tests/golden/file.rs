use std::collections::BTreeMap;
use std::fmt::Write as _;

use downburst_session::StreamId;
use serde::{Deserialize, Serialize};

/// A conversation as stored in its file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// Its subject, in readable form.
    pub about: String,
    /// The version of the session.
    pub session_version: u16,
    /// The site's positions at its start.
    pub known: Vec<Position>,
    /// Products whose bytes the site finds damaged at first: feed, sequence, number of times.
    pub damaged: Vec<(String, u64, u32)>,
    /// Ids of products that the site holds already.
    pub held: Vec<String>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A site's position in a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub feed: String,
    pub epoch: u64,
    /// Both ends of each range are included.
    pub settled: Vec<(u64, u64)>,
    pub newest_stored_us: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Event {
    /// Virtual time.
    pub at_us: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A connection is established; the site shows this proof.
    Connect(Show),
    /// The connection is lost.
    Disconnect,
    /// An event at the hub.
    Hub(HubAct),
    /// A datagram of a leg reaches the site.
    Datagram { leg: u32, bytes: Hex },
    /// The hub writes a frame; it reaches the site without delay.
    HubSays(Hex),
    /// The site writes a frame; it reaches the hub without delay.
    SiteSays(Hex),
    /// As above, on a data connection.
    HubSaysOn { stream: u32, bytes: Hex },
    /// As above, on a data connection.
    SiteSaysOn { stream: u32, bytes: Hex },
    /// A data connection that the site dialled is established.
    StreamStands(u32),
    /// A data connection breaks; both notice.
    StreamBreaks(u32),
}

/// A frame and its stream.
pub type Said = (u32, Hex);

impl What {
    pub fn hub_says((stream, bytes): Said) -> Self {
        if stream == 0 { Self::HubSays(bytes) } else { Self::HubSaysOn { stream, bytes } }
    }

    pub fn site_says((stream, bytes): Said) -> Self {
        if stream == 0 { Self::SiteSays(bytes) } else { Self::SiteSaysOn { stream, bytes } }
    }

    /// The hub's frame, if this event is one.
    pub fn of_hub(&self) -> Option<Said> {
        match self {
            Self::HubSays(bytes) => Some((0, bytes.clone())),
            Self::HubSaysOn { stream, bytes } => Some((*stream, bytes.clone())),
            _ => None,
        }
    }

    /// The site's frame, if this event is one.
    pub fn of_site(&self) -> Option<Said> {
        match self {
            Self::SiteSays(bytes) => Some((0, bytes.clone())),
            Self::SiteSaysOn { stream, bytes } => Some((*stream, bytes.clone())),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    Token { secret: String, credential_sha256: String },
    Credential { site: String, secret: String },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HubAct {
    /// The site is admitted.
    Admit {
        site: String,
        subscriptions: Vec<Wish>,
    },
    /// The site is refused, or its session ended.
    Refuse {
        code: String,
        sentence: String,
    },
    /// The site's subscriptions change.
    Subscribe(Vec<Wish>),
    /// A feed's log exists. Its last sequence is `head`.
    Open {
        feed: String,
        epoch: u64,
        head: u64,
        unicast_leg: u32,
    },
    /// A product is added to the log.
    Publish(Published),
    /// The bytes of all products up to `to` are evicted.
    Evict {
        feed: String,
        to: u64,
    },
    OfferLeg(Offer),
    WithdrawLeg {
        leg: u32,
    },
    Repair {
        leg: u32,
        leg_epoch: u64,
        packet: u64,
        payload: Hex,
    },
    PacketsGone {
        leg: u32,
        leg_epoch: u64,
        packets: Vec<(u64, u64)>,
    },
    /// The planned data connections of the site, each with the names of its classes.
    PlanStreams(Vec<Vec<String>>),
    /// The resends to the site: the whole set.
    Resends(Vec<Order>),
}

/// A resend of products with numbers in `after + 1..=to` whose ids match `pattern`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub resend: u64,
    pub feed: String,
    pub epoch: u64,
    pub after: u64,
    pub to: u64,
    pub backfill: bool,
    pub pattern: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wish {
    pub feed: String,
    pub pattern: String,
    pub not_pattern: Option<String>,
}

/// A product; byte number i of it is (sequence + i / 1000) modulo 256, and each byte of its digest the
/// sequence modulo 256.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Published {
    pub feed: String,
    pub sequence: u64,
    pub id: String,
    pub class: String,
    pub size: usize,
    pub created_us: i64,
    pub stored_us: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    pub leg: u32,
    pub feed: String,
    pub epoch: u64,
    pub leg_epoch: u64,
    pub group: String,
    pub port: u16,
    pub key_id: u8,
    pub key: Hex,
    pub rate_bps: u64,
}

/// The site's final state.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Feed, sequence and id of its stored products, in the order of completion.
    pub stored: Vec<(String, u64, String)>,
    /// Feed and sequence of its rejected or expired products.
    pub lost: Vec<(String, u64)>,
    /// The refusals that it received.
    pub refused: Vec<String>,
    pub positions: Vec<Position>,
}

impl Conversation {
    /// The file: an event per line.
    pub fn text(&self) -> String {
        let head = serde_json::to_value(self).unwrap();
        let mut text = String::from("{\n");
        for field in ["about", "session_version", "known", "damaged", "held"] {
            writeln!(text, "  \"{field}\": {},", head[field]).unwrap();
        }
        let events: Vec<String> = self
            .events
            .iter()
            .map(|event| format!("    {}", serde_json::to_string(event).unwrap()))
            .collect();
        writeln!(text, "  \"events\": [\n{}\n  ],", events.join(",\n")).unwrap();
        writeln!(text, "  \"outcome\": {}\n}}", head["outcome"]).unwrap();
        text
    }
}

/// Bytes as text: two digits each; `00{1000}` is a thousand zeros.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hex(pub Vec<u8>);

impl From<Hex> for String {
    fn from(Hex(bytes): Hex) -> Self {
        bytes.chunk_by(|a, b| a == b).fold(String::new(), |mut text, run| {
            match run.len() {
                count if count >= FOLDED_RUN => write!(text, "{:02x}{{{count}}}", run[0]).unwrap(),
                _ => run.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap()),
            }
            text
        })
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_str());
        while !rest.is_empty() {
            let (pair, after) = rest.split_at_checked(2).ok_or("an odd number of digits")?;
            let byte = u8::from_str_radix(pair, 16).map_err(|error| format!("{pair}: {error}"))?;
            let (count, after) = match after.strip_prefix('{').and_then(|after| after.split_once('}')) {
                Some((count, after)) => (count.parse().map_err(|_| format!("{count} is no count"))?, after),
                None => (1, after),
            };
            bytes.resize(bytes.len() + count, byte);
            rest = after;
        }
        Ok(Self(bytes))
    }
}

/// The bytes written on each stream.
#[derive(Default)]
pub struct Words(BTreeMap<StreamId, Vec<u8>>);

impl Words {
    pub fn say(&mut self, stream: StreamId, bytes: &[u8]) {
        self.0.entry(stream).or_default().extend_from_slice(bytes);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes and returns the whole frames.
    pub fn frames(&mut self) -> Vec<Said> {
        let frames = |(stream, said): (&StreamId, &mut Vec<u8>)| {
            cut_frames(said).into_iter().map(|frame| (stream.0, Hex(frame))).collect::<Vec<_>>()
        };
        self.0.iter_mut().flat_map(frames).collect()
    }
}

/// Removes the whole frames from the written bytes: kind, length of the body, body.
fn cut_frames(said: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(header) = said.first_chunk::<5>() {
        let length = 5 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if said.len() < length {
            break;
        }
        frames.push(said.drain(..length).collect());
    }
    frames
}

/// Shorter runs of equal bytes are written out.
const FOLDED_RUN: usize = 16;
