use bytes::{BufMut, Bytes, BytesMut};
use downburst_fanout::SLICE_BYTES;
use downburst_model::{
    Class, Digest, Epoch, FeedName, Hops, Lane, LdmStamp, LegId, Origin, ProductId, ProductInfo, ProductKey,
    Sequence, WallMicros,
};

use crate::fields::{Fields, PutFields};

/// Small products of one feed, class, lane and leg in one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// The feed.
    pub feed: FeedName,
    /// The epoch of the hub's log.
    pub epoch: Epoch,
    /// Their class.
    pub class: Class,
    /// Their lane: the reason for the transmission.
    pub lane: Lane,
    /// The leg that carries them.
    pub leg: LegId,
    /// The hubs that they passed before.
    pub hops: Option<Hops>,
    /// At least one, by rising sequence.
    pub cars: Vec<Car>,
}

/// A product of a [`Train`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Car {
    /// Its sequence in the hub's log.
    pub sequence: Sequence,
    /// The identifier.
    pub id: ProductId,
    /// The host that first ingested it.
    pub origin: Origin,
    /// Origin's clock.
    pub created: WallMicros,
    /// Hub's clock: complete and verified in the hub's log.
    pub stored: WallMicros,
    /// BLAKE3-256 of the bytes.
    pub digest: Digest,
    /// LDM's metadata, if an LDM delivered it.
    pub ldm: Option<LdmStamp>,
    /// The whole content, shared with the buffer of its frame.
    pub bytes: Bytes,
}

impl Train {
    /// The description of one of its products.
    pub fn info(&self, car: &Car) -> ProductInfo {
        ProductInfo {
            key: self.key(car),
            id: car.id.clone(),
            origin: car.origin.clone(),
            created: car.created,
            stored: car.stored,
            size: car.bytes.len() as u64,
            digest: car.digest,
            class: self.class,
            hops: self.hops.clone(),
            ldm: car.ldm.clone(),
            properties: None,
        }
    }

    /// The key of one of its products.
    pub fn key(&self, car: &Car) -> ProductKey {
        ProductKey { feed: self.feed.clone(), epoch: self.epoch, sequence: car.sequence }
    }

    /// The first number; 0 if there is none.
    pub fn first(&self) -> u64 {
        self.cars.first().map_or(0, |car| car.sequence.0)
    }

    /// The last number; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.cars.last().map_or(0, |car| car.sequence.0)
    }
}

/// The fields of a train frame before its cars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) feed: FeedName,
    pub(crate) epoch: Epoch,
    pub(crate) class: Class,
    pub(crate) lane: Lane,
    pub(crate) leg: LegId,
    /// No product between this number and the first car is for the site, nor is any between the cars.
    pub(crate) previous: u64,
    /// No product behind the last car and up to this number is for the site.
    pub(crate) to: u64,
    /// The base values of the cars.
    pub(crate) base: Base,
}

/// The common fields of the cars of a run, and the base values for their delta coding. They are the same for
/// all sites and all parts of a run, so that any part of the run can be sent unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) sequence: u64,
    pub(crate) created: WallMicros,
    pub(crate) stored: WallMicros,
    pub(crate) origin: Origin,
    pub(crate) hops: Option<Hops>,
}

impl Head {
    /// The body of the frame up to the first car.
    pub(crate) fn encode(&self, body: &mut BytesMut) {
        body.put_short_text(self.feed.as_str());
        body.put_u64(self.epoch.0);
        body.put_u32(self.leg.0);
        body.put_u8(self.lane as u8);
        body.put_u8(self.class as u8);
        body.put_u64(self.previous);
        body.put_u64(self.to);
        body.put_u64(self.base.sequence);
        body.put_i64(self.base.created.0);
        body.put_i64(self.base.stored.0);
        body.put_short_text(self.base.origin.as_str());
        let hops = self.base.hops.as_ref().map(|hops| minicbor::to_vec(hops).unwrap_or_default());
        let hops = hops.unwrap_or_default();
        body.put_varint(hops.len() as u64);
        body.put_slice(&hops);
        // The length of additions by a later release, which this one skips.
        body.put_varint(0);
    }

    fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        let feed = FeedName::parse(fields.short_text()?).ok()?;
        let (epoch, leg) = (Epoch(fields.u64()?), LegId(fields.u32()?));
        let lane = *LANES.get(usize::from(fields.u8()?))?;
        let class = *CLASSES.get(usize::from(fields.u8()?))?;
        let (previous, to) = (fields.u64()?, fields.u64()?);
        let base = Base {
            sequence: fields.u64()?,
            created: WallMicros(fields.u64()? as i64),
            stored: WallMicros(fields.u64()? as i64),
            origin: Origin::parse(fields.short_text()?).ok()?,
            hops: hops(fields)?,
        };
        let more = usize::try_from(fields.varint()?).ok()?;
        fields.bytes(more)?;
        Some(Self { feed, epoch, class, lane, leg, previous, to, base })
    }
}

