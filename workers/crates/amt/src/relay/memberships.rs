//! The memberships of gateways, and the channels that they need.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use downburst_model::{Micros, network};

use super::{Change, LOOK_INTERVAL, Refusal, RelaySettings};
use crate::membership::{Channel, Record, RecordKind};

/// Who receives which group from which sources.
#[derive(Debug)]
pub(super) struct Memberships {
    limits: RelaySettings,
    groups: BTreeMap<IpAddr, BTreeMap<SocketAddr, Membership>>,
    tunnels: BTreeMap<SocketAddr, BTreeSet<IpAddr>>,
    /// The number of tunnels of each network.
    networks: BTreeMap<IpAddr, usize>,
    channels: BTreeSet<Channel>,
    looked: Micros,
}

/// One gateway's membership in a group.
#[derive(Clone, Debug)]
struct Membership {
    sources: Sources,
    until: Micros,
}

/// The sources that a gateway receives (RFC 3376, section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sources {
    Only(BTreeSet<IpAddr>),
    AllBut(BTreeSet<IpAddr>),
}

impl Memberships {
    pub(super) fn new(limits: &RelaySettings) -> Self {
        Self {
            limits: limits.clone(),
            groups: BTreeMap::new(),
            tunnels: BTreeMap::new(),
            networks: BTreeMap::new(),
            channels: BTreeSet::new(),
            looked: Micros(0),
        }
    }

    pub(super) fn tunnels(&self) -> usize {
        self.tunnels.len()
    }

    pub(super) fn channels(&self) -> usize {
        self.channels.len()
    }

    pub(super) fn has_tunnel(&self, gateway: SocketAddr) -> bool {
        self.tunnels.contains_key(&gateway)
    }

    pub(super) fn has_room_for(&self, gateway: SocketAddr) -> bool {
        let of_network = self.networks.get(&network(gateway.ip())).copied().unwrap_or(0);
        self.has_tunnel(gateway)
            || (self.tunnels.len() < self.limits.most_tunnels
                && of_network < self.limits.most_tunnels_of_a_network)
    }

    pub(super) fn receivers(&self, source: IpAddr, group: IpAddr) -> impl Iterator<Item = SocketAddr> {
        let members = self.groups.get(&group).into_iter().flatten();
        members.filter(move |(_, member)| member.sources.have(source)).map(|(gateway, _)| *gateway)
    }

    /// Carries out a record; a refused one changes nothing.
    pub(super) fn take(
        &mut self,
        gateway: SocketAddr,
        until: Micros,
        record: &Record,
        changes: &mut VecDeque<Change>,
    ) -> Result<(), Refusal> {
        let before = self.groups.get(&record.group).and_then(|members| members.get(&gateway));
        let sources = Sources::after(before.map(|member| &member.sources), record);
        let Some(sources) = sources.filter(|sources| !sources.are_none()) else {
            self.remove(gateway, record.group);
            self.follow(record.group, changes);
            return Ok(());
        };
        if before.is_none() && !self.has_room_in(gateway)
            || sources.named() > self.limits.most_groups_of_a_tunnel
        {
            return Err(Refusal::NoRoom);
        }
        let before = before.cloned();
        self.insert(gateway, record.group, Membership { sources, until });
        if self.needed(record.group).difference(&self.channels).count() + self.channels.len()
            > self.limits.most_channels
        {
            match before {
                Some(member) => self.insert(gateway, record.group, member),
                None => self.remove(gateway, record.group),
            }
            return Err(Refusal::NoRoom);
        }
        self.follow(record.group, changes);
        Ok(())
    }

    /// Removes a gateway.
    pub(super) fn forget(&mut self, gateway: SocketAddr, changes: &mut VecDeque<Change>) {
        for group in self.tunnels.get(&gateway).cloned().unwrap_or_default() {
            self.remove(gateway, group);
            self.follow(group, changes);
        }
    }

    pub(super) fn expire(&mut self, now: Micros, changes: &mut VecDeque<Change>) {
        if now.since(self.looked) < LOOK_INTERVAL {
            return;
        }
        self.looked = now;
        let over = self.groups.iter().flat_map(|(group, members)| {
            members
                .iter()
                .filter(move |(_, member)| member.until <= now)
                .map(move |(gateway, _)| (*gateway, *group))
        });
        for (gateway, group) in over.collect::<Vec<_>>() {
            self.remove(gateway, group);
            self.follow(group, changes);
        }
    }

