//! A YAML document as a tree with line numbers.
use saphyr_parser::{Event, Parser};

use crate::{Place, Problem};

/// A value and its line.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Reads the only document of a text; `None` for an empty one.
pub(super) fn read(file: &str, text: &str) -> Result<Option<Node>, Problem> {
    let mut building = Building { open: Vec::new(), root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = Place::new(file, error.marker().line());
            place.wrong(format!("this is not valid YAML: {}; correct it there", error.info()))
        })?;
        building.take(event, Place::new(file, span.start.line().max(1)))?;
    }
    Ok(building.root)
}

struct Building {
    /// Open lists and maps, outermost first.
    open: Vec<Open>,
    root: Option<Node>,
}

struct Open {
    place: Place,
    is_map: bool,
    /// In a map, keys and values alternate.
    nodes: Vec<Node>,
}

impl Building {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, ..) => self.put(Node { place, value: Value::Text(text.into_owned()) }),
            Event::SequenceStart(..) => self.begin(place, false),
            Event::MappingStart(..) => self.begin(place, true),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.put(open.close()?),
                None => Ok(()),
            },
            Event::Alias(_) => Err(place.wrong("aliases (*name) are not supported; write it out")),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, is_map: bool) -> Result<(), Problem> {
        if self.open.len() >= DEEPEST {
            return Err(place.wrong("too many lists and maps within each other"));
        }
        self.open.push(Open { place, is_map, nodes: Vec::new() });
        Ok(())
    }

    fn put(&mut self, node: Node) -> Result<(), Problem> {
        match self.open.last_mut() {
            Some(open) => open.nodes.push(node),
            None if self.root.is_some() => {
                return Err(node.place.wrong("a second document begins; put everything into one"));
            }
            None => self.root = Some(node),
        }
        Ok(())
    }
}

impl Open {
    fn close(self) -> Result<Node, Problem> {
        let Self { place, is_map, nodes } = self;
        if !is_map {
            return Ok(Node { place, value: Value::List(nodes) });
        }
        let mut pairs: Vec<(Node, Node)> = Vec::new();
        let mut nodes = nodes.into_iter();
        while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
            let same = |(other, _): &(Node, Node)| match (&other.value, &key.value) {
                (Value::Text(a), Value::Text(b)) => a == b,
                _ => false,
            };
            if pairs.iter().any(same) {
                return Err(key.place.wrong("this key occurs twice; keep one"));
            }
            pairs.push((key, value));
        }
        Ok(Node { place, value: Value::Map(pairs) })
    }
}

/// The maximum depth of nested lists and maps; rules have five levels.
const DEEPEST: usize = 16;
