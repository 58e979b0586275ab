/// A supported version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// For peers older than LDM-6: every call has a reply, and data are sent in blocks of 16 KiB.
    Five,
    /// LDM-6.
    Six,
}

impl Version {
    /// The version with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        match number {
            5 => Some(Self::Five),
            6 => Some(Self::Six),
            _ => None,
        }
    }

    /// Its number on the wire.
    pub fn number(self) -> u32 {
        match self {
            Self::Five => 5,
            Self::Six => 6,
        }
    }
}

/// The program number assigned to LDM.
pub(crate) const PROGRAM: u32 = 300_029;

pub(crate) const NULLPROC: u32 = 0;
pub(crate) const HEREIS: u32 = 1;
pub(crate) const FEEDME: u32 = 4;
pub(crate) const HIYA: u32 = 5;
pub(crate) const NOTIFICATION: u32 = 8;
pub(crate) const NOTIFYME: u32 = 9;
pub(crate) const COMINGSOON: u32 = 12;
pub(crate) const BLKDATA: u32 = 13;
pub(crate) const IS_ALIVE: u32 = 14;

/// Limit of the data bytes in a call of version 5.
pub(crate) const VERSION_FIVE_BLOCK_BYTES: u32 = 16_384;
