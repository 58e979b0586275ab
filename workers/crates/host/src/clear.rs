//! Removes halves of circuits, and finds leftovers.
use crate::classes::{is_circuit, keep_rest};
use crate::failure::{Failure, Step};
use crate::half::{FIRST_DECLARED, Half, Owner, Way, is_of_a_circuit};
use crate::link::{self, Kind, Link, links};
use crate::marking;
use crate::netlink::{Netlink, Refusal};
use crate::shaping;

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The leases whose interfaces were removed.
    pub leases: Vec<u32>,
    /// Everything that was removed, in words.
    pub removed: Vec<String>,
    /// The failures to remove something.
    pub left: Vec<Failure>,
}

/// Removes one half, or the existing parts of it.
pub fn clear(netlink: &mut Netlink, half: &Half) -> Cleared {
    Clearing::new(netlink, half.owner).take_away(|link| half.has(link), |port| port == half.port)
}

/// Removes everything that this node made and none of `halves` needs, such as the leftovers of a crash.
pub fn keep_only(netlink: &mut Netlink, owner: Owner, halves: &[Half]) -> Cleared {
    let whole: Vec<&str> = halves
        .iter()
        .filter(|half| half.way == Way::Declared && half.shape.is_some())
        .map(|half| half.port.as_str())
        .collect();
    Clearing::new(netlink, owner)
        .take_away(|link| !halves.iter().any(|half| half.has(link)), |port| !whole.contains(&port))
}

struct Clearing<'a> {
    netlink: &'a mut Netlink,
    owner: Owner,
    cleared: Cleared,
}

impl<'a> Clearing<'a> {
    fn new(netlink: &'a mut Netlink, owner: Owner) -> Self {
        Self { netlink, owner, cleared: Cleared::default() }
    }

    /// Removes the interfaces of this node that `goes` selects, then every class that belongs to none, and the
    /// limits of declared interfaces that `unbound` selects.
    fn take_away(mut self, goes: impl Fn(&Link) -> bool, unbound: impl Fn(&str) -> bool) -> Cleared {
        let found = links(self.netlink);
        for link in self.or_left(found, "reading this host's interfaces").unwrap_or_default() {
            if let Some(lease) = self.owner.lease(&link).filter(|_| goes(&link)) {
                let deleted = link::delete_link(self.netlink, link.index);
                if self.or_left(deleted, &format!("removing {}", link.name)).is_some() {
                    self.cleared.leases.push(lease);
                    self.cleared
                        .removed
                        .push(format!("the interface {} with its address and route", link.name));
                }
            }
        }
        let (found, ports) = (links(self.netlink), shaping::shaped(self.netlink));
        let links = self.or_left(found, "reading this host's interfaces").unwrap_or_default();
        for name in marking::marked() {
            if self.owner.lease_named(&name).is_some() && !links.iter().any(|link| link.name == name) {
                let ended = marking::end_marking(&name);
                self.or_left(ended, &format!("removing the marking of {name}"));
            }
        }
        for port in self.or_left(ports, "reading this host's traffic control").unwrap_or_default() {
            if let Some(link) = links.iter().find(|link| link.index == port) {
                let pruned = self.prune(link, &links, unbound(&link.name));
                self.or_left(pruned, &format!("removing classes of {}", link.name));
            }
        }
        self.cleared
    }

    /// Removes the classes without a circuit from a port, and the tree with the last of them.
    fn prune(&mut self, port: &Link, links: &[Link], unbound: bool) -> Result<(), Refusal> {
        let classes = shaping::classes(self.netlink, port.index)?;
        let filters = shaping::filters(self.netlink, port.index)?;
        let carried: Vec<u32> = links.iter().filter_map(|link| vni_over(link, port.index)).collect();
        let mut standing = classes
            .iter()
            .any(|class| class.minor >= FIRST_DECLARED && !self.is_own_bound(class.minor, unbound));
        for class in classes.iter().filter(|class| is_circuit(class.minor)) {
            let vni = filters.iter().find(|(minor, _)| *minor == class.minor).map(|(_, vni)| *vni);
            if vni.is_some_and(|vni| carried.contains(&vni)) {
                standing = true;
                continue;
            }
            shaping::delete_filter(self.netlink, port.index, class.minor)?;
            shaping::delete_class(self.netlink, port.index, class.minor)?;
            self.cleared.removed.push(format!("a class of {}", port.name));
        }
        if standing {
            return keep_rest(self.netlink, port.index);
        }
        shaping::uproot(self.netlink, port.index)?;
        self.cleared.removed.push(format!("the traffic control of {}", port.name));
        Ok(())
    }

    fn is_own_bound(&self, minor: u16, unbound: bool) -> bool {
        unbound && minor == self.owner.declared_class()
    }

    fn or_left<T>(&mut self, result: Result<T, Refusal>, doing: &str) -> Option<T> {
        let failure = |refusal| Failure::of(Step::Route, &refusal, doing, "ip");
        result.map_err(|refusal| self.cleared.left.push(failure(refusal))).ok()
    }
}

/// The identifier of a circuit's tunnel over this port.
fn vni_over(link: &Link, port: u32) -> Option<u32> {
    match &link.kind {
        Some(Kind::Vxlan(vxlan)) if vxlan.lower == port && is_of_a_circuit(link) => Some(vxlan.vni),
        _ => None,
    }
}
