//! Appending with sequences assigned by a store that many nodes share and of which this log keeps a copy.
//!
//! A product is checked and compared with the products known here, then numbered by the store, then written here.
//! Once it has its number it is stored, whether or not the copy could be written.

use std::{
    collections::VecDeque,
    io::{self, Read},
};

use bytes::Bytes;
use downburst_model::{Pieces, ProductInfo, Sequence};

use crate::{
    Appended, Clock, FeedLog, LogError, NewProduct,
    feed_log::copy::Description,
    feed_log::draft::Source,
    feed_log::group::{Checked, Failure, Group, Member, Results, set},
    feed_log::room::Room,
    feed_log::writer::{Numbers, Writer},
    segment::record::Header,
};

/// A complete, checked product that is not a duplicate and has no sequence yet.
pub struct Draft<'a> {
    header: &'a Header,
    bytes: Option<&'a Bytes>,
    place: usize,
}

impl Draft<'_> {
    /// The log's description of it, for [`Given::read`](crate::Given::read).
    pub fn description(&self) -> Vec<u8> {
        Description::of(self.header).to_cbor()
    }

    /// Its bytes, unless it came from a reader.
    pub fn bytes(&self) -> Option<&Bytes> {
        self.bytes
    }

    /// Its position in the call.
    pub fn place(&self) -> usize {
        self.place
    }
}

