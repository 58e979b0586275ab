use std::collections::BTreeSet;
use std::time::Duration;

use downburst_ere::Ere;
use downburst_ldm6::FeedType;
use downburst_model::FeedName;

use crate::{Place, Template};

/// The rules of one file, in its order. They see nothing of another file's, also not for "what nothing else took".
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// In the order in which they are looked at.
    pub rules: Vec<Rule>,
}

/// Which products, and what is done with them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it stands; names it to people.
    pub place: Place,
    /// The feeds.
    pub feeds: Feeds,
    /// Which of their products.
    pub test: Test,
    /// What is done, in order.
    pub actions: Vec<Action>,
}

/// A set of feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds {
    /// Feeds by name.
    pub names: Vec<FeedName>,
    /// Feeds by what LDM calls their kind.
    pub types: FeedType,
}

/// Which products of its feeds a rule is for.
#[derive(Clone, Debug)]
pub enum Test {
    /// Those whose id matches.
    Id {
        /// Its groups can be used in what is done.
        pattern: Ere,
        /// Unless this matches.
        unless: Option<Ere>,
    },
    /// Those that no rule before it took, and whose id does not begin with an underscore.
    Rest,
}

/// Something that is done with a product.
#[derive(Clone, Debug)]
pub struct Action {
    /// Where it stands.
    pub place: Place,
    /// What.
    pub kind: Kind,
    /// How long and how often it is tried.
    pub limits: Limits,
}

/// What is done with a product.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Nothing; the rule takes the product all the same.
    Nothing,
    /// It is written to a file.
    File(FileAction),
    /// It is written to the standard input of a program that stays for the products after it.
    Pipe(PipeAction),
    /// A program is started for it.
    Program(ProgramAction),
}

/// How a product is written to a file.
#[derive(Clone, Debug)]
pub struct FileAction {
    /// The file.
    pub path: Template,
    /// The product replaces what the file holds; else it is appended.
    pub overwrite: bool,
    /// The file is closed at once; else when others are used more.
    pub close: bool,
    /// The bytes are on the disk before the next product is looked at.
    pub flush: bool,
    /// The log says what was written.
    pub log: bool,
    /// What of the product is written.
    pub shape: Shape,
}

/// How a product is written to a program that stays.
#[derive(Clone, Debug)]
pub struct PipeAction {
    /// The program and its arguments; programs of the same words are one.
    pub command: Vec<Template>,
    /// Its input ends after this product, and its exit status says whether it was well.
    pub close: bool,
    /// What of the product is written.
    pub shape: Shape,
}

/// How a program is started for a product.
#[derive(Clone, Debug)]
pub struct ProgramAction {
    /// The program and its arguments.
    pub command: Vec<Template>,
    /// One after the other; else several at a time.
    pub wait: bool,
}

/// What of a product is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Without control characters, but with the ends of lines.
    pub strip: bool,
    /// Without the starting line, the heading and the end of a bulletin.
    pub without_wmo_header: bool,
    /// Preceded by what LDM calls metadata.
    pub metadata: bool,
    /// With its bytes.
    pub data: bool,
}

/// How long and how often an action is tried; absent: what the receiver was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// A program that takes longer is ended, and that is a failure.
    pub time: Option<Duration>,
    /// After so many failures a product goes to the folder of what failed.
    pub attempts: Option<u32>,
}

impl Shape {
    /// The same for a pipe: without the data, the metadata is what a program gets.
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
    /// The rules as far as they matter for the actions of one line; what is left does the same for these.
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

    /// The lines of all actions, each once.
    pub fn lines(&self) -> BTreeSet<String> {
        self.rules.iter().flat_map(|rule| &rule.actions).map(Action::line).collect()
    }
}

impl Feeds {
    /// True if it has this feed, or a feed of a kind that this one is.
    pub fn has(&self, feed: &FeedName, types: FeedType) -> bool {
        self.types == FeedType::ANY || self.types.meets(types) || self.names.contains(feed)
    }
}

impl Action {
    /// Equal for actions that are done one after the other, so that what is slow for one is slow for those only.
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
        }
    }

    /// Its texts with substitutions.
    pub(crate) fn templates(&self) -> &[Template] {
        match &self.kind {
            Kind::Nothing => &[],
            Kind::File(action) => std::slice::from_ref(&action.path),
            Kind::Pipe(action) => &action.command,
            Kind::Program(action) => &action.command,
        }
    }

    /// What it does, in a word.
    pub fn word(&self) -> &'static str {
        match &self.kind {
            Kind::Nothing => "nothing",
            Kind::File(_) => "file",
            Kind::Pipe(_) => "pipe",
            Kind::Program(_) => "exec",
        }
    }
}
