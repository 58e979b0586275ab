//! Rules in YAML: the rules of `pqact.conf` and `scour.conf`, with named fields.
//!
//! ```yaml
//! actions:
//!   - feeds: NEXRAD3
//!     match: '^SDUS5. (K...) ([0-3][0-9])([0-2][0-9])([0-6][0-9])'
//!     unless: '/pN0S'
//!     do:
//!       - file: 'data/radar/\1/(\2:yyyy)(\2:mm)\2_\3\4'
//!         overwrite: true
//!         close: true
//!       - exec: [notify, --station, '\1']
//!         time-limit: 30s
//!         attempts: 1
//!       - publish: {broker: mqtts://node@broker.example, centre: us-unidata, …}
//!   - rest: true
//!     do:
//!       - file: data/rest/%Y%m%d
//! scour:
//!   - directory: data/radar
//!     older-than: 2d
//!     keep-free: 10%
//! ```
mod fields;
mod publish;
mod tree;

use downburst_ere::Ere;
use downburst_ldm6::FeedType;
use downburst_model::FeedName;

use crate::{
    Action, Feeds, FileAction, Kind, Limits, PipeAction, Place, Problem, ProgramAction, Read, Rule, Rules,
    ScourRule, Shape, Template, Test, pqact, scour, units,
};
use fields::Fields;
use tree::{Node, Value};

/// The content of a file.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Under `actions`.
    pub actions: Rules,
    /// Under `scour`.
    pub scour: Vec<ScourRule>,
}

/// Reads the text of a file.
pub fn read(file: &str, text: &str) -> Read<Document> {
    let mut read: Read<Document> = Read::nothing();
    if let Err(problem) = document(file, text, &mut read) {
        read.errors.push(problem);
    }
    read
}

fn document(file: &str, text: &str, read: &mut Read<Document>) -> Result<(), Problem> {
    let Some(root) = tree::read(file, text)? else { return Ok(()) };
    let mut fields = Fields::of(root, &["actions", "scour"])?;
    for item in fields.list("actions")? {
        match rule(item, &mut read.notes) {
            Ok(rule) => read.found.actions.rules.push(rule),
            Err(problem) => read.set_aside.push(problem),
        }
    }
    for item in fields.list("scour")? {
        match scour_rule(item) {
            Ok(rule) => read.found.scour.push(rule),
            Err(problem) => read.set_aside.push(problem),
        }
    }
    read.notes.extend(scour::notes(&read.found.scour));
    Ok(())
}

fn rule(node: Node, notes: &mut Vec<Problem>) -> Result<Rule, Problem> {
    let place = node.place.clone();
    let mut fields = Fields::of(node, &["feeds", "match", "unless", "rest", "do"])?;
    let feeds = feeds(&mut fields)?;
    let test = test(&mut fields, notes)?;
    let mut actions = Vec::new();
    for item in fields.list("do")? {
        let action = action(item)?;
        let mut said = Vec::new();
        pqact::check_groups(&test, &action, &mut said);
        notes.extend(said.into_iter().map(|sentence| action.place.wrong(sentence)));
        actions.push(action);
    }
    Ok(Rule { place, feeds, test, actions })
}

/// Reads one name or several; a name is that of a feed, or a feed type of LDM.
fn feeds(fields: &mut Fields) -> Result<Feeds, Problem> {
    let names = fields.words("feeds")?;
    if names.is_empty() {
        return Ok(Feeds { names: Vec::new(), types: FeedType::ANY });
    }
    let mut feeds = Feeds::default();
    for (place, name) in names {
        let types: Option<FeedType> = name.parse().ok();
        feeds.types = feeds.types.with(types.unwrap_or_default());
        match FeedName::parse(&name) {
            Ok(name) => feeds.names.push(name),
            Err(_) if types.is_some() => {}
            Err(error) => return Err(place.wrong(error.to_string())),
        }
    }
    Ok(feeds)
}

fn test(fields: &mut Fields, notes: &mut Vec<Problem>) -> Result<Test, Problem> {
    let (pattern, unless) = (fields.text("match")?, fields.text("unless")?);
    if let Some(place) = fields.flag_at("rest")? {
        return match (pattern, unless) {
            (None, None) => Ok(Test::Rest),
            _ => {
                Err(place
                    .wrong("rest takes the products that no earlier rule took; leave match and unless out"))
            }
        };
    }
    let (place, text) = pattern.unwrap_or_else(|| (fields.place().clone(), ".*".to_owned()));
    let pattern = compiled(&place, &text, notes)?;
    let unless = unless.map(|(place, text)| compiled(&place, &text, notes)).transpose()?;
    Ok(Test::Id { pattern, unless })
}

fn compiled(place: &Place, text: &str, notes: &mut Vec<Problem>) -> Result<Ere, Problem> {
    let (ere, note) = Ere::compile(text).map_err(|error| place.wrong(error.to_string()))?;
    notes.extend(note.map(|note| place.wrong(note)));
    Ok(ere)
}