/// Assigns sequences to a group of products: one each, rising, and above all assigned before. `None` on failure.
pub type NumberAll<'a> = &'a mut dyn FnMut(&[Draft<'_>]) -> Option<Vec<Sequence>>;

/// Assigns a sequence to a product, above all assigned before.
pub type NumberOne<'a> = &'a mut dyn FnMut(&Draft<'_>) -> Result<Sequence, LogError>;

/// The outcome for a group.
#[derive(Debug)]
pub struct Numbered {
    /// By position in the call. `None`: the product got no sequence, and the log holds nothing of it.
    pub results: Vec<Option<Result<Appended, LogError>>>,
    /// The error if the copy lacks products that are stored.
    pub copied: Result<(), LogError>,
}

impl FeedLog {
    /// Appends products whose bytes are in memory under the sequences that `number` assigns, in as many groups as
    /// necessary.
    pub fn append_all_numbered(
        &self,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
        number: NumberAll<'_>,
    ) -> Numbered {
        let options = self.options();
        let mut results: Results = Vec::with_capacity(products.len());
        let mut waiting = VecDeque::with_capacity(products.len());
        for (at, (product, bytes)) in products.into_iter().enumerate() {
            let checked = Checked::new(at, product, bytes, &options).map(Checked::in_segment);
            results.push(checked.map(|checked| waiting.push_back(checked)).err().map(Err));
        }
        let mut writer = self.writer();
        let mut copied = Ok(());
        while !waiting.is_empty() && copied.is_ok() {
            copied = self.append_some_numbered(&mut writer, &mut waiting, &mut results, clock, number);
        }
        Numbered { results, copied }
    }

    /// Like [`append_all_numbered`](Self::append_all_numbered), for one product of any size. Also returns the
    /// reason if the copy lacks it.
    pub fn append_numbered(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
        number: NumberOne<'_>,
    ) -> (Result<Appended, LogError>, Result<(), LogError>) {
        let mut numbered: Option<ProductInfo> = None;
        let mut ask = |header: &Header| {
            let sequence = number(&Draft { header, bytes: None, place: 0 })?;
            numbered = Some(self.info(&Header { sequence: sequence.0, ..header.clone() }));
            Ok(sequence.0)
        };
        let appended = self.append_as(
            &mut self.writer(),
            product,
            Source::Reader(bytes),
            clock,
            Numbers::Asked(&mut ask),
        );
        match (appended, numbered) {
            (Err(error), Some(info)) => {
                (Ok(Appended::Stored { sequence: info.key.sequence, info }), Err(error))
            }
            (appended, _) => (appended, Ok(())),
        }
    }

    fn append_some_numbered(
        &self,
        writer: &mut Writer,
        waiting: &mut VecDeque<Checked>,
        results: &mut Results,
        clock: Clock<'_>,
        number: NumberAll<'_>,
    ) -> Result<(), LogError> {
        let options = self.options();
        let first = waiting.front().map_or(Room::NONE, Checked::room);
        let limits = match self.begin(writer, first, waiting.len(), &options) {
            Ok(limits) => limits,
            Err(error) => {
                if let Some(refused) = waiting.pop_front() {
                    set(results, refused.at, Err(error));
                }
                return Ok(());
            }
        };
        let mut group = Group::default();
        let provisional = writer.next();
        self.stage(writer, waiting, results, &mut group, limits, clock);
        self.forget_keys(&group);
        if group.members.is_empty() {
            return Ok(());
        }
        let given = number(&drafts(&group)).filter(|given| given.len() == group.members.len());
        repeat_the_given(results, provisional, given.as_deref());
        let Some(given) = given else { return Ok(()) };
        let given: Vec<u64> = given.into_iter().map(|sequence| sequence.0).collect();
        self.copy_numbered(writer, group, &given, results)
    }

    /// From here on the products are stored, and only the copy can fail.
    fn copy_numbered(
        &self,
        writer: &mut Writer,
        group: Group,
        given: &[u64],
        results: &mut Results,
    ) -> Result<(), LogError> {
        for (member, sequence) in group.members.iter().zip(given) {
            let info = self.info(&Header { sequence: *sequence, ..member.header.clone() });
            set(results, member.at, Ok(Appended::Stored { sequence: info.key.sequence, info }));
        }
        let renumbered = group.renumbered(given, self.identity.salt);
        let group = renumbered.ok_or_else(|| self.copy_failed(writer, io::ErrorKind::InvalidInput.into()))?;
        self.remember_keys(&group);
        self.commit_copy(writer, group, results)
    }

    /// Writes a group whose keys are entered; if that fails, the keys are removed.
    pub(crate) fn commit_copy(
        &self,
        writer: &mut Writer,
        group: Group,
        results: &mut Results,
    ) -> Result<(), LogError> {
        match self.commit(writer, &group, &self.options()) {
            Ok(()) => {
                self.publish_group(writer, group, results);
                Ok(())
            }
            Err(failure) => {
                self.forget_keys(&group);
                let error = match failure {
                    Failure::NothingWritten => io::ErrorKind::StorageFull.into(),
                    Failure::Doubtful(error) => error,
                };
                Err(self.copy_failed(writer, error))
            }
        }
    }

    fn remember_keys(&self, group: &Group) {
        let mut keys = self.keys();
        group.rows().iter().for_each(|row| keys.insert(row));
    }

    fn copy_failed(&self, writer: &Writer, error: io::Error) -> LogError {
        match writer.active() {
            Some(active) => active.failed("write", error),
            None => self.closed(),
        }
    }
}

fn drafts(group: &Group) -> Vec<Draft<'_>> {
    group.members.iter().map(draft).collect()
}

fn draft(member: &Member) -> Draft<'_> {
    let bytes = match &member.bytes {
        Pieces::One(bytes) => Some(bytes),
        Pieces::Many(_) => None,
    };
    Draft { header: &member.header, bytes, place: member.at }
}

/// Gives a product that repeats one of its own group the outcome of that one.
fn repeat_the_given(results: &mut Results, provisional: u64, given: Option<&[Sequence]>) {
    for result in results {
        let Some(Ok(Appended::Duplicate { of })) = result else { continue };
        let Some(place) = of.0.checked_sub(provisional) else { continue };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        match given.and_then(|given| given.get(place)) {
            Some(sequence) => *of = *sequence,
            None => *result = None,
        }
    }
}
