//! The classes of a port: those of its circuits, and that of all other traffic.
use crate::half::FIRST_DECLARED;
use crate::netlink::{Netlink, Refusal};
use crate::shaping::{self, Class, FIRST, LEFT, PORT, REST, Rate};

/// Gives the remaining capacity of a port's circuits to all other traffic.
pub(crate) fn keep_rest(netlink: &mut Netlink, port: u32) -> Result<(), Refusal> {
    let classes = shaping::classes(netlink, port)?;
    let whole =
        classes.iter().find(|class| class.minor == PORT).and_then(Class::rate_bps).unwrap_or(UNBOUND_BPS);
    let promised: u64 =
        classes.iter().filter(|class| is_circuit(class.minor)).filter_map(Class::rate_bps).sum();
    let own = whole.saturating_sub(promised).max(whole / LEAST_SHARE);
    let left = Rate { rate_bps: own, ceiling_bps: whole, burst_bytes: REST_BURST_BYTES, priority: FIRST };
    for (minor, parent, rate) in [(LEFT, PORT, left), (REST, LEFT, Rate { rate_bps: TRICKLE_BPS, ..left })] {
        if !classes.iter().any(|class| class.minor == minor && shaping::carries(class, rate)) {
            shaping::set_class(netlink, port, minor, parent, rate)?;
        }
    }
    Ok(())
}

/// True for the class of a circuit on a port.
pub(crate) fn is_circuit(minor: u16) -> bool {
    (FIRST_CIRCUIT..FIRST_DECLARED).contains(&minor)
}

/// Practically no limit: faster than any port.
pub(crate) const UNBOUND_BPS: u64 = 1_000_000_000_000;

/// All other traffic keeps at least a twentieth of a port, whatever was promised to circuits.
const LEAST_SHARE: u64 = 20;

/// The least rate that a class may have: traffic outside circuits borrows all others, and so goes after them.
const TRICKLE_BPS: u64 = 8_000;

/// A bundle of the kernel.
pub(crate) const REST_BURST_BYTES: u32 = 64 << 10;

pub(crate) const FIRST_CIRCUIT: u16 = 0x10;
