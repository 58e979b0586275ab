//! The actions due for a product.
use downburst_ldm6::FeedType;
use downburst_model::{FeedName, ProductId, WallMicros};

use crate::template::Substitutions;
use crate::{Action, Kind, Rules, Template, Test};

/// The properties of a product that rules test.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Its feed.
    pub feed: &'a FeedName,
    /// The feed type of that feed in LDM; none if LDM has no name for it.
    pub types: FeedType,
    /// Its identifier.
    pub id: &'a ProductId,
    /// The time of its creation at the source.
    pub created: WallMicros,
    /// The value of `(seq)`.
    pub sequence: u32,
}

/// An action that is due.
#[derive(Clone, Debug)]
pub struct Due<'r> {
    /// The number of its rule, from 0.
    pub rule: usize,
    /// The action.
    pub action: &'r Action,
    /// The action with the product's values substituted, or the reason that it can't be done.
    pub what: Result<What, String>,
}

/// An action with a product's values substituted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing.
    Nothing,
    /// Write to this file.
    File(String),
    /// Write to this program.
    Pipe(Vec<String>),
    /// Start this program.
    Program(Vec<String>),
    /// Announce it in WIS2.
    Publish,
}

impl Rules {
    /// The actions due for a product, in order.
    pub fn due(&self, product: &Product<'_>) -> Vec<Due<'_>> {
        let (mut due, mut taken) = (Vec::new(), false);
        for (number, rule) in self.rules.iter().enumerate() {
            if !rule.feeds.has(product.feed, product.types) {
                continue;
            }
            let Some(groups) = rule.test.groups(product, taken) else { continue };
            taken = true;
            let known =
                Substitutions { groups: &groups, created: product.created, sequence: product.sequence };
            due.extend(rule.actions.iter().map(|action| Due {
                rule: number,
                action,
                what: action.resolve(&known),
            }));
        }
        due
    }
}

impl Test {
    /// The matches of the pattern's groups, if the rule applies to the product.
    fn groups<'t>(&self, product: &Product<'t>, taken: bool) -> Option<Vec<Option<&'t str>>> {
        let id = product.id.as_str();
        match self {
            Self::Id { unless: Some(unless), .. } if unless.matches(id) => None,
            Self::Id { pattern, .. } => pattern.groups(id),
            Self::Rest => (!taken && !id.starts_with('_')).then(|| vec![Some(id)]),
        }
    }
}

impl Action {
    fn resolve(&self, known: &Substitutions<'_>) -> Result<What, String> {
        let words = |command: &[Template]| -> Vec<String> {
            command.iter().map(|word| word.resolve(known)).collect()
        };
        Ok(match &self.kind {
            Kind::Nothing => What::Nothing,
            Kind::File(action) => What::File(action.path.resolve_path(known)?),
            Kind::Pipe(action) => What::Pipe(words(&action.command)),
            Kind::Program(action) => What::Program(words(&action.command)),
            Kind::Publish(_) => What::Publish,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pqact;

    const TEXT: &str = "ANY\ta\tFILE\tone\nANY\tb\tPIPE\ttwo\nANY\t^_ELSE_$\tEXEC\tthree \\0\nANY\tc\tPIPE\ttwo\n\
        ANY\tc\tNOOP\nANY\t^_ELSE_$\tFILE\tfour\n";

    fn due(rules: &Rules, id: &str) -> Vec<(String, What)> {
        let (feed, id) = (FeedName::parse("x").unwrap(), ProductId::parse(id).unwrap());
        let product =
            Product { feed: &feed, types: FeedType::NONE, id: &id, created: WallMicros(0), sequence: 1 };
        rules.due(&product).into_iter().map(|due| (due.action.line(), due.what.unwrap())).collect()
    }

    proptest! {
        /// Each line evaluates its own part of the rules only, and together the lines do the same as all rules.
        #[test]
        fn lines_do_together_what_the_rules_do(id in "[a-d]{1,3}") {
            let rules = pqact::read("pqact.conf", TEXT, &mut |_| Err(String::new())).found;
            let all = due(&rules, &id);
            prop_assert!(!all.is_empty());
            for line in rules.lines() {
                let own = due(&rules.only(&line), &id);
                let wanted: Vec<_> = all.iter().filter(|(of, _)| *of == line).cloned().collect();
                prop_assert_eq!(own, wanted);
            }
        }
    }

    #[test]
    fn a_line_looks_at_no_more_rules_than_it_has_to() {
        let rules = pqact::read("pqact.conf", TEXT, &mut |_| Err(String::new())).found;
        assert_eq!(rules.only("pipe\0two").rules.len(), 2);
        assert_eq!(rules.only("exec\0three\0\\0").rules.len(), 3);
        assert_eq!(rules.only("file").rules.len(), 6, "what nothing else took");
    }
}
