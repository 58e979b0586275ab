//! Duplicate keys: the remembered products that a product could repeat.

use std::collections::HashMap;

use downburst_model::{Digest, ProductId, ProductKey};

use crate::{
    DuplicateRule,
    feed_log::sources::Sources,
    segment::index::{Row, digest_print, id_print, signature_print, source_print},
    segment::record::Header,
};

/// The duplicate keys of all remembered products, as prints.
///
/// A hit only names a candidate; the caller compares the whole values. That keeps a key at 16 bytes in a
/// table that is at least half full; upstream keys that rise without gaps take none.
#[derive(Debug)]
pub(crate) struct Keys {
    rule: DuplicateRule,
    by_product: HashMap<u64, u64>,
    by_source: Sources,
}

/// The full values that make a product the same as another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Likeness<'a> {
    pub(crate) id: &'a ProductId,
    pub(crate) digest: &'a Digest,
    /// Digest and size after a WMO starting line.
    pub(crate) body: (&'a Digest, u64),
    pub(crate) signature: Option<&'a [u8; 16]>,
}

impl Keys {
    pub(crate) fn new(rule: DuplicateRule) -> Self {
        Self { rule, by_product: HashMap::new(), by_source: Sources::default() }
    }

    pub(crate) fn rule(&self) -> DuplicateRule {
        self.rule
    }

    pub(crate) fn insert(&mut self, row: &Row) {
        if let Some(key) = product_key(self.rule, row) {
            self.by_product.insert(key, row.sequence);
        }
        if row.prints.source != 0 {
            self.by_source.insert(row.prints.source, row.sequence);
        }
    }

    /// Removes a product whose memory expires, unless a later one replaced it.
    pub(crate) fn remove(&mut self, row: &Row) {
        if let Some(key) = product_key(self.rule, row) {
            remove_if_equal(&mut self.by_product, key, row.sequence);
        }
        if row.prints.source != 0 {
            self.by_source.remove(row.prints.source, row.sequence);
        }
    }

    /// The product that may be the same under the feed's rule.
    pub(crate) fn product_candidate(&self, likeness: &Likeness<'_>) -> Option<u64> {
        let (body, body_size) = likeness.body;
        let has_content = body_size > 0;
        let (id, digest) = (id_print(likeness.id), digest_print(likeness.digest));
        let key = match self.rule {
            DuplicateRule::Content => has_content.then_some(digest),
            DuplicateRule::ContentWithoutWmoStart => has_content.then(|| digest_print(body)),
            DuplicateRule::Id => Some(id),
            DuplicateRule::Signature => likeness.signature.map(signature_print),
            DuplicateRule::IdAndContent => has_content.then(|| both(id, digest)),
            DuplicateRule::None => None,
        };
        self.by_product.get(&key?).copied()
    }

    /// The product that may have this signature, under the rule that compares signatures.
    pub(crate) fn signature_candidate(&self, signature: &[u8; 16]) -> Option<u64> {
        let key = (self.rule == DuplicateRule::Signature).then(|| signature_print(signature))?;
        self.by_product.get(&key).copied()
    }

    /// The product that may have the same upstream key.
    pub(crate) fn source_candidate(&self, key: &ProductKey, resend: Option<u64>) -> Option<u64> {
        self.by_source.find(source_print(key, resend))
    }
}

impl<'a> From<&'a Header> for Likeness<'a> {
    fn from(header: &'a Header) -> Self {
        let metadata = &header.metadata;
        Self {
            id: &metadata.id,
            digest: &metadata.digest,
            body: metadata.body(header.size),
            signature: metadata.ldm.as_ref().map(|ldm| &ldm.signature),
        }
    }
}

/// True if two products are the same under a rule, by their whole values.
pub(crate) fn is_same(rule: DuplicateRule, one: &Likeness<'_>, other: &Likeness<'_>) -> bool {
    match rule {
        DuplicateRule::Content => one.digest == other.digest,
        DuplicateRule::ContentWithoutWmoStart => one.body == other.body,
        DuplicateRule::Id => one.id == other.id,
        DuplicateRule::IdAndContent => one.id == other.id && one.digest == other.digest,
        DuplicateRule::Signature => one.signature.is_some() && one.signature == other.signature,
        DuplicateRule::None => false,
    }
}

/// Empty products have no key by content: many centres send empty bulletins that mean different things.
fn product_key(rule: DuplicateRule, row: &Row) -> Option<u64> {
    let Row { prints, size, body_size, .. } = row;
    let has_content = *body_size > 0;
    match rule {
        DuplicateRule::Content => has_content.then_some(prints.digest),
        // The print of the body may be that of a signature. Without a starting line the whole is the body.
        DuplicateRule::ContentWithoutWmoStart if size == body_size => has_content.then_some(prints.digest),
        DuplicateRule::ContentWithoutWmoStart => has_content.then_some(prints.body),
        DuplicateRule::Id => Some(prints.id),
        DuplicateRule::Signature => Some(prints.body),
        DuplicateRule::IdAndContent => has_content.then(|| both(prints.id, prints.digest)),
        DuplicateRule::None => None,
    }
}

