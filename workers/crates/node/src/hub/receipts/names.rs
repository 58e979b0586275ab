//! Names as small numbers: a column with its dictionary.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_array::types::Int16Type;
use arrow_array::{ArrayRef, DictionaryArray, Int16Array};
use arrow_schema::ArrowError;

/// A column of names: each row has the number of one.
#[derive(Default)]
pub(super) struct NameColumn {
    names: Names,
    rows: Vec<i16>,
}

impl NameColumn {
    /// An empty column of names that are known in advance, numbered in this order.
    pub(super) fn of(names: &[&str]) -> Self {
        Self { names: Names::of(names), rows: Vec::new() }
    }

    /// The number of a name; `None` if the column has no room for another.
    pub(super) fn number(&mut self, name: &str) -> Option<i16> {
        self.names.number(name)
    }

    /// Adds a row with the name of this number.
    pub(super) fn push(&mut self, number: i16) {
        self.rows.push(number);
    }

    /// The rows as an array; the column is empty afterwards, and its names keep their numbers.
    pub(super) fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        self.names.column(std::mem::take(&mut self.rows))
    }
}

/// The names of one column of one file, numbered in the order of arrival.
#[derive(Default)]
struct Names {
    numbers: HashMap<Arc<str>, i16>,
    listed: Vec<Arc<str>>,
    /// Consecutive rows often have the same name.
    last: Option<(Arc<str>, i16)>,
    /// The array of the names in `listed` at the time it was made.
    array: Option<Arc<StringArray>>,
}

impl Names {
    /// Names that are known in advance, numbered in this order.
    fn of(names: &[&str]) -> Self {
        let mut numbered = Self::default();
        for name in names {
            numbered.number(name);
        }
        numbered
    }

    fn number(&mut self, name: &str) -> Option<i16> {
        if let Some((_, number)) = self.last.as_ref().filter(|(last, _)| **last == *name) {
            return Some(*number);
        }
        let number = self.find_or_add(name)?;
        self.last = Some((Arc::from(name), number));
        Some(number)
    }

    fn find_or_add(&mut self, name: &str) -> Option<i16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = i16::try_from(self.listed.len()).ok()?;
        let name: Arc<str> = Arc::from(name);
        self.listed.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        self.array = None;
        Some(number)
    }

    /// The column with these numbers. The dictionary stays the same object until a name is added, so that a
    /// stream holds it once.
    fn column(&mut self, numbers: Vec<i16>) -> Result<ArrayRef, ArrowError> {
        let listed = &self.listed;
        let values = self
            .array
            .get_or_insert_with(|| Arc::new(StringArray::from_iter_values(listed.iter().map(AsRef::as_ref))));
        let numbers = Int16Array::from(numbers);
        Ok(Arc::new(DictionaryArray::<Int16Type>::try_new(numbers, Arc::clone(values) as ArrayRef)?))
    }
}
