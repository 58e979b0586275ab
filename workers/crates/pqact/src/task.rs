//! An action for one product, with all its data.
use std::borrow::Cow;
use std::time::Duration;

use downburst_actions::contents::{self, Metadata};
use downburst_actions::{Action, Kind, Shape, What};
use downburst_ldm6::{FeedType, origin_through};
use downburst_log::{LogEntry, SourceStamp};
use downburst_model::{
    Epoch, FeedName, LdmIdent, LdmStamp, Origin, ProductId, ProductInfo, Sequence, WallMicros, counted,
    moment,
};
use downburst_wis2::{Product, Publisher};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

/// The work of an action, which can be stored and executed later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    /// The rule's file and line.
    pub(super) rule: String,
    pub(super) work: Work,
    /// The parts of the product to write.
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
    Publish { publisher: Box<Publisher>, product: Box<Product> },
}

/// [`Shape`] in its stored form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shaping {
    strip: bool,
    without_wmo_header: bool,
    metadata: bool,
    without_data: bool,
}

/// A product's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) feed: FeedName,
    pub(super) id: ProductId,
    pub(super) origin: Origin,
    pub(super) created_us: WallMicros,
    /// The epoch of its number at the hub; absent if the site's log has none.
    #[serde(default)]
    pub(super) epoch: Option<Epoch>,
    /// Its number at the hub.
    pub(super) sequence: u64,
    /// Its place in the site's own log.
    pub(super) log_sequence: u64,
    /// LDM's feed type, as bits: that of the product's LDM stamp, else the site's feed type of the feed.
    pub(super) feed_type: u32,
    pub(super) size: u64,
    /// The host name under which the hub was contacted; absent if the site's log does not name it.
    #[serde(default)]
    pub(super) via: Option<Origin>,
    /// LDM's metadata, if the product came from an LDM.
    #[serde(default)]
    pub(super) stamp: Option<Stamp>,
    /// The statements of its source, if it made any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) properties: Option<String>,
}

/// [`LdmStamp`] in its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    signature: [u8; 16],
    sequence: u32,
    ident: Option<Vec<u8>>,
}

/// A site's limits for rules that set none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// A program that takes longer is ended.
    pub time_limit: Duration,
    /// After this many failures a product goes to the folder of failed products.
    pub attempts: u32,
}

impl Task {
    /// The task of an action on a product; `None` if there is nothing to do.
    pub(super) fn new(action: &Action, what: What, product: &LogEntry, defaults: Defaults) -> Option<Self> {
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
            (What::Publish, Kind::Publish(publisher)) => {
                let publisher = publisher.clone();
                (Work::Publish { publisher, product: Box::new(published(product)) }, Shape::default())
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

    /// True if a product's own bytes are written, and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        self.shape == Shaping::default()
    }

    /// The bytes to write for a product.
    pub(super) fn bytes<'a>(&self, about: &About, product: &'a [u8]) -> Cow<'a, [u8]> {
        let shape = Shape::from(self.shape);
        let body = contents::shaped(shape, product);
        if !shape.metadata {
            return body;
        }
        // Even without the data, the size is that of the data.
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
            properties: about.properties.as_deref().map(str::as_bytes),
        };
        let mut bytes = contents::metadata(&metadata, whole.len() as u64);
        bytes.extend_from_slice(&body);
        Cow::Owned(bytes)
    }
}

impl Work {
    /// A short description for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::File { path, .. } => format!("file {path}"),
            Self::Pipe { command, .. } => format!("pipe {}", command.join(" ")),
            Self::Exec { command, .. } => format!("exec {}", command.join(" ")),
            Self::Publish { publisher, .. } => format!("publish {}", publisher.words()),
        }
    }
}

/// The target of an action, for people.
pub(super) fn words(what: &What) -> String {
    match what {
        What::Nothing => "nothing".to_owned(),
        What::Publish => "publish".to_owned(),
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
            properties: stated(info),
        }
    }

    /// The number for `(seq)` and for the metadata.
    pub(super) fn counted(&self) -> u32 {
        self.stamp.as_ref().map_or_else(|| counted(self.sequence), |stamp| stamp.sequence)
    }

    /// The origin as seen by an LDM that requests the product from the same host.
    fn ldm_origin(&self) -> Vec<u8> {
        let origin = self.origin.as_str().as_bytes();
        match &self.via {
            Some(hub) => origin_through(origin, hub.as_str()).as_bytes().to_vec(),
            None => origin.to_vec(),
        }
    }
}

/// The number for `(seq)`: LDM's own if the product came from an LDM, else the number that downstream LDMs of the
/// hub see.
pub(super) fn sequence(info: &ProductInfo, source: Option<&SourceStamp>) -> u32 {
    info.ldm.as_ref().map_or_else(|| counted(at_hub(info, source).0), |stamp| stamp.sequence)
}

/// The facts from which a product's notification is made: the same at each attempt.
fn published(entry: &LogEntry) -> Product {
    let (info, source) = (&entry.info, entry.source.as_ref());
    let key = source.map_or(&info.key, |source| &source.key);
    Product {
        id: info.id.as_str().to_owned(),
        feed: key.feed.as_str().to_owned(),
        epoch: key.epoch.0,
        sequence: key.sequence.0,
        stored_at: moment::rfc3339(info.stored),
        properties: stated(info),
    }
}

/// The statements of a product's source. Sources write JSON: other bytes are not theirs.
fn stated(info: &ProductInfo) -> Option<String> {
    info.properties.as_ref().map(|properties| String::from_utf8_lossy(properties.as_bytes()).into_owned())
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
