//! Shows the effect of rules on products that are already in a log.
use std::collections::BTreeSet;

use downburst_actions::{Action, Product, Rules};
use downburst_log::StoredEntry;
use downburst_model::{Sequence, WallMicros};
use serde::Serialize;

use super::super::scour::now;
use super::super::shared::types_of;
use super::super::task;
use super::{FindLogs, Outcome, RunArguments, rules_of, say};

/// The effect of one action.
#[derive(Debug, Serialize)]
struct RuleCount {
    rule: String,
    action: &'static str,
    products: u64,
    bytes: u64,
    /// Different files or commands.
    targets: usize,
    /// Products for which the action is impossible.
    impossible: u64,
    examples: Vec<Example>,
    #[serde(skip)]
    seen: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
struct Example {
    id: String,
    /// The file or the command, or the reason for having none.
    does: String,
}

/// The result of a rehearsal.
#[derive(Debug, Default, Serialize)]
struct Rehearsal {
    products: u64,
    /// Products to which no rule applies.
    untaken: u64,
    rules: Vec<RuleCount>,
}

pub(super) fn run(arguments: &RunArguments, logs: FindLogs) -> Outcome {
    let files = rules_of(&arguments.files)?;
    let length = downburst_actions::duration(&arguments.last)?;
    let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    let since = WallMicros(now().0.saturating_sub(micros));
    let said = super::types_of(&arguments.feed_type);
    let mut rehearsal = Rehearsal::new(&files);
    for reader in logs(&arguments.dir)? {
        let types = types_of(&said, reader.feed());
        for entry in reader.entries(Sequence(0)) {
            let entry = entry.map_err(|error| error.to_string())?;
            if entry.info.stored >= since && !entry.info.id.is_heartbeat() {
                rehearsal.take(&files, &entry, types, arguments.examples);
            }
        }
    }
    if arguments.json {
        let value = serde_json::to_string(&rehearsal).map_err(|error| error.to_string())?;
        say(&value);
    } else {
        rehearsal.print();
    }
    Ok(true)
}

impl Rehearsal {
    fn new(files: &[Rules]) -> Self {
        let actions = actions(files);
        let count = |action: &Action| RuleCount {
            rule: action.place.to_string(),
            action: action.word(),
            products: 0,
            bytes: 0,
            targets: 0,
            impossible: 0,
            examples: Vec::new(),
            seen: BTreeSet::new(),
        };
        Self { rules: actions.into_iter().map(count).collect(), ..Self::default() }
    }

    fn take(
        &mut self,
        files: &[Rules],
        entry: &StoredEntry,
        types: downburst_ldm6::FeedType,
        examples: usize,
    ) {
        let info = &entry.info;
        let sequence = task::sequence(info, entry.source.as_ref());
        let (feed, id) = (&info.key.feed, &info.id);
        let product = Product { feed, types, id, created: info.created, sequence };
        self.products += 1;
        let mut taken = false;
        for due in files.iter().flat_map(|rules| rules.due(&product)) {
            taken = true;
            let (rule, action) = (due.action.place.to_string(), due.action.word());
            let same = |count: &&mut RuleCount| count.rule == rule && count.action == action;
            let Some(count) = self.rules.iter_mut().find(same) else { continue };
            count.products += 1;
            count.bytes += info.size;
            let does = match due.what {
                Ok(what) => task::words(&what),
                Err(sentence) => {
                    count.impossible += 1;
                    sentence
                }
            };
            if count.examples.len() < examples {
                count.examples.push(Example { id: id.as_str().to_owned(), does: does.clone() });
            }
            if count.seen.len() < MOST_TARGETS {
                count.seen.insert(does);
            }
            count.targets = count.seen.len();
        }
        self.untaken += u64::from(!taken);
    }

    fn print(&self) {
        for count in &self.rules {
            let RuleCount { rule, action, products, bytes, targets, impossible, examples, .. } = count;
            say(&format!("{rule}: {action}: {products} products, {bytes} bytes, {targets} targets"));
            if *impossible > 0 {
                say(&format!("    for {impossible} of them it can't be done"));
            }
            for example in examples {
                say(&format!("    {} -> {}", example.id, example.does));
            }
        }
        say(&format!("{} products, {} of them taken by no rule", self.products, self.untaken));
    }
}

fn actions(files: &[Rules]) -> Vec<&Action> {
    files.iter().flat_map(|file| &file.rules).flat_map(|rule| &rule.actions).collect()
}

/// Limit of the count of different targets.
const MOST_TARGETS: usize = 100_000;
