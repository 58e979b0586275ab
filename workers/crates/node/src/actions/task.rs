//! An action with everything that it takes, for one product.
use std::time::Duration;

use downburst_actions::contents::{self, Metadata};
use downburst_actions::{Action, Kind, Shape, What};
use downburst_ldm6::FeedType;
use downburst_log::LogEntry;
use downburst_model::{Epoch, FeedName, Origin, ProductId, WallMicros};
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
    /// The life of the hub's log that gave its number; absent in what earlier releases wrote.
    #[serde(default)]
    pub(super) epoch: Option<Epoch>,
    /// Its number at the hub.
    pub(super) sequence: u64,
    /// Its place in the site's own log.
    pub(super) log_sequence: u64,
    /// LDM's bits for its feed.
    pub(super) feed_type: u32,
    pub(super) size: u64,
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
        let metadata = Metadata {
            signature: Md5::digest(product).into(),
            created: about.created_us,
            feed_type: about.feed_type,
            sequence: u32::try_from(about.sequence & u64::from(u32::MAX)).unwrap_or_default(),
            id: &about.id,
            origin: &about.origin,
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
        let info = &entry.info;
        let at_hub = entry.source.as_ref().map_or(info.key.sequence, |source| source.key.sequence);
        Self {
            feed: info.key.feed.clone(),
            id: info.id.clone(),
            origin: info.origin.clone(),
            created_us: info.created,
            epoch: entry.source.as_ref().map(|source| source.key.epoch),
            sequence: at_hub.0,
            log_sequence: info.key.sequence.0,
            feed_type: types.bits(),
            size: info.size,
        }
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