fn action(node: Node) -> Result<Action, Problem> {
    let place = node.place.clone();
    if matches!(&node.value, Value::Text(text) if text == "nothing") {
        return Ok(Action { place, kind: Kind::Nothing, limits: Limits::default() });
    }
    let mut fields = Fields::of(node, &ACTION_KEYS)?;
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    let kind = match kinds[..] {
        ["file"] => file(&mut fields)?,
        ["pipe"] => pipe(&mut fields)?,
        ["exec"] => {
            let command = command(&mut fields, "exec")?;
            Kind::Program(ProgramAction { command, wait: fields.flag("wait")? })
        }
        ["publish"] => Kind::Publish(Box::new(publish::publisher(&mut fields)?)),
        _ => return Err(place.wrong("an action is one of file, pipe, exec, publish, or the word nothing")),
    };
    let limits = limits(&mut fields)?;
    fields.all_used(kinds.first().copied().unwrap_or_default())?;
    Ok(Action { place, kind, limits })
}

fn file(fields: &mut Fields) -> Result<Kind, Problem> {
    let (place, path) = fields.text("file")?.ok_or_else(|| fields.place().wrong("file needs a path"))?;
    Ok(Kind::File(FileAction {
        path: Template::parse(&path).map_err(|sentence| place.wrong(sentence))?,
        overwrite: fields.flag("overwrite")?,
        close: fields.flag("close")?,
        flush: fields.flag("flush")?,
        log: fields.flag("log")?,
        shape: shape(fields)?,
    }))
}

fn pipe(fields: &mut Fields) -> Result<Kind, Problem> {
    let command = command(fields, "pipe")?;
    Ok(Kind::Pipe(PipeAction { command, close: fields.flag("close")?, shape: shape(fields)?.for_pipe() }))
}

fn command(fields: &mut Fields, key: &str) -> Result<Vec<Template>, Problem> {
    let words = fields.command(key)?;
    if words.is_empty() {
        return Err(fields.place().wrong(format!("{key} needs a program")));
    }
    words
        .into_iter()
        .map(|(place, word)| Template::parse(&word).map_err(|sentence| place.wrong(sentence)))
        .collect()
}

fn shape(fields: &mut Fields) -> Result<Shape, Problem> {
    Ok(Shape {
        strip: fields.flag("strip")?,
        without_wmo_header: fields.flag("without-wmo-header")?,
        metadata: fields.flag("metadata")?,
        data: fields.choice("data")?.unwrap_or(true),
    })
}

fn limits(fields: &mut Fields) -> Result<Limits, Problem> {
    let time = fields.read("time-limit", units::duration)?;
    let attempts = fields.read("attempts", |text| {
        let number = text.parse().ok().filter(|number| (1..=MOST_ATTEMPTS).contains(number));
        number.ok_or_else(|| format!("{text:?} is not a number of attempts; write 1 to {MOST_ATTEMPTS}"))
    })?;
    Ok(Limits { time, attempts })
}

fn scour_rule(node: Node) -> Result<ScourRule, Problem> {
    let place = node.place.clone();
    let mut fields = Fields::of(
        node,
        &["directory", "files", "older-than", "at-most", "keep-free", "remove-empty-directories"],
    )?;
    let directory = fields.text("directory")?.ok_or_else(|| place.wrong("scour needs a directory"))?;
    let rule = ScourRule {
        place: place.clone(),
        directory: directory.1,
        files: fields.text("files")?.map_or_else(|| "*".to_owned(), |(_, files)| files),
        older_than: fields.read("older-than", units::duration)?,
        at_most_bytes: fields.read("at-most", units::bytes)?,
        keep_free: fields.read("keep-free", scour::keep_free)?,
        remove_empty_directories: fields.flag("remove-empty-directories")?,
    };
    if rule.older_than.is_none() && !rule.counts() {
        return Err(place.wrong("the rule would remove nothing; give older-than, at-most or keep-free"));
    }
    rule.checked().map_err(|sentence| directory.0.wrong(sentence))
}

const KINDS: [&str; 4] = ["file", "pipe", "exec", "publish"];
const ACTION_KEYS: [&str; 16] = [
    "file",
    "pipe",
    "exec",
    "publish",
    "overwrite",
    "close",
    "flush",
    "log",
    "wait",
    "strip",
    "without-wmo-header",
    "metadata",
    "data",
    "time-limit",
    "attempts",
    "nothing",
];
const MOST_ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use downburst_model::{ProductId, WallMicros};
    use proptest::prelude::*;

    use super::*;
    use crate::{Product, What};

    const EXAMPLE: &str = r"
actions:
  - feeds: [IDS|DDPLUS, radar]
    match: '^(S)[AP](..)'
    unless: KWBC
    do:
      - file: 'data/\1/%Y/\2'
        overwrite: true
        metadata: true
      - pipe: [decode, -v, 'a \2']
        close: yes
        data: false
        time-limit: 2m
        attempts: 5
      - exec: notify -m '\1 x'
        wait: true
  - feeds: NGRID
    do: [nothing]
  - rest: true
    do:
      - file: data/rest
