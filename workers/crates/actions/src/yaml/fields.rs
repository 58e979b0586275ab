//! The named values of a map.
use super::tree::{Node, Value};
use crate::{Place, Problem};

/// A map whose values are taken one by one.
pub(super) struct Fields {
    place: Place,
    pairs: Vec<(Place, String, Node)>,
}

impl Fields {
    /// Returns the map's fields; refuses a key that is not `known`.
    pub(super) fn of(node: Node, known: &[&str]) -> Result<Self, Problem> {
        let Value::Map(pairs) = node.value else {
            return Err(node.place.wrong(format!("a map is expected here, with {}", known.join(", "))));
        };
        let mut fields = Self { place: node.place, pairs: Vec::new() };
        for (key, value) in pairs {
            let Value::Text(name) = key.value else { return Err(key.place.wrong("a key is a word")) };
            if !known.contains(&name.as_str()) {
                return Err(key
                    .place
                    .wrong(format!("unknown key {name:?}; the keys here are {}", known.join(", "))));
            }
            fields.pairs.push((key.place, name, value));
        }
        Ok(fields)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(_, name, _)| name == key)
    }

    fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.pairs.iter().position(|(_, name, _)| name == key)?;
        Some(self.pairs.remove(at).2)
    }

    /// A list; an empty one if absent.
    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Node>, Problem> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Node { value: Value::List(items), .. }) => Ok(items),
            Some(node) => Err(node.place.wrong(format!("{key} is a list; begin each item with a dash"))),
        }
    }

    /// The fields of a map.
    pub(super) fn map(&mut self, key: &str, known: &[&str]) -> Result<Option<Self>, Problem> {
        self.take(key).map(|node| Self::of(node, known)).transpose()
    }

    /// A text that has to be there, parsed by `read`.
    pub(super) fn needed<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Problem> {
        let found = self.read(key, read)?;
        found.ok_or_else(|| self.place.wrong(format!("{key} is missing; every rule of this kind needs it")))
    }

    /// A text and its line.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<(Place, String)>, Problem> {
        self.take(key).map(|node| text(node, key)).transpose()
    }

    /// A text or a list of texts.
    pub(super) fn words(&mut self, key: &str) -> Result<Vec<(Place, String)>, Problem> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Node { value: Value::List(items), .. }) => {
                items.into_iter().map(|item| text(item, key)).collect()
            }
            Some(node) => Ok(vec![text(node, key)?]),
        }
    }

    /// The words of a command: a list, or a text with words separated by blanks, in quotes if they contain some.
    pub(super) fn command(&mut self, key: &str) -> Result<Vec<(Place, String)>, Problem> {
        match self.take(key) {
            Some(Node { value: Value::Text(line), place }) => {
                let words = split(&line).map_err(|sentence| place.wrong(sentence))?;
                Ok(words.into_iter().map(|word| (place.clone(), word)).collect())
            }
            Some(Node { value: Value::List(items), .. }) => {
                items.into_iter().map(|item| text(item, key)).collect()
            }
            Some(node) => Err(node.place.wrong(format!("{key} is a program with its arguments"))),
            None => Ok(Vec::new()),
        }
    }

    /// A text parsed by `read`.
    pub(super) fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Problem> {
        let Some((place, text)) = self.text(key)? else { return Ok(None) };
        read(&text).map(Some).map_err(|sentence| place.wrong(sentence))
    }

    /// A boolean, if present.
    pub(super) fn choice(&mut self, key: &str) -> Result<Option<bool>, Problem> {
        self.read(key, |text| match text {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(format!("{key} is true or false")),
        })
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, Problem> {
        Ok(self.choice(key)?.unwrap_or_default())
    }

    /// The line of a flag that is set.
    pub(super) fn flag_at(&mut self, key: &str) -> Result<Option<Place>, Problem> {
        let place = self.pairs.iter().find(|(_, name, _)| name == key).map(|(place, ..)| place.clone());
        let set = self.flag(key)?;
        Ok(place.filter(|_| set))
    }

    /// Refuses unused fields, which have no meaning for this kind.
    pub(super) fn all_used(&self, kind: &str) -> Result<(), Problem> {
        match self.pairs.first() {
            None => Ok(()),
            Some((place, name, _)) => Err(place.wrong(format!("{name} is not for {kind}; leave it out"))),
        }
    }
}

fn text(node: Node, key: &str) -> Result<(Place, String), Problem> {
    match node.value {
        Value::Text(text) => Ok((node.place, text)),
        _ => Err(node.place.wrong(format!("{key} is a text here"))),
    }
}

/// Splits words as the shell does, by blanks and quotes of both kinds; nothing else has a meaning.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for next in line.chars() {
        match (quote, next) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(next),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed; close it, or write the command as a list".to_owned());
    }
    words.extend(word);
    Ok(words)
}
