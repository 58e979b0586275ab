//! Creates a half of a circuit, step by step; existing parts remain unchanged.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::ControlFlow;

use nix::errno::Errno;

use crate::classes::{FIRST_CIRCUIT, REST_BURST_BYTES, UNBOUND_BPS, keep_rest};
use crate::clear::clear;
use crate::failure::{Failure, Step};
use crate::half::{FIRST_DECLARED, Half, Place, Shape, Way};
use crate::link::{self, Kind, Link, Vxlan, links};
use crate::marking;
use crate::netlink::{Netlink, Refusal};
use crate::shaping::{self, Class, FIRST, LAST, PORT, REST, Rate, Root};

/// A complete half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The circuit's interface on this host.
    pub interface: String,
    /// Its number.
    pub index: u32,
    /// True if the kernel limits its rate. If the node has no right to shape a declared circuit, its senders have
    /// to limit it.
    pub shaped: bool,
    /// The reason for which the excess of a soft cap leaves without its mark.
    pub unmarked: Option<Failure>,
}

/// Creates the half, or completes its existing parts. If a step fails, the steps before it are undone.
pub fn raise(netlink: &mut Netlink, half: &Half) -> Result<Raised, Failure> {
    match raise_watched(netlink, half, |_| ControlFlow::Continue(())) {
        ControlFlow::Continue(raised) => raised,
        ControlFlow::Break(()) => {
            Err(Failure::new(Step::Route, "the operation was interrupted", "try again"))
        }
    }
}

/// Changes an existing half to the given settings, in place. A failed step leaves the half in its state at that
/// point: raise the former one again.
pub fn change(netlink: &mut Netlink, half: &Half) -> Result<Raised, Failure> {
    let mut changing = Raising { netlink, half, after: |_| ControlFlow::Continue(()) };
    changing.steps().map_err(|stopped| match stopped {
        Stopped::Failed(failure) => failure,
        Stopped::Here => Failure::new(Step::Route, "the operation was interrupted", "try again"),
    })
}

/// Like [`raise`]. `after` is called after each step, or after each part of a long one, and may stop the work there
/// as a crash would, without undoing anything.
pub fn raise_watched(
    netlink: &mut Netlink,
    half: &Half,
    after: impl FnMut(Step) -> ControlFlow<()>,
) -> ControlFlow<(), Result<Raised, Failure>> {
    let mut raising = Raising { netlink, half, after };
    let outcome = match raising.steps() {
        Ok(raised) => Ok(raised),
        Err(Stopped::Here) => return ControlFlow::Break(()),
        Err(Stopped::Failed(failure)) => {
            clear(raising.netlink, half);
            Err(failure)
        }
    };
    ControlFlow::Continue(outcome)
}

struct Raising<'a, A> {
    netlink: &'a mut Netlink,
    half: &'a Half,
    after: A,
}

enum Stopped {
    Here,
    Failed(Failure),
}

