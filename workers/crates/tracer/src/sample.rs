//! One look at a connection.
use downburst_model::WallMicros;

use crate::variable::{FIELDS, VARIABLES, Variable, Width};

/// The values of a connection at one moment.
///
/// The time is that of the wall clock, as a ring outlives the process whose monotonic clock has another beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the kernel was asked.
    pub at: WallMicros,
    /// A bit for each value that the kernel reported.
    pub(crate) present: u32,
    pub(crate) values: [u64; VARIABLES],
}

impl Sample {
    /// A sample without values.
    pub const fn empty(at: WallMicros) -> Self {
        Self { at, present: 0, values: [0; VARIABLES] }
    }

    /// Reads a `struct tcp_info` of any length: what an older kernel does not report is absent.
    pub fn read(at: WallMicros, info: &[u8]) -> Self {
        let mut sample = Self::empty(at);
        for field in &FIELDS {
            let value = read(info, field.offset, field.width);
            if let Some(value) = value.filter(|value| *value != unmeasured(field.variable)) {
                sample.set(field.variable, value);
            }
        }
        sample
    }

    /// The value of a variable; `None` if the kernel did not report it.
    pub fn get(&self, variable: Variable) -> Option<u64> {
        let value = self.values.get(variable.index()).copied();
        value.filter(|_| self.present & bit(variable) != 0)
    }

    /// The increase of a variable since an earlier sample; zero if it went back.
    pub fn since(&self, earlier: &Self, variable: Variable) -> Option<u64> {
        Some(self.get(variable)?.saturating_sub(earlier.get(variable)?))
    }

    /// Sets a variable.
    pub fn set(&mut self, variable: Variable, value: u64) {
        if let Some(place) = self.values.get_mut(variable.index()) {
            *place = value;
            self.present |= bit(variable);
        }
    }

    /// Bytes or segments wait for the peer or for the network.
    pub(crate) fn waits(&self) -> bool {
        [Variable::Unacked, Variable::NotsentBytes].iter().any(|it| self.get(*it).unwrap_or(0) > 0)
    }

    /// True if this can be a later sample of the same connection: counters never go back.
    pub(crate) fn follows(&self, earlier: &Self) -> bool {
        let went_back = |it| matches!((self.get(it), earlier.get(it)), (Some(now), Some(then)) if now < then);
        !Variable::all().filter(|it| it.counts()).any(went_back)
    }
}

/// The value by which the kernel says that there is none.
const fn unmeasured(variable: Variable) -> u64 {
    match variable {
        Variable::MinRtt => u32::MAX as u64,
        // A counter does not get that far.
        _ => u64::MAX,
    }
}

const fn bit(variable: Variable) -> u32 {
    1 << variable.index()
}

/// Reads a value in the byte order of this host.
pub(crate) fn read(bytes: &[u8], at: usize, width: Width) -> Option<u64> {
    let rest = bytes.get(at..)?;
    match width {
        Width::Bit => rest.first().map(|byte| u64::from(byte & 1)),
        Width::Byte => rest.first().map(|byte| u64::from(*byte)),
        Width::Four => rest.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))),
        Width::Eight => rest.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read_where_the_kernel_writes_them() {
        let mut info = [0_u8; 240];
        info[1] = 3;
        info[7] = 0b0011;
        info[68..72].copy_from_slice(&20_000_u32.to_ne_bytes());
        info[120..128].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        info[228..232].copy_from_slice(&65_535_u32.to_ne_bytes());
        let sample = Sample::read(WallMicros(5), &info);
        assert_eq!(sample.get(Variable::CaState), Some(3));
        assert_eq!(sample.get(Variable::AppLimited), Some(1));
        assert_eq!(sample.get(Variable::Rtt), Some(20_000));
        assert_eq!(sample.get(Variable::BytesAcked), Some(1 << 40));
        assert_eq!(sample.get(Variable::SndWnd), Some(65_535));
    }

    #[test]
    fn no_bound_of_the_rate_is_none() {
        let sample = Sample::read(WallMicros(0), &[255; 240]);
        assert_eq!((sample.get(Variable::MaxPacingRate), sample.get(Variable::MinRtt)), (None, None));
        assert_eq!(sample.get(Variable::SndWnd), Some(u32::MAX.into()));
    }

    #[test]
    fn an_older_kernel_reports_less() {
        let sample = Sample::read(WallMicros(0), &[0; 192]);
        assert_eq!(sample.get(Variable::SndbufLimited), Some(0));
        assert_eq!(sample.get(Variable::BytesSent), None);
        assert_eq!(Sample::read(WallMicros(0), &[]), Sample::empty(WallMicros(0)));
    }

    proptest! {
        #[test]
        fn no_bytes_of_any_length_make_it_panic(info in prop::collection::vec(any::<u8>(), 0..400)) {
            let sample = Sample::read(WallMicros(1), &info);
            for field in &FIELDS {
                let whole = info.len() >= field.offset + field.width.bytes();
                prop_assert!(whole || sample.get(field.variable).is_none(), "{}", field.name);
            }
        }
    }
}
