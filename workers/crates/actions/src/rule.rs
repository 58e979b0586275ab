use std::collections::BTreeSet;
use std::time::Duration;

use downburst_ere::Ere;
use downburst_ldm6::FeedType;
use downburst_model::FeedName;
use downburst_wis2::Publisher;

use crate::{Place, Template};

/// The rules of one file, in its order. They are independent of other files' rules, even in a rule for the rest.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// In the order of evaluation.
    pub rules: Vec<Rule>,
}

/// A selection of products, and the actions on them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its line in the file, for messages.
    pub place: Place,
    /// The feeds.
    pub feeds: Feeds,
    /// The selection among their products.
    pub test: Test,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// A set of feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds {
    /// Feeds by name.
    pub names: Vec<FeedName>,
    /// Feeds by LDM's feed type.
    pub types: FeedType,
}

/// The selection of a rule among the products of its feeds.
#[derive(Clone, Debug)]
pub enum Test {
    /// Products with a matching id.
    Id {
        /// The pattern; the actions can refer to its groups.
        pattern: Ere,
        /// Excludes ids that match this.
        unless: Option<Ere>,
    },
    /// Products that no earlier rule took, unless the id begins with an underscore.
    Rest,
}

/// An action on a product.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its line in the file.
    pub place: Place,
    /// The kind of action.
    pub kind: Kind,
    /// Its time limit and number of attempts.
    pub limits: Limits,
}

/// The kind of an action on a product.
#[derive(Clone, Debug)]
pub enum Kind {
    /// No action; the rule still takes the product.
    Nothing,
    /// Writes the product to a file.
    File(FileAction),
    /// Writes it to the standard input of a program that keeps running for later products.
    Pipe(PipeAction),
    /// Starts a program for it.
    Program(ProgramAction),
    /// Puts it where a web server serves it, and announces it in WIS2.
    Publish(Box<Publisher>),
}

/// Writes a product to a file.
#[derive(Clone, Debug)]
pub struct FileAction {
    /// The file.
    pub path: Template,
    /// True to replace the file's content; false to append.
    pub overwrite: bool,
    /// True to close the file immediately; else it is closed when other files are used more.
    pub close: bool,
    /// True to write the bytes to the disk before the next product is handled.
    pub flush: bool,
    /// True to log the write.
    pub log: bool,
    /// The parts of the product to write.
    pub shape: Shape,
}

/// Writes a product to a program that keeps running.
#[derive(Clone, Debug)]
pub struct PipeAction {
    /// The program and its arguments; equal words mean the same process.
    pub command: Vec<Template>,
    /// True to end its input after this product; its exit status then tells success from failure.
    pub close: bool,
    /// The parts of the product to write.
    pub shape: Shape,
}

/// Starts a program for a product.
#[derive(Clone, Debug)]
pub struct ProgramAction {
    /// The program and its arguments.
    pub command: Vec<Template>,
    /// True to run one at a time; else several concurrently.
    pub wait: bool,
}

/// The parts of a product to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Without control characters other than LF.
    pub strip: bool,
    /// Without the starting line, the heading and the end of a bulletin.
    pub without_wmo_header: bool,
    /// Preceded by LDM's metadata.
    pub metadata: bool,
    /// With its bytes.
    pub data: bool,
}

/// The time limit and number of attempts of an action; if absent, the receiver's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// A program that takes longer is ended, and the attempt has failed.
    pub time: Option<Duration>,
    /// The number of failures after which a product is moved to the folder of failed ones.
    pub attempts: Option<u32>,
}

impl Shape {
    /// The shape for a pipe: without the data, the program gets the metadata.
    pub(crate) fn for_pipe(self) -> Self {
        Self { metadata: self.metadata || !self.data, ..self }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self { strip: false, without_wmo_header: false, metadata: false, data: true }
    }
}

impl Rules {
    /// Only the rules that affect the actions of one line; for these the result is the same.
    pub fn only(&self, line: &str) -> Self {
        let mut kept: Vec<Rule> = Vec::new();
        let mut rest_follows = false;
        for rule in self.rules.iter().rev() {
            let actions: Vec<Action> =
                rule.actions.iter().filter(|action| action.line() == line).cloned().collect();
            let is_rest = matches!(rule.test, Test::Rest);
            if !actions.is_empty() || rest_follows {
                rest_follows |= is_rest && !actions.is_empty();
                kept.push(Rule { actions, ..rule.clone() });
            }
        }
        kept.reverse();
        Self { rules: kept }
    }

    /// The distinct lines of all actions.
    pub fn lines(&self) -> BTreeSet<String> {
        self.rules.iter().flat_map(|rule| &rule.actions).map(Action::line).collect()
    }
}

impl Feeds {
    /// True if the set has this feed by its name or by its type.
    pub fn has(&self, feed: &FeedName, types: FeedType) -> bool {
        self.types == FeedType::ANY || self.types.meets(types) || self.names.contains(feed)
    }
}

impl Action {
    /// Equal for actions that run one after the other, so that a slow action delays only those.
    ///
    /// All files share one line, so that an action after a file in a rule finds it written. Programs with the
    /// same words in the rules share one, too.
    pub fn line(&self) -> String {
        let words = |kind: &str, command: &[Template]| {
            command.iter().fold(kind.to_owned(), |line, word| format!("{line}\0{}", word.text()))
        };
        match &self.kind {
            Kind::Nothing | Kind::File(_) => "file".to_owned(),
            Kind::Pipe(action) => words("pipe", &action.command),
            Kind::Program(action) => words("exec", &action.command),
            Kind::Publish(publisher) => format!("publish\0{}", publisher.line()),
        }
    }

    /// Its templates.
    pub(crate) fn templates(&self) -> &[Template] {
        match &self.kind {
            Kind::Nothing | Kind::Publish(_) => &[],
            Kind::File(action) => std::slice::from_ref(&action.path),
            Kind::Pipe(action) => &action.command,
            Kind::Program(action) => &action.command,
        }
    }

    /// The name of its kind.
    pub fn word(&self) -> &'static str {
        match &self.kind {
            Kind::Nothing => "nothing",
            Kind::File(_) => "file",
            Kind::Pipe(_) => "pipe",
            Kind::Program(_) => "exec",
            Kind::Publish(_) => "publish",
        }
    }
}
