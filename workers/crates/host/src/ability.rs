//! The host's abilities for circuits, determined by trying.
use nix::sched::{CloneFlags, unshare};

use crate::failure::Failure;
use crate::failure::Step;
use crate::link::{self, Vxlan, links};
use crate::marking;
use crate::netlink::{Netlink, Refusal};
use crate::raise::unmarked;
use crate::shaping::{self, PORT, Rate};

/// The abilities of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The node may change interfaces.
    pub net_admin: Ability,
    /// VXLAN tunnels.
    pub vxlan: Ability,
    /// VLAN tags.
    pub vlan: Ability,
    /// HTB classes, and filters that direct tunnels to them.
    pub htb: Ability,
    /// The mark of packets beyond the rate of a soft cap.
    pub marking: Ability,
}

/// `Ok` if it works, otherwise the reason.
pub type Ability = Result<(), Failure>;

/// Tries everything once, in a private network namespace that ends with the attempt; without the right to create
/// one, on an interface that is never switched on.
pub fn probe_host() -> Abilities {
    let attempt = std::thread::Builder::new().name("circuit-probe".to_owned()).spawn(|| {
        let _ = unshare(CloneFlags::CLONE_NEWNET);
        attempt()
    });
    attempt.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| {
        let failure = Failure::new(Step::Kernel, "this host could not be examined", "try again");
        Abilities {
            net_admin: Err(failure.clone()),
            vxlan: Err(failure.clone()),
            vlan: Err(failure.clone()),
            htb: Err(failure.clone()),
            marking: Err(failure),
        }
    })
}

fn attempt() -> Abilities {
    let mut netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(error) => {
            return all(&Failure::of(Step::Kernel, &error.into(), "querying the kernel", "netlink"));
        }
    };
    let tunnel = make_tunnel(&mut netlink);
    let index = match tunnel {
        Ok(index) => index,
        Err(refusal) => {
            let failure = Failure::of(Step::Tunnel, &refusal, "making a tunnel", "vxlan");
            let net_admin = if failure.step == Step::Privilege { Err(failure.clone()) } else { Ok(()) };
            return Abilities { net_admin, ..all(&failure) };
        }
    };
    let htb = shape(&mut netlink, index);
    let vlan = link::make_vlan(&mut netlink, TRIED_TAG, 7, index);
    let marking = marking::mark_excess(TRIED, 1_000_000).and_then(|()| marking::end_marking(TRIED));
    for name in [TRIED_TAG, TRIED] {
        let _ = delete(&mut netlink, name);
    }
    Abilities {
        net_admin: Ok(()),
        vxlan: Ok(()),
        vlan: vlan.map_err(|refusal| Failure::of(Step::Tunnel, &refusal, "making a VLAN", "8021q")),
        htb: htb.map_err(|refusal| Failure::of(Step::Shaping, &refusal, "shaping", "sch_htb and cls_u32")),
        marking: marking.map_err(|refusal| unmarked(&refusal)),
    }
}

fn make_tunnel(netlink: &mut Netlink) -> Result<u32, Refusal> {
    let _ = delete(netlink, TRIED);
    let loopback = std::net::Ipv4Addr::LOCALHOST.into();
    let vxlan = Vxlan { vni: TRIED_VNI, local: loopback, remote: None, lower: 1 };
    link::make_vxlan(netlink, TRIED, &vxlan, true)?;
    let made = links(netlink)?.into_iter().find(|link| link.name == TRIED);
    made.map(|link| link.index).ok_or_else(|| Refusal::of(nix::errno::Errno::ENODEV))
}

fn shape(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    shaping::plant(netlink, index)?;
    let rate = Rate { rate_bps: 1_000_000, ceiling_bps: 1_000_000, burst_bytes: 10_000, priority: 0 };
    shaping::set_class(netlink, index, PORT, 0, rate)?;
    shaping::set_filter(netlink, index, PORT, TRIED_VNI, std::net::Ipv4Addr::LOCALHOST.into())
}

fn delete(netlink: &mut Netlink, name: &str) -> Result<(), Refusal> {
    match links(netlink)?.into_iter().find(|link| link.name == name) {
        Some(link) => link::delete_link(netlink, link.index),
        None => Ok(()),
    }
}

fn all(failure: &Failure) -> Abilities {
    let unable = || Err(failure.clone());
    Abilities { net_admin: unable(), vxlan: unable(), vlan: unable(), htb: unable(), marking: unable() }
}

const TRIED: &str = "dbtry";
const TRIED_TAG: &str = "dbtryv";

/// The last identifier, which no circuit gets.
const TRIED_VNI: u32 = 0x00ff_ffff;