/// Adds a product to a run of cars.
pub(crate) fn put_car(run: &mut BytesMut, base: &Base, info: &ProductInfo, bytes: &[u8]) {
    run.put_varint(info.key.sequence.0.wrapping_sub(base.sequence));
    run.put_signed(info.created.0.wrapping_sub(base.created.0));
    run.put_signed(info.stored.0.wrapping_sub(base.stored.0));
    let own_origin = info.origin != base.origin;
    let stamp = info.ldm.as_ref().map(|stamp| minicbor::to_vec(stamp).unwrap_or_default());
    run.put_u8(if own_origin { OWN_ORIGIN } else { 0 } | if stamp.is_some() { STAMPED } else { 0 });
    if own_origin {
        run.put_short_text(info.origin.as_str());
    }
    if let Some(stamp) = stamp {
        run.put_varint(stamp.len() as u64);
        run.put_slice(&stamp);
    }
    run.put_short_text(info.id.as_str());
    run.put_slice(&info.digest.0);
    run.put_varint(bytes.len() as u64);
    run.put_slice(bytes);
}

/// Reads the body of a train frame; the second value covers the numbers before and behind its cars. The
/// products' bytes are shared with the frame. `None` if the frame is cut short or malformed.
pub(crate) fn decode(body: &Bytes) -> Option<(Train, Around)> {
    let mut fields = Fields::new(body);
    let Head { feed, epoch, class, lane, leg, previous, to, base } = Head::decode(&mut fields)?;
    let mut cars: Vec<Car> = Vec::with_capacity(CARS_EXPECTED);
    while !fields.is_over() {
        let car = car(&mut fields, &base)?;
        if cars.last().is_some_and(|last| last.sequence >= car.sequence) {
            return None;
        }
        cars.push(car);
    }
    let train = Train { feed, epoch, class, lane, leg, hops: base.hops, cars };
    let sound = !train.cars.is_empty() && previous < train.first() && train.last() <= to;
    sound.then_some((train, Around { previous, to }))
}

/// The numbers around the cars of a train that are not for the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    /// No product between this number and the first car is for the site.
    pub(crate) previous: u64,
    /// No product behind the last car and up to this number is for the site.
    pub(crate) to: u64,
}

fn hops(fields: &mut Fields<'_>) -> Option<Option<Hops>> {
    let length = usize::try_from(fields.varint()?).ok()?;
    let hops = fields.bytes(length)?;
    if hops.is_empty() { Some(None) } else { minicbor::decode(&hops).ok().map(Some) }
}

fn car(fields: &mut Fields<'_>, base: &Base) -> Option<Car> {
    let sequence = Sequence(base.sequence.checked_add(fields.varint()?)?);
    let created = WallMicros(base.created.0.wrapping_add(fields.signed()?));
    let stored = WallMicros(base.stored.0.wrapping_add(fields.signed()?));
    let flags = fields.u8()?;
    if flags & !(OWN_ORIGIN | STAMPED) != 0 {
        return None;
    }
    let origin = match flags & OWN_ORIGIN {
        0 => base.origin.clone(),
        _ => Origin::parse(fields.short_text()?).ok()?,
    };
    let ldm = if flags & STAMPED == 0 { None } else { Some(stamp(fields)?) };
    let id = ProductId::parse(fields.short_text()?).ok()?;
    let digest = Digest(fields.array()?);
    let size = usize::try_from(fields.varint()?).ok()?;
    Some(Car { sequence, id, origin, created, stored, digest, ldm, bytes: fields.bytes(size)? })
}

fn stamp(fields: &mut Fields<'_>) -> Option<LdmStamp> {
    let length = usize::try_from(fields.varint()?).ok()?;
    minicbor::decode(&fields.bytes(length)?).ok()
}

/// The maximum size of a product in a train; a larger one is sliced. At this size the frame and the description
/// of a product cost a hundredth of its transfer.
pub(crate) const CAR_BYTES: usize = 16 << 10;

/// The maximum size of the cars of one train: that of a slice, so that a warning waits no longer for a train
/// than for a slice.
pub(crate) const TRAIN_BYTES: usize = SLICE_BYTES;

/// The maximum length of a train's body: the cars, and a head with the longest names and the additions of a
/// later release.
pub(crate) const TRAIN_LIMIT_BYTES: usize = TRAIN_BYTES + (4 << 10);

const CARS_EXPECTED: usize = 32;
const OWN_ORIGIN: u8 = 1;
const STAMPED: u8 = 2;
const LANES: [Lane; 3] = [Lane::Live, Lane::Backfill, Lane::Resend];
const CLASSES: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];

#[cfg(test)]
mod tests;
