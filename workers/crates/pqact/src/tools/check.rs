//! Checks files of rules as a receiver reads them; `downburst import ldm` uses this too, so that both judge alike.
use std::path::PathBuf;

use downburst_actions::{Action, Kind, Problem, Read, Rule, Rules, Shape, Template, Test};
use serde_json::{Value, json};

use super::super::active_rules;
use super::{Outcome, say};

pub(super) fn check(files: &[PathBuf], as_json: bool) -> Outcome {
    let (mut well, mut said) = (true, Vec::new());
    for path in files {
        let read = active_rules::read_rules(path)?;
        well &= read.errors.is_empty() && read.set_aside.is_empty();
        if as_json {
            said.push(described(path, &read));
        } else {
            print(path, &read);
        }
    }
    if as_json {
        say(&json!({ "files": said }).to_string());
    }
    Ok(well)
}

fn print(path: &std::path::Path, read: &Read<Rules>) {
    read.errors.iter().for_each(|error| say(&error.to_string()));
    read.set_aside.iter().for_each(|rule| say(&format!("{rule} (set aside)")));
    read.notes.iter().for_each(|note| say(&format!("{note} (note)")));
    let wrong = read.errors.len() + read.set_aside.len();
    say(&format!("{}: {} rules, {wrong} errors", path.display(), read.found.rules.len()));
}

fn described(path: &std::path::Path, read: &Read<Rules>) -> Value {
    let list = |problems: &[Problem]| problems.iter().map(problem).collect::<Vec<_>>();
    let entries = read.found.rules.iter().flat_map(|rule| rule.actions.iter().map(|one| entry(rule, one)));
    json!({
        "file": path,
        "rules": read.found.rules.len(),
        "errors": list(&read.errors),
        "set_aside": list(&read.set_aside),
        "notes": list(&read.notes),
        "entries": entries.collect::<Vec<_>>(),
    })
}

fn problem(problem: &Problem) -> Value {
    let Problem { place, sentence } = problem;
    json!({"file": &*place.file, "line": place.line, "sentence": sentence})
}

/// Describes an action in the terms of pqact.conf; `feed_types` are LDM's bits, and `words` a path or a command.
fn entry(rule: &Rule, action: &Action) -> Value {
    let pattern = match &rule.test {
        Test::Id { pattern, .. } => Some(pattern.text()),
        Test::Rest => None,
    };
    let (options, words) = match &action.kind {
        Kind::Nothing => (Vec::new(), &[][..]),
        Kind::File(file) => {
            let own = [
                ("overwrite", file.overwrite),
                ("close", file.close),
                ("flush", file.flush),
                ("log", file.log),
            ];
            (options(&own, file.shape), std::slice::from_ref(&file.path))
        }
        Kind::Pipe(pipe) => (options(&[("close", pipe.close)], pipe.shape), &pipe.command[..]),
        Kind::Program(program) => {
            (options(&[("wait", program.wait)], Shape::default()), &program.command[..])
        }
        Kind::Publish(_) => (Vec::new(), &[][..]),
    };
    json!({
        "file": &*action.place.file,
        "line": action.place.line,
        "feed_types": rule.feeds.types.bits(),
        "feeds": rule.feeds.names.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        "pattern": pattern,
        "does": action.word(),
        "options": options,
        "words": words.iter().map(Template::text).collect::<Vec<_>>(),
    })
}

fn options(own: &[(&'static str, bool)], shape: Shape) -> Vec<&'static str> {
    let of_shape = [
        ("strip", shape.strip),
        ("removewmo", shape.without_wmo_header),
        ("metadata", shape.metadata),
        ("nodata", !shape.data),
    ];
    own.iter().chain(&of_shape).filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect()
}