    fn has_room_in(&self, gateway: SocketAddr) -> bool {
        let groups = self.tunnels.get(&gateway).map_or(0, BTreeSet::len);
        self.has_room_for(gateway) && groups < self.limits.most_groups_of_a_tunnel
    }

    fn insert(&mut self, gateway: SocketAddr, group: IpAddr, member: Membership) {
        if !self.tunnels.contains_key(&gateway) {
            *self.networks.entry(network(gateway.ip())).or_insert(0) += 1;
        }
        self.tunnels.entry(gateway).or_default().insert(group);
        self.groups.entry(group).or_default().insert(gateway, member);
    }

    fn remove(&mut self, gateway: SocketAddr, group: IpAddr) {
        if let Some(members) = self.groups.get_mut(&group) {
            members.remove(&gateway);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
        let Some(groups) = self.tunnels.get_mut(&gateway) else { return };
        groups.remove(&group);
        if groups.is_empty() {
            self.tunnels.remove(&gateway);
            self.leave_network(network(gateway.ip()));
        }
    }

    fn leave_network(&mut self, network: IpAddr) {
        if let Some(count) = self.networks.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
    }

    /// The channels of a group that its members need: any source if one of them takes all but some.
    fn needed(&self, group: IpAddr) -> BTreeSet<Channel> {
        let Some(members) = self.groups.get(&group) else { return BTreeSet::new() };
        let mut needed = BTreeSet::new();
        for member in members.values() {
            match &member.sources {
                Sources::AllBut(_) => return BTreeSet::from([Channel { group, source: None }]),
                Sources::Only(sources) => {
                    needed.extend(sources.iter().map(|source| Channel { group, source: Some(*source) }));
                }
            }
        }
        needed
    }

    /// Joins before it leaves, so that a group that goes on loses nothing.
    fn follow(&mut self, group: IpAddr, changes: &mut VecDeque<Change>) {
        let needed = self.needed(group);
        let first = Channel { group, source: None };
        let had: BTreeSet<Channel> =
            self.channels.range(first..).take_while(|channel| channel.group == group).copied().collect();
        for channel in needed.difference(&had) {
            self.channels.insert(*channel);
            changes.push_back(Change::Join(*channel));
        }
        for channel in had.difference(&needed) {
            self.channels.remove(channel);
            changes.push_back(Change::Leave(*channel));
        }
    }
}

impl Sources {
    fn have(&self, source: IpAddr) -> bool {
        match self {
            Self::Only(sources) => sources.contains(&source),
            Self::AllBut(sources) => !sources.contains(&source),
        }
    }

    fn are_none(&self) -> bool {
        matches!(self, Self::Only(sources) if sources.is_empty())
    }

    fn named(&self) -> usize {
        let (Self::Only(sources) | Self::AllBut(sources)) = self;
        sources.len()
    }

    /// The sources after a record; `None`: the group is not received, or the record has no meaning for it.
    fn after(before: Option<&Self>, record: &Record) -> Option<Self> {
        let named: BTreeSet<IpAddr> = record.sources.iter().copied().collect();
        let none = Self::Only(BTreeSet::new());
        let joined = |a: &BTreeSet<IpAddr>| a.union(&named).copied().collect();
        let without = |a: &BTreeSet<IpAddr>| a.difference(&named).copied().collect();
        Some(match (record.kind, before.unwrap_or(&none)) {
            (RecordKind::IsInclude | RecordKind::ToInclude, _) => Self::Only(named),
            // Members of a source-specific group name its sources (RFC 4604, section 2.2.1).
            (RecordKind::IsExclude | RecordKind::ToExclude, _) if is_source_specific(record.group) => {
                return None;
            }
            (RecordKind::IsExclude | RecordKind::ToExclude, _) => Self::AllBut(named),
            (RecordKind::Allow, Self::Only(sources)) => Self::Only(joined(sources)),
            (RecordKind::Allow, Self::AllBut(sources)) => Self::AllBut(without(sources)),
            (RecordKind::Block, Self::Only(sources)) => Self::Only(without(sources)),
            (RecordKind::Block, Self::AllBut(sources)) => Self::AllBut(joined(sources)),
        })
    }
}

/// True for 232/8 and ff3x::/32 (RFC 4607).
fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(v4) => v4.octets().first() == Some(&232),
        IpAddr::V6(v6) => matches!(v6.segments(), [first, 0, ..] if first & 0xfff0 == 0xff30),
    }
}
