//! Lists, retries and drops permanently failed actions.
use std::path::Path;

use downburst_model::moment;

use super::super::children::Child;
use super::super::dead_letters::{DeadLetter, DeadLetters};
use super::super::failure::Failure;
use super::super::files::Files;
use super::super::pipes::Pipes;
use super::super::publishing::announce;
use super::super::stop::Stop;
use super::super::task::{Task, Work};
use super::{LettersArguments, Outcome, say};

pub(super) fn list(dir: &Path, json: bool) -> Outcome {
    let letters = all(dir)?;
    if json {
        let list: Vec<serde_json::Value> =
            letters.iter().map(|(name, letter)| described(name, letter)).collect();
        say(&serde_json::json!({ "failed": list }).to_string());
        return Ok(letters.is_empty());
    }
    for (name, letter) in &letters {
        let (at, product) = (moment::log_time(letter.at_us), &letter.product);
        let exit = letter.exit.map_or(String::new(), |exit| format!(" exit {exit}"));
        say(name);
        say(&format!("  {at} {} {} ({} bytes)", product.feed, product.id, product.size));
        say(&format!(
            "  {} {}{exit} after {} attempts",
            letter.task.rule,
            letter.task.work.words(),
            letter.attempts
        ));
        say(&format!("  {}", letter.error));
    }
    say(&format!("{} failed", letters.len()));
    Ok(letters.is_empty())
}

fn described(name: &str, letter: &DeadLetter) -> serde_json::Value {
    let mut value = serde_json::to_value(letter).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("name".to_owned(), name.into());
    }
    value
}

pub(super) fn retry(arguments: &LettersArguments) -> Outcome {
    let chosen = chosen(arguments)?;
    let directory = arguments.actions_dir.clone().unwrap_or_else(|| arguments.dir.join("data"));
    let directory = directory.canonicalize().map_err(|error| {
        format!("{} can't be used: {error}; give --actions-dir as receive has it", directory.display())
    })?;
    let letters = DeadLetters::new(&arguments.dir);
    let mut well = true;
    for (name, letter) in chosen {
        let done = again(&letters, &name, &letter, &directory);
        match done {
            Ok(()) => {
                letters.remove(&name).map_err(|error| format!("{name} stays in the list: {error}"))?;
                say(&format!("{name}: done"));
            }
            Err(sentence) => {
                well = false;
                say(&format!("{name}: {sentence}"));
            }
        }
    }
    Ok(well)
}

pub(super) fn drop_them(arguments: &LettersArguments) -> Outcome {
    let letters = DeadLetters::new(&arguments.dir);
    for (name, _) in chosen(arguments)? {
        letters.remove(&name).map_err(|error| format!("{name} can't be dropped: {error}"))?;
        say(&format!("{name}: dropped"));
    }
    Ok(true)
}

fn all(dir: &Path) -> Result<Vec<(String, DeadLetter)>, String> {
    if !dir.is_dir() {
        return Err(format!("{} is not a directory; check --dir", dir.display()));
    }
    DeadLetters::new(dir).all().map_err(|error| format!("{}/failed can't be read: {error}", dir.display()))
}

fn chosen(arguments: &LettersArguments) -> Result<Vec<(String, DeadLetter)>, String> {
    let mut letters = all(&arguments.dir)?;
    if let Some(unknown) =
        arguments.names.iter().find(|name| !letters.iter().any(|(known, _)| known == *name))
    {
        return Err(format!(
            "no failed product is called {unknown}; downburst-node actions failed lists the names"
        ));
    }
    if !arguments.names.is_empty() {
        letters.retain(|(name, _)| arguments.names.contains(name));
    }
    Ok(letters)
}

/// Makes one attempt; a long-running program ends with this product.
fn again(letters: &DeadLetters, name: &str, letter: &DeadLetter, directory: &Path) -> Result<(), String> {
    if !letter.has_bytes {
        return Err(
            "the product has left the site's log; ask the hub's operator to send it again, and drop this"
                .to_owned(),
        );
    }
    let product = letters.bytes(name).map_err(|error| format!("its product can't be read: {error}"))?;
    let bytes = letter.task.bytes(&letter.product, &product);
    attempt(&letter.task, &bytes, directory).map_err(|failure| failure.sentence)
}

fn attempt(task: &Task, bytes: &[u8], directory: &Path) -> Result<(), Failure> {
    let stop = Stop::default();
    match &task.work {
        Work::File { .. } => Files::new(directory).write(&task.work, bytes),
        Work::Pipe { command, .. } => {
            let work = Work::Pipe { command: command.clone(), close: true };
            Pipes::new(directory).write(&Task { work, ..task.clone() }, bytes, &stop)
        }
        Work::Exec { command, .. } => {
            let mut child = Child::start(command, directory, false)?;
            child.wait(std::time::Instant::now() + task.limit(), &stop)
        }
        Work::Publish { .. } => announce(&task.work, bytes, directory, task.limit()),
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{FeedName, Origin, ProductId, WallMicros};

    use super::super::super::failure::Then;
    use super::super::super::task::{About, Shaping};
    use super::*;

    fn letter(script: &str) -> DeadLetter {
        let work = Work::Exec { command: ["sh", "-c", script].map(str::to_owned).to_vec(), wait: true };
        let task = Task {
            rule: "pqact.conf:3".to_owned(),
            work,
            shape: Shaping::default(),
            limit_s: 60,
            attempts: 3,
        };
        let product = About {
            feed: FeedName::parse("NGRID").unwrap(),
            id: ProductId::parse("a/b").unwrap(),
            origin: Origin::parse("host").unwrap(),
            created_us: WallMicros(1_709_251_198_000_000),
            epoch: None,
            sequence: 7,
            log_sequence: 9,
            feed_type: 0,
            size: 3,
            via: None,
            stamp: None,
            properties: None,
        };
        let failure = Failure { exit: Some(3), sentence: "no".to_owned(), then: Then::Again };
        DeadLetter::new(WallMicros(5), product, task, 3, failure)
    }

    fn arguments(dir: &Path, names: &[&str]) -> LettersArguments {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        LettersArguments { dir: dir.to_owned(), actions_dir: Some(dir.to_owned()), names }
    }

    #[test]
    fn what_succeeds_leaves_the_list_and_the_rest_stays() {
        let site = tempfile::tempdir().unwrap();
        let letters = DeadLetters::new(site.path());
        let good = letters.put(&letter("echo x > done"), Some(b"abc")).unwrap();
        let bad = letters.put(&letter("exit 2"), Some(b"abc")).unwrap();
        assert_eq!(letters.put(&letter("exit 2"), Some(b"abc")).unwrap(), bad, "kept once");
        assert_eq!(retry(&arguments(site.path(), &[])), Ok(false));
        assert!(site.path().join("done").exists());
        assert!(!letters.has(&good) && letters.has(&bad));
        assert_eq!(list(site.path(), true), Ok(false));
        assert_eq!(letters.all().unwrap()[0].1, letter("exit 2"), "as it was written");
        assert!(retry(&arguments(site.path(), &["x"])).unwrap_err().contains("is called x"));
        assert_eq!(drop_them(&arguments(site.path(), &[&bad])), Ok(true));
        assert_eq!(list(site.path(), false), Ok(true));
    }
}