scour:
  - directory: data/radar
    files: '*.nc'
    older-than: 2d12h
    at-most: 20 GB
    keep-free: 10%
    remove-empty-directories: true
";

    fn done(rules: &Rules, feed: &str, id: &str) -> Vec<What> {
        let (feed, id) = (FeedName::parse(feed).unwrap(), ProductId::parse(id).unwrap());
        let types = feed.as_str().parse().unwrap_or_default();
        let product = Product { feed: &feed, types, id: &id, created: WallMicros(0), sequence: 1 };
        rules.due(&product).into_iter().map(|due| due.what.unwrap()).collect()
    }

    #[test]
    fn the_example_says_what_pqact_could() {
        let read = read("rules.yaml", EXAMPLE);
        assert_eq!((&read.errors[..], &read.notes[..]), (&[][..], &[][..]));
        let rules = &read.found.actions;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let all = [
            What::File("data/S/1970/UX".to_owned()),
            What::Pipe(words(&["decode", "-v", "a UX"])),
            What::Program(words(&["notify", "-m", "S x"])),
        ];
        assert_eq!(done(rules, "DDPLUS", "SAUX"), all);
        assert_eq!(done(rules, "radar", "SPUX"), all);
        assert_eq!(done(rules, "IDS", "SAUX KWBC"), [What::File("data/rest".to_owned())]);
        assert_eq!(done(rules, "NGRID", "x"), [What::Nothing]);
        let Kind::Pipe(pipe) = &rules.rules[0].actions[1].kind else { panic!("a pipe") };
        assert!(pipe.close && !pipe.shape.data && pipe.shape.metadata);
        let limits = rules.rules[0].actions[1].limits;
        assert_eq!((limits.time.unwrap().as_secs(), limits.attempts), (120, Some(5)));
        assert_eq!(rules.rules[0].actions[1].place.line, 10);
        assert!(read.found.scour[0].remove_empty_directories && read.found.scour[0].counts());
    }

    #[test]
    fn errors_name_the_line_and_what_to_do() {
        for (text, line, part) in [
            ("actions: 5", 1, "a list"),
            ("action:\n  - do: []", 1, "actions, scour"),
            ("actions:\n  - match: '('\n    do: []", 2, "not closed"),
            ("actions:\n  - do:\n      - file: a\n        pipe: b", 3, "one of file, pipe, exec"),
            ("actions:\n  - do:\n      - file: a\n        wait: true", 4, "wait is not for file"),
            ("actions:\n  - do:\n      - file: a\n        close: perhaps", 4, "true or false"),
            ("actions:\n  - do:\n      - exec: a\n        time-limit: 5", 4, "not a length of time"),
            ("actions:\n  - do:\n      - exec: a\n        attempts: 0", 4, "not a number of attempts"),
            ("actions:\n  - rest: true\n    match: a\n    do: []", 2, "leave match"),
            ("actions:\n  - feeds: a b\n    do: []", 2, "holds ' '"),
            ("scour:\n  - directory: data/x", 2, "would remove nothing"),
            ("scour:\n  - directory: /\n    older-than: 1d", 2, "further down"),
            ("a: *b", 1, ""),
            ("a: &b x\nc: *b", 2, "aliases"),
            ("actions: []\nactions: []", 2, "twice"),
            ("actions: [\n", 2, "not valid YAML"),
        ] {
            let read = read("r.yaml", text);
            let errors = [read.errors, read.set_aside].concat();
            assert!(!errors.is_empty(), "{text}");
            assert!(errors[0].to_string().contains(part), "{text}: {}", errors[0]);
            assert_eq!(errors[0].place.line, line, "{text}: {}", errors[0]);
        }
    }

    #[test]
    fn every_rule_that_is_wrong_is_named() {
        let text = "actions:\n  - match: '('\n  - match: ')('\n  - do: [nothing]\n";
        let read = read("r.yaml", text);
        assert_eq!((read.set_aside.len(), read.found.actions.rules.len()), (2, 1));
    }

    #[test]
    fn an_empty_file_has_no_rules() {
        let read = read("r.yaml", "# nothing yet\n");
        assert!(read.errors.is_empty() && read.found.actions.rules.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "(?s).{0,120}|([ ]{0,6}[-a-z]{0,8}: ?['\\[\\]{}a-z0-9,*&!|>-]{0,9}\n){0,9}",
        ) {
            let _ = read("r.yaml", &text);
        }

        #[test]
        fn the_example_with_something_changed_is_read_or_refused(at in 0usize..700, byte in "[ -~\n]") {
            let mut text = EXAMPLE.to_owned();
            if text.is_char_boundary(at) && at < text.len() {
                text.replace_range(at..at + 1, &byte);
            }
            let _ = read("r.yaml", &text);
        }
    }
}