impl<A: FnMut(Step) -> ControlFlow<()>> Raising<'_, A> {
    fn steps(&mut self) -> Result<Raised, Stopped> {
        let port = self.port()?;
        self.done(Step::Interface)?;
        let index = match self.half.way {
            Way::Declared => port.index,
            Way::Tunnel { .. } | Way::Tag(_) => self.tunnel(port.index)?,
        };
        self.done(Step::Tunnel)?;
        let shaped = match self.half.shape {
            Some(shape) => self.shape_if_permitted(port.index, index, shape)?,
            None => false,
        };
        self.done(Step::Shaping)?;
        let unmarked = self.mark().err();
        match self.half.place {
            Place::End(address, prefix) => self.address(index, (address, prefix))?,
            Place::Near | Place::Far => self.join(index)?,
        }
        self.done(Step::Address)?;
        if self.half.way != Way::Declared {
            let switched = link::switch_on(self.netlink, index);
            switched.map_err(|refusal| {
                self.failed(Step::Route, &refusal, "switching the circuit's interface on", "vxlan")
            })?;
        }
        self.done(Step::Route)?;
        Ok(Raised { interface: self.half.interface(), index, shaped, unmarked })
    }

    fn done(&mut self, step: Step) -> Result<(), Stopped> {
        match (self.after)(step) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped::Here),
        }
    }

    fn port(&mut self) -> Result<Link, Failure> {
        let name = &self.half.port;
        let links = self.links()?;
        let known = || links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        let port = links.iter().find(|link| link.name == *name).ok_or_else(|| {
            Failure::new(
                Step::Interface,
                format!("this host has no interface {name}; it has {}", known()),
                "correct the port's interface",
            )
        })?;
        if !port.up {
            let remedy = format!("switch it on: ip link set {name} up");
            return Err(Failure::new(
                Step::Interface,
                format!("the interface {name} is switched off"),
                remedy,
            ));
        }
        Ok(port.clone())
    }

    /// The number of the circuit's interface, which is created if it is missing or wrong.
    fn tunnel(&mut self, port: u32) -> Result<u32, Failure> {
        let name = self.half.interface();
        let found = self.links()?.into_iter().find(|link| link.name == name);
        if let Some(link) = found {
            if self.is_right(&link, port) {
                self.replicate(link.index)?;
                return Ok(link.index);
            }
            let deleted = link::delete_link(self.netlink, link.index);
            deleted.map_err(|refusal| {
                self.failed(Step::Tunnel, &refusal, "replacing the circuit's interface", "vxlan")
            })?;
        }
        self.make(&name, port)?;
        let made = self.links()?.into_iter().find(|link| link.name == name).map(|link| link.index);
        let index = made.ok_or_else(|| {
            Failure::new(
                Step::Tunnel,
                format!("{name} vanished while it was made"),
                "check which other program manages this host's interfaces",
            )
        })?;
        self.replicate(index)?;
        Ok(index)
    }

    fn is_right(&self, link: &Link, port: u32) -> bool {
        match &link.kind {
            Some(Kind::Vxlan(vxlan)) => self.half.tunnel(port).as_ref() == Some(vxlan),
            Some(Kind::Vlan { tag, lower }) => self.half.way == Way::Tag(*tag) && *lower == port,
            _ => false,
        }
    }

    /// Has a tunnel to several ends send a copy to each of them. Ends that stay are not touched.
    fn replicate(&mut self, index: u32) -> Result<(), Failure> {
        let wanted: BTreeSet<IpAddr> = self.half.replicas().iter().copied().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let found = link::replicated_to(self.netlink, index);
        let present: BTreeSet<IpAddr> = found
            .map_err(|refusal| self.failed(Step::Tunnel, &refusal, "reading the tunnel's ends", "vxlan"))?
            .into_iter()
            .collect();
        for end in wanted.difference(&present) {
            let told = link::replicate_to(self.netlink, index, *end);
            told.map_err(|refusal| {
                self.failed(Step::Tunnel, &refusal, &format!("adding the end {end} to the tunnel"), "vxlan")
            })?;
        }
        for end in present.difference(&wanted) {
            let told = link::replicate_no_more(self.netlink, index, *end);
            told.map_err(|refusal| {
                self.failed(Step::Tunnel, &refusal, &format!("taking the end {end} from the tunnel"), "vxlan")
            })?;
        }
        Ok(())
    }

    fn make(&mut self, name: &str, port: u32) -> Result<(), Failure> {
        match (&self.half.way, self.half.tunnel(port)) {
            (Way::Tunnel { .. }, Some(vxlan)) => self.make_tunnel(name, &vxlan),
            (Way::Tag(tag), _) => link::make_vlan(self.netlink, name, *tag, port).map_err(|refusal| {
                self.failed(
                    Step::Tunnel,
                    &refusal,
                    &format!("making VLAN {tag} on {}", self.half.port),
                    "8021q",
                )
            }),
            _ => Ok(()),
        }
    }

    fn make_tunnel(&mut self, name: &str, vxlan: &Vxlan) -> Result<(), Failure> {
        let learns = self.half.bridge().is_none();
        link::make_vxlan(self.netlink, name, vxlan, learns).map_err(|refusal| {
            let doing = format!("making a tunnel with VNI {} on {}", vxlan.vni, self.half.port);
            match refusal.errno {
                Errno::EEXIST => Failure::new(
                    Step::Tunnel,
                    format!("{doing} failed: another interface of this host has that VNI"),
                    "give the circuit another VNI, or remove the other interface (ip -d link show type vxlan)",
                ),
                _ => self.failed(Step::Tunnel, &refusal, &doing, "vxlan"),
            }
        })
    }

    /// False if the node has no right to shape a declared circuit: such a circuit needs no other change, so it
    /// works without shaping.
    fn shape_if_permitted(&mut self, port: u32, index: u32, shape: Shape) -> Result<bool, Stopped> {
        match self.shape(port, index, shape) {
            Err(Stopped::Failed(failure))
                if failure.step == Step::Privilege && self.half.way == Way::Declared =>
            {
                Ok(false)
            }
            shaped => shaped.map(|()| true),
        }
    }

    /// A tunnel has a class on its port, where it competes with all other traffic; a tag or a declared circuit is
    /// limited as a whole.
    fn shape(&mut self, port: u32, index: u32, shape: Shape) -> Result<(), Stopped> {
        match self.half.way {
            Way::Tunnel { vni, local, .. } => {
                self.plant(port)?;
                self.done(Step::Shaping)?;
                self.class_on_port(port, vni, local, shape)?;
                let bundled = link::bundle_at_most(self.netlink, index, shape.bundle_segments());
                bundled.map_err(|refusal| self.unshaped(&refusal).into())
            }
            Way::Tag(_) | Way::Declared => {
                self.plant(index)?;
                self.done(Step::Shaping)?;
                let class = self.half.owner.declared_class();
                let rate = shape.rate();
                let whole = shaping::set_class(self.netlink, index, PORT, 0, rate)
                    .and_then(|()| shaping::set_class(self.netlink, index, class, PORT, rate))
                    .and_then(|()| shaping::set_class(self.netlink, index, REST, PORT, rate));
                whole.map_err(|refusal| self.unshaped(&refusal).into())
            }
        }
    }

    /// Has packets beyond the rate of a soft cap marked. A circuit works without the mark too.
    fn mark(&self) -> Result<(), Failure> {
        let interface = self.half.interface();
        match self.half.shape.filter(|shape| shape.soft && self.half.way != Way::Declared) {
            Some(shape) => marking::mark_excess(&interface, self.half.rate_inside_bps(shape.rate_bps))
                .map_err(|refusal| unmarked(&refusal)),
            None if marking::marked().contains(&interface) => {
                marking::end_marking(&interface).map_err(|refusal| unmarked(&refusal))
            }
            None => Ok(()),
        }
    }

    /// Gives the interface a tree of ours, unless it has another one.
    fn plant(&mut self, index: u32) -> Result<(), Failure> {
        match shaping::root(self.netlink, index).map_err(|refusal| self.unshaped(&refusal))? {
            Root::Ours => Ok(()),
            Root::Default => shaping::plant(self.netlink, index).map_err(|refusal| self.unshaped(&refusal)),
            Root::Foreign(kind) => {
                let port = &self.half.port;
                Err(Failure::new(
                    Step::Shaping,
                    format!("{port} has traffic control of its own ({kind}), which the node does not touch"),
                    format!("remove it (tc qdisc del dev {port} root), or give circuits another port"),
                ))
            }
        }
    }

    fn class_on_port(&mut self, port: u32, vni: u32, local: IpAddr, shape: Shape) -> Result<(), Stopped> {
        let classes = shaping::classes(self.netlink, port).map_err(|refusal| self.unshaped(&refusal))?;
        self.bound_port(port, &classes, shape).map_err(|refusal| self.unshaped(&refusal))?;
        let filters = shaping::filters(self.netlink, port).map_err(|refusal| self.unshaped(&refusal))?;
        let own = filters.iter().find(|(_, taken)| *taken == vni).map(|(minor, _)| *minor);
        let minor =
            own.or_else(|| free(&filters)).ok_or_else(|| self.unshaped(&Refusal::of(Errno::ENOSPC)))?;
        let rate = shape.rate();
        if !classes.iter().any(|class| class.minor == minor && shaping::carries(class, rate)) {
            let set = shaping::set_class(self.netlink, port, minor, PORT, rate);
            set.map_err(|refusal| self.unshaped(&refusal))?;
        }
        self.done(Step::Shaping)?;
        if own.is_none() {
            let set = shaping::set_filter(self.netlink, port, minor, vni, local);
            set.map_err(|refusal| self.unshaped(&refusal))?;
        }
        self.done(Step::Shaping)?;
        keep_rest(self.netlink, port).map_err(|refusal| self.unshaped(&refusal).into())
    }

    fn bound_port(&mut self, port: u32, classes: &[Class], shape: Shape) -> Result<(), Refusal> {
        let rate = shape.port_rate_bps.unwrap_or(UNBOUND_BPS);
        let whole = port_rate(rate);
        if !classes.iter().any(|class| class.minor == PORT && shaping::carries(class, whole)) {
            shaping::set_class(self.netlink, port, PORT, 0, whole)?;
        }
        Ok(())
    }

    /// Makes the interface a port of the bridge between the two sides, which is created if it is missing.
    fn join(&mut self, index: u32) -> Result<(), Stopped> {
        let Some(name) = self.half.bridge() else { return Ok(()) };
        let doing = format!("joining both sides of circuit {} by the bridge {name}", self.half.lease);
        let refused = |refusal: Refusal| Failure::of(Step::Tunnel, &refusal, &doing, "bridge");
        let found = |links: &[Link]| links.iter().find(|link| link.name == name).map(|link| link.index);
        let links = self.links()?;
        let bridge = match found(&links) {
            Some(bridge) => bridge,
            None => {
                link::make_bridge(self.netlink, &name).map_err(refused)?;
                let made = found(&self.links()?);
                made.ok_or_else(|| refused(Refusal::of(Errno::ENODEV)))?
            }
        };
        self.done(Step::Address)?;
        if !links.iter().any(|link| link.index == index && link.master == Some(bridge)) {
            link::silence(self.netlink, index);
            link::join(self.netlink, index, bridge).map_err(refused)?;
        }
        self.done(Step::Address)?;
        link::silence(self.netlink, bridge);
        link::switch_on(self.netlink, bridge).map_err(refused)?;
        Ok(())
    }

    fn address(&mut self, index: u32, (address, prefix): (IpAddr, u8)) -> Result<(), Failure> {
        let doing = format!("giving {} the address {address}/{prefix}", self.half.interface());
        let found = link::addresses(self.netlink, index);
        let found = found.map_err(|refusal| self.failed(Step::Address, &refusal, &doing, "ip"))?;
        if self.half.way == Way::Declared {
            let there = found.iter().any(|(known, _)| *known == address);
            return if there { Ok(()) } else { Err(undeclared(self.half, address, &found)) };
        }
        // The kernel's own link-local addresses remain.
        let stale = found.iter().filter(|known| **known != (address, prefix) && !is_link_local(known.0));
        for (old, length) in stale {
            let taken = link::take_address(self.netlink, index, *old, *length);
            taken.map_err(|refusal| {
                self.failed(Step::Address, &refusal, &format!("removing the address {old}"), "ip")
            })?;
        }
        if !found.contains(&(address, prefix)) {
            let given = link::give_address(self.netlink, index, address, prefix);
            given.map_err(|refusal| self.failed(Step::Address, &refusal, &doing, "ip"))?;
        }
        Ok(())
    }

    fn links(&mut self) -> Result<Vec<Link>, Failure> {
        let found = links(self.netlink);
        found
            .map_err(|refusal| self.failed(Step::Interface, &refusal, "reading this host's interfaces", "ip"))
    }

    fn unshaped(&self, refusal: &Refusal) -> Failure {
        self.failed(Step::Shaping, refusal, &format!("shaping on {}", self.half.port), "sch_htb and cls_u32")
    }

    fn failed(&self, step: Step, refusal: &Refusal, doing: &str, part: &str) -> Failure {
        Failure::of(step, refusal, doing, part)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Shape {
    fn rate(&self) -> Rate {
        let (ceiling_bps, priority) = if self.soft {
            (self.port_rate_bps.unwrap_or(UNBOUND_BPS), LAST)
        } else {
            (self.rate_bps, FIRST)
        };
        Rate { rate_bps: self.rate_bps, ceiling_bps, burst_bytes: self.burst_bytes(), priority }
    }
}

/// The failure of marking for a refusal.
pub(crate) fn unmarked(refusal: &Refusal) -> Failure {
    Failure::of(Step::Shaping, refusal, "marking the excess of circuits", "nf_tables")
}

/// A class without a filter: it does not exist yet, or is the leftover of a crash.
fn free(filters: &[(u16, u32)]) -> Option<u16> {
    (FIRST_CIRCUIT..FIRST_DECLARED).find(|minor| filters.iter().all(|(taken, _)| taken != minor))
}

fn port_rate(rate_bps: u64) -> Rate {
    Rate { rate_bps, ceiling_bps: rate_bps, burst_bytes: REST_BURST_BYTES, priority: FIRST }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn undeclared(half: &Half, address: IpAddr, found: &[(IpAddr, u8)]) -> Failure {
    let there: Vec<String> = found.iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Failure::new(
        Step::Address,
        format!(
            "the declared circuit's interface {} does not have the address {address}; it has {there}",
            half.port
        ),
        "correct the circuit's address, or configure the interface as it was declared",
    )
}