fn both(id: u64, digest: u64) -> u64 {
    digest.rotate_left(1) ^ id
}

fn remove_if_equal(map: &mut HashMap<u64, u64>, key: u64, sequence: u64) {
    if map.get(&key) == Some(&sequence) {
        map.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, FeedName, Sequence};

    use super::*;
    use crate::segment::index::Prints;

    fn row(sequence: u64, id: &str, content: u8, source: u64) -> Row {
        let digest = Digest([content; 32]);
        let id = id_print(&ProductId::parse(id).unwrap());
        let prints = Prints { id, digest: digest_print(&digest), body: digest_print(&digest), source };
        Row {
            sequence,
            stored: 0,
            size: 5,
            body_size: 5,
            offset: 0,
            header_at: 0,
            header_bytes: 0,
            in_body: false,
            prints,
        }
    }

    fn candidate(keys: &Keys, id: &str, content: u8, body_size: u64) -> Option<u64> {
        let digest = Digest([content; 32]);
        let id = ProductId::parse(id).unwrap();
        keys.product_candidate(&Likeness {
            id: &id,
            digest: &digest,
            body: (&digest, body_size),
            signature: None,
        })
    }

    fn upstream(sequence: u64) -> ProductKey {
        ProductKey { feed: FeedName::parse("UP").unwrap(), epoch: Epoch(9), sequence: Sequence(sequence) }
    }

    #[test]
    fn each_rule_looks_at_its_own_values() {
        for (rule, id, content, expected) in [
            (DuplicateRule::IdAndContent, "a", 20, Some(1)),
            (DuplicateRule::IdAndContent, "b", 20, None),
            (DuplicateRule::IdAndContent, "a", 21, None),
            (DuplicateRule::Id, "a", 21, Some(1)),
            (DuplicateRule::Id, "b", 20, None),
            (DuplicateRule::Content, "b", 20, Some(1)),
            (DuplicateRule::Content, "a", 21, None),
            (DuplicateRule::ContentWithoutWmoStart, "b", 20, Some(1)),
            (DuplicateRule::None, "a", 20, None),
        ] {
            let mut keys = Keys::new(rule);
            keys.insert(&row(1, "a", 20, 0));
            assert_eq!(candidate(&keys, id, content, 5), expected, "{rule:?} {id} {content}");
        }
    }

    #[test]
    fn empty_products_are_duplicates_by_id_only() {
        for (rule, expected) in [
            (DuplicateRule::IdAndContent, None),
            (DuplicateRule::Content, None),
            (DuplicateRule::ContentWithoutWmoStart, None),
            (DuplicateRule::Id, Some(1)),
        ] {
            let mut keys = Keys::new(rule);
            keys.insert(&Row { size: 0, body_size: 0, ..row(1, "a", 20, 0) });
            assert_eq!(candidate(&keys, "a", 20, 0), expected, "{rule:?}");
        }
    }

    #[test]
    fn a_later_product_keeps_its_key_when_an_earlier_one_goes() {
        let mut keys = Keys::new(DuplicateRule::Id);
        let key = upstream(7);
        let (early, late) =
            (row(1, "a", 20, source_print(&key, None)), row(2, "a", 21, source_print(&key, None)));
        keys.insert(&early);
        keys.insert(&late);
        keys.remove(&early);
        assert_eq!((candidate(&keys, "a", 20, 5), keys.source_candidate(&key, None)), (Some(2), Some(2)));
        keys.remove(&late);
        assert_eq!((candidate(&keys, "a", 20, 5), keys.source_candidate(&key, None)), (None, None));
    }

    #[test]
    fn a_candidate_is_compared_in_full() {
        let (id, other_id) = (ProductId::parse("a").unwrap(), ProductId::parse("b").unwrap());
        let mut near = [7; 32];
        near[31] = 8;
        let (digest, near) = (Digest([7; 32]), Digest(near));
        let one = Likeness { id: &id, digest: &digest, body: (&digest, 5), signature: None };
        let like = Likeness { digest: &near, body: (&near, 5), ..one };
        let renamed = Likeness { id: &other_id, ..one };
        assert!(is_same(DuplicateRule::IdAndContent, &one, &one));
        assert!(
            !is_same(DuplicateRule::IdAndContent, &one, &like)
                && !is_same(DuplicateRule::IdAndContent, &one, &renamed)
        );
        assert!(
            !is_same(DuplicateRule::Content, &one, &like) && is_same(DuplicateRule::Content, &one, &renamed)
        );
        assert!(!is_same(DuplicateRule::ContentWithoutWmoStart, &one, &like));
        assert!(is_same(DuplicateRule::Id, &one, &like) && !is_same(DuplicateRule::Id, &one, &renamed));
        assert!(!is_same(DuplicateRule::None, &one, &one));
    }
}
