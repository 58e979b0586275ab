//! An action with everything that it takes, for one product.
use std::time::Duration;

use downburst_actions::contents::{self, Metadata};
use downburst_actions::{Action, Kind, Shape, What};
use downburst_ldm6::{FeedType, origin_through};
use downburst_log::{LogEntry, SourceStamp};
use downburst_model::{
    Epoch, FeedName, LdmIdent, LdmStamp, Origin, ProductId, ProductInfo, Sequence, WallMicros, counted,
};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

/// What is to be done; can be written down and done later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    /// The rule's file and line.
    pub(super) rule: String,
    pub(super) work: Work,
    /// What of the product goes out.
    #[serde(default)]
    pub(super) shape: Shaping,
    pub(super) limit_s: u64,
    pub(super) attempts: u32,
}

/// A task for a product.
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) about: About,
    pub(super) product: LogEntry,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum Work {
    File { path: String, overwrite: bool, close: bool, flush: bool, log: bool },
    Pipe { command: Vec<String>, close: bool },
    Exec { command: Vec<String>, wait: bool },
}

/// [`Shape`], written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shaping {
    strip: bool,
    without_wmo_header: bool,
    metadata: bool,
    without_data: bool,
}

/// What is known of a product, beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) feed: FeedName,
    pub(super) id: ProductId,
    pub(super) origin: Origin,
    pub(super) created_us: WallMicros,
    /// The life of the hub's log that gave its number; absent if the site's log does not name one.
    #[serde(default)]
    pub(super) epoch: Option<Epoch>,
    /// Its number at the hub.
    pub(super) sequence: u64,
    /// Its place in the site's own log.
    pub(super) log_sequence: u64,
    /// LDM's bits for its feed: what LDM said of the product, else what the site calls the feed.
    pub(super) feed_type: u32,
    pub(super) size: u64,
    /// The host by which the hub was called; absent if the site's log does not name it.
    #[serde(default)]
    pub(super) via: Option<Origin>,
    /// What LDM said of it, where an LDM brought it.
    #[serde(default)]
    pub(super) stamp: Option<Stamp>,
}

/// [`LdmStamp`], written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    signature: [u8; 16],
    sequence: u32,
    ident: Option<Vec<u8>>,
}

/// What a site takes where a rule says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// A program that takes longer is ended.
    pub time_limit: Duration,
    /// After so many failures a product goes to the folder of what failed.
    pub attempts: u32,
}

impl Task {
    /// What an action comes to; `None` where there is nothing to do.
    pub(super) fn new(action: &Action, what: What, defaults: Defaults) -> Option<Self> {
        let (work, shape) = match (what, &action.kind) {
            (What::File(path), Kind::File(file)) => {
                let (overwrite, close, flush, log) = (file.overwrite, file.close, file.flush, file.log);
                (Work::File { path, overwrite, close, flush, log }, file.shape)
            }
            (What::Pipe(command), Kind::Pipe(pipe)) => {
                (Work::Pipe { command, close: pipe.close }, pipe.shape)
            }
            (What::Program(command), Kind::Program(program)) => {
                (Work::Exec { command, wait: program.wait }, Shape::default())
            }
            _ => return None,
        };
        Some(Self {
            rule: action.place.to_string(),
            work,
            shape: Shaping::from(shape),
            limit_s: action.limits.time.unwrap_or(defaults.time_limit).as_secs(),
            attempts: action.limits.attempts.unwrap_or(defaults.attempts),
        })
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }

    /// The bytes that go out for a product.
    pub(super) fn bytes(&self, about: &About, product: &[u8]) -> Vec<u8> {
        let shape = Shape::from(self.shape);
        let body = contents::shaped(shape, product);
        if !shape.metadata {
            return body.into_owned();
        }
        // Without the data the size is still that of what would follow.
        let whole = contents::shaped(Shape { data: true, ..shape }, product);
        let stamp = about.stamp.as_ref();
        let ident = stamp.and_then(|stamp| stamp.ident.as_deref());
        let metadata = Metadata {
            signature: stamp.map_or_else(|| Md5::digest(product).into(), |stamp| stamp.signature),
            created: about.created_us,
            feed_type: about.feed_type,
            sequence: about.counted(),
            ident: ident.unwrap_or(about.id.as_str().as_bytes()),
            origin: &about.ldm_origin(),
        };
        let mut bytes = contents::metadata(&metadata, whole.len() as u64);
        bytes.extend_from_slice(&body);
        bytes
    }
}

impl Work {
    /// A few words for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::File { path, .. } => format!("file {path}"),
            Self::Pipe { command, .. } => format!("pipe {}", command.join(" ")),
            Self::Exec { command, .. } => format!("exec {}", command.join(" ")),
        }
    }
}

/// What an action comes to, for people.
pub(super) fn words(what: &What) -> String {
    match what {
        What::Nothing => "nothing".to_owned(),
        What::File(path) => path.clone(),
        What::Pipe(command) | What::Program(command) => command.join(" "),
    }
}

impl About {
    pub(super) fn new(entry: &LogEntry, types: FeedType) -> Self {
        let (info, source) = (&entry.info, entry.source.as_ref());
        let stamp = info.ldm.as_ref();
        Self {
            feed: info.key.feed.clone(),
            id: info.id.clone(),
            origin: info.origin.clone(),
            created_us: info.created,
            epoch: source.map(|source| source.key.epoch),
            sequence: at_hub(info, source).0,
            log_sequence: info.key.sequence.0,
            feed_type: stamp.map_or(types.bits(), |stamp| stamp.feed_type),
            size: info.size,
            via: source.and_then(|source| source.via.clone()),
            stamp: stamp.map(Stamp::from),
        }
    }

    /// `(seq)`, and the number in the metadata.
    pub(super) fn counted(&self) -> u32 {
        self.stamp.as_ref().map_or_else(|| counted(self.sequence), |stamp| stamp.sequence)
    }

    /// The origin as an LDM has it that asked the same host for the product.
    fn ldm_origin(&self) -> Vec<u8> {
        let origin = self.origin.as_str().as_bytes();
        match &self.via {
            Some(hub) => origin_through(origin, hub.as_str()).as_bytes().to_vec(),
            None => origin.to_vec(),
        }
    }
}

/// The number for `(seq)`: LDM's own where an LDM brought the product, as LDM's own downstreams see it
/// elsewhere.
pub(super) fn sequence(info: &ProductInfo, source: Option<&SourceStamp>) -> u32 {
    info.ldm.as_ref().map_or_else(|| counted(at_hub(info, source).0), |stamp| stamp.sequence)
}

fn at_hub(info: &ProductInfo, source: Option<&SourceStamp>) -> Sequence {
    source.map_or(info.key.sequence, |source| source.key.sequence)
}

impl From<&LdmStamp> for Stamp {
    fn from(stamp: &LdmStamp) -> Self {
        let ident = stamp.ident.as_ref().map(|ident| LdmIdent::as_bytes(ident).to_vec());
        Self { signature: stamp.signature, sequence: stamp.sequence, ident }
    }
}

impl From<Shape> for Shaping {
    fn from(shape: Shape) -> Self {
        let Shape { strip, without_wmo_header, metadata, data } = shape;
        Self { strip, without_wmo_header, metadata, without_data: !data }
    }
}

impl From<Shaping> for Shape {
    fn from(shaping: Shaping) -> Self {
        let Shaping { strip, without_wmo_header, metadata, without_data } = shaping;
        Self { strip, without_wmo_header, metadata, data: !without_data }
    }
}
