//! The identifiers of a circuit's frames: those of its ends, and those that sites between two hops join.
use super::lines::{CircuitDriver, LeaseLine, TransitLine};
use crate::jobs::Failure;

/// Checks that the sites between hops can join them.
pub(super) fn check_transits(line: &LeaseLine) -> Result<(), Failure> {
    let told = line.transits.iter().try_for_each(|transit| check(line, transit));
    told.map_err(|told| Failure::bad_request(format!("lease {}: {told}", line.lease)))
}

fn check(line: &LeaseLine, transit: &TransitLine) -> Result<(), String> {
    let site = &transit.site;
    let named = line.ends.iter().filter_map(|end| end.site.as_ref());
    let times = named.chain(line.transits.iter().map(|it| &it.site)).filter(|name| *name == site).count();
    if times > 1 || line.ends.len() > 2 || line.driver == CircuitDriver::Declared {
        return Err(format!(
            "{site} can't join hops of it: a circuit of nodes with two ends passes a site once"
        ));
    }
    for hop in [&transit.near, &transit.far] {
        let has_address = transit.underlay.is_some() && hop.via.is_some();
        check_tag(hop.vni, hop.vlan, has_address).map_err(|told| format!("a hop at {site} has {told}"))?;
    }
    let (near, far) = (&transit.near, &transit.far);
    if near.vni == far.vni && (near.vni.is_some() || near.vlan == far.vlan) {
        return Err(format!("both hops at {site} have one tag, so there is nothing to join"));
    }
    Ok(())
}

/// Checks the identifier of frames on a port; `has_address`: tunnels may end there.
pub(super) fn check_tag(vni: Option<u32>, vlan: Option<u16>, has_address: bool) -> Result<(), String> {
    match (vni, vlan) {
        (Some(vni), _) if !(1..=HIGHEST_VNI).contains(&vni) => {
            Err(format!("the VNI {vni}; they are 1 to {HIGHEST_VNI}"))
        }
        (None, Some(tag)) if !(1..=HIGHEST_VLAN).contains(&tag) => {
            Err(format!("the VLAN {tag}; they are 1 to {HIGHEST_VLAN}"))
        }
        (Some(_), _) if has_address => Ok(()),
        (None, Some(_)) => Ok(()),
        _ => Err("neither a tunnel's address nor a tag".to_owned()),
    }
}

/// RFC 7348 and IEEE 802.1Q.
const HIGHEST_VNI: u32 = 0x00ff_ffff;
const HIGHEST_VLAN: u16 = 4_094;
