//! The reason why a group is not received, as far as this host can tell.
//!
//! The kernel counts incoming packets before a firewall of this host sees them, lists the joined groups, and
//! reports the version of IGMP or MLD on an interface. Events in the network beyond it can only be guessed
//! from missing packets.
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use nix::net::if_::InterfaceFlags;

use super::interface::Interface;

/// A membership to be diagnosed, with the counters at its start.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    group: SocketAddr,
    source: Option<IpAddr>,
    interface: Option<Interface>,
    began: Counters,
}

/// The kernel's counters since its start, in this network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    /// Multicast packets that reached the host, before its firewall's input rules.
    multicast: u64,
    /// Packets dropped because their source is routed by another interface.
    reverse_path: u64,
}

/// The facts from which the reason is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    group: SocketAddr,
    source: Option<IpAddr>,
    interface: Option<Interface>,
    arrived: Counters,
    /// The version of IGMP or MLD on the interface, if the kernel reports it.
    version: Option<u8>,
    /// True if the interface belongs to a bridge of this host that forwards groups only to ports that requested them,
    /// and there is no querier.
    snooping_without_querier: bool,
}

impl Watch {
    /// Records the counters.
    pub(crate) fn begin(group: SocketAddr, source: Option<IpAddr>, interface: Option<Interface>) -> Self {
        Self { began: Counters::read(group.ip()), group, source, interface }
    }

    /// One sentence on why nothing was received since the start, and the remedy.
    pub(crate) fn reason(&self) -> String {
        let now = Counters::read(self.group.ip());
        let name = self.interface.as_ref().map(|interface| interface.name.clone()).unwrap_or_default();
        // Looked up again: the interface may be down by now.
        let interface = Interface::find(&name).ok().flatten().or_else(|| self.interface.clone());
        Facts {
            group: self.group,
            source: self.source,
            interface,
            arrived: Counters {
                multicast: now.multicast.saturating_sub(self.began.multicast),
                reverse_path: now.reverse_path.saturating_sub(self.began.reverse_path),
            },
            version: spoken_version(self.group.ip(), &name),
            snooping_without_querier: snoops_without_querier(&name),
        }
        .reason()
    }
}

impl Facts {
    /// The first cause that the facts prove, otherwise the likeliest.
    fn reason(&self) -> String {
        let name = self.interface.as_ref().map_or("the interface", |interface| interface.name.as_str());
        if let Some(lack) = self.lack_of_interface() {
            return lack;
        }
        if self.arrived.reverse_path > 0 {
            return format!(
                "{name} receives multicast whose source is routed by another interface, and the reverse path \
                 filter drops it; join on the interface that leads to the hub, or set \
                 net.ipv4.conf.{name}.rp_filter=2"
            );
        }
        if self.arrived.multicast >= TELLING_PACKETS {
            return format!(
                "multicast reaches {name}, but not this program: a firewall of this host is likely; let UDP to {} \
                 port {} in",
                self.group.ip(),
                self.group.port()
            );
        }
        if let (Some(source), Some(version)) =
            (self.source, self.version.filter(|version| *version < self.needed()))
        {
            return format!(
                "{name} speaks {} version {version}, because an old querier is on its network, and can't ask for \
                 the source {source}; have the network speak version {}",
                self.protocol(),
                self.needed()
            );
        }
        if self.snooping_without_querier {
            return format!(
                "the bridge of {name} forwards groups only to ports that asked, and there is no querier; turn its \
                 multicast_querier on, or multicast_snooping off"
            );
        }
        format!(
            "no multicast reaches {name}: it is the wrong interface, or the network between does not forward the \
             group (no {} querier where switches snoop, no multicast routing, too small a hop limit of the leg)",
            self.protocol()
        )
    }

    fn lack_of_interface(&self) -> Option<String> {
        let Interface { name, flags, addresses, .. } = self.interface.as_ref()?;
        let fitting = |address: &IpAddr| address.is_ipv4() == self.group.is_ipv4();
        if !flags.contains(InterfaceFlags::IFF_UP) {
            Some(format!("interface {name} is down; set it up, or join on another"))
        } else if !flags.contains(InterfaceFlags::IFF_RUNNING) {
            Some(format!("interface {name} has no carrier; look at its cable or its peer"))
        } else if !flags.intersects(InterfaceFlags::IFF_MULTICAST | InterfaceFlags::IFF_LOOPBACK) {
            Some(format!("interface {name} can't receive multicast; join on another"))
        } else if !addresses.iter().any(fitting) {
            Some(format!(
                "interface {name} has no address of the group's IP version; give it one, or join on another"
            ))
        } else {
            None
        }
    }

    fn protocol(&self) -> &'static str {
        if self.group.is_ipv4() { "IGMP" } else { "MLD" }
    }

    /// The first version that supports joining a single source.
    fn needed(&self) -> u8 {
        if self.group.is_ipv4() { 3 } else { 2 }
    }
}

impl Counters {
    fn read(group: IpAddr) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        if group.is_ipv4() {
            let netstat = text("/proc/net/netstat");
            Self {
                multicast: column(&netstat, "IpExt:", "InMcastPkts"),
                reverse_path: column(&netstat, "TcpExt:", "IPReversePathFilter"),
            }
        } else {
            Self { multicast: row(&text("/proc/net/snmp6"), "Ip6InMcastPkts"), reverse_path: 0 }
        }
    }
}

/// A value of a table with a line of names and a line of values, both with the same first word.
fn column(table: &str, first: &str, name: &str) -> u64 {
    let mut lines = table.lines().filter(|line| line.split_whitespace().next() == Some(first));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(found, _)| *found == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// A value of a table with one name and value in each line.
fn row(table: &str, name: &str) -> u64 {
    let mut rows = table.lines().map(str::split_whitespace);
    let value = rows.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()).flatten());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The kernel lists it for each interface under IPv4, but not under IPv6.
fn spoken_version(group: IpAddr, interface: &str) -> Option<u8> {
    let table = fs::read_to_string("/proc/net/igmp").ok().filter(|_| group.is_ipv4())?;
    version_in(&table, interface)
}

/// Lines like `2 eth0 : 3 V3`, each followed by the lines of its groups.
fn version_in(table: &str, interface: &str) -> Option<u8> {
    let line = table.lines().find(|line| {
        line.split_whitespace().nth(1).is_some_and(|word| word.trim_end_matches(':') == interface)
    })?;
    line.split_whitespace().last()?.strip_prefix('V')?.parse().ok()
}

/// Known if the bridge is this host's own: the interface is the bridge, or one of its ports.
fn snoops_without_querier(interface: &str) -> bool {
    let place = Path::new("/sys/class/net").join(interface);
    let bridge =
        if place.join("bridge").is_dir() { place.join("bridge") } else { place.join("brport/bridge/bridge") };
    let value = |name: &str| fs::read_to_string(bridge.join(name)).ok().map(|text| text.trim() == "1");
    value("multicast_snooping") == Some(true) && value("multicast_querier") == Some(false)
}

/// Fewer packets prove nothing: queries and announcements of neighbours are multicast too, and the sender of a leg
/// sends several packets a second.
const TELLING_PACKETS: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let flags = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING | InterfaceFlags::IFF_MULTICAST;
        let addresses = vec!["10.0.0.9".parse().unwrap()];
        Facts {
            group: "232.1.2.3:17001".parse().unwrap(),
            source: "10.0.0.1".parse().ok(),
            interface: Some(Interface { name: "eth0".to_owned(), index: 2, flags, addresses }),
            arrived: Counters::default(),
            version: Some(3),
            snooping_without_querier: false,
        }
    }

    #[test]
    fn each_cause_has_a_sentence_of_its_own() {
        let nothing = facts().reason();
        assert!(
            nothing.contains("no multicast reaches eth0") && nothing.contains("no IGMP querier"),
            "{nothing}"
        );
        let firewall = Facts { arrived: Counters { multicast: 20, reverse_path: 0 }, ..facts() }.reason();
        assert!(firewall.contains("firewall") && firewall.contains("232.1.2.3 port 17001"), "{firewall}");
        let filter = Facts { arrived: Counters { multicast: 20, reverse_path: 4 }, ..facts() }.reason();
        assert!(filter.contains("net.ipv4.conf.eth0.rp_filter"), "{filter}");
        let old = Facts { version: Some(2), ..facts() }.reason();
        assert!(old.contains("IGMP version 2") && old.contains("source 10.0.0.1"), "{old}");
        let bridge = Facts { snooping_without_querier: true, ..facts() }.reason();
        assert!(bridge.contains("multicast_querier"), "{bridge}");
    }

    #[test]
    fn an_interface_that_can_not_receive_is_the_first_cause() {
        let with = |change: fn(&mut Interface)| {
            let mut facts = facts();
            facts.arrived.multicast = 100;
            facts.interface.iter_mut().for_each(change);
            facts.reason()
        };
        assert!(with(|it| it.flags.remove(InterfaceFlags::IFF_UP)).contains("eth0 is down"));
        assert!(with(|it| it.flags.remove(InterfaceFlags::IFF_RUNNING)).contains("no carrier"));
        assert!(
            with(|it| it.flags.remove(InterfaceFlags::IFF_MULTICAST)).contains("can't receive multicast")
        );
        assert!(with(|it| it.addresses.clear()).contains("no address of the group's IP version"));
    }

    #[test]
    fn the_kernels_tables_are_read() {
        let netstat = "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 0 7\nIpExt: InNoRoutes InMcastPkts \
            OutMcastPkts\nIpExt: 1 42 3\n";
        assert_eq!(column(netstat, "IpExt:", "InMcastPkts"), 42);
        assert_eq!(column(netstat, "TcpExt:", "IPReversePathFilter"), 7);
        assert_eq!(column(netstat, "IpExt:", "Other"), 0);
        assert_eq!(row("Ip6InReceives 9\nIp6InMcastPkts                  \t5\n", "Ip6InMcastPkts"), 5);
        let igmp = "Idx\tDevice    : Count Querier\tGroup    Users \
            Timer\tReporter\n1\tlo        :     1      V3\n\t\t\t\t010000E0     1 \
            0:00000000\t\t0\n3\teth0:     2      V2\n";
        assert_eq!(
            (version_in(igmp, "lo"), version_in(igmp, "eth0"), version_in(igmp, "eth")),
            (Some(3), Some(2), None)
        );
    }

    #[test]
    fn a_real_host_gives_some_reason() {
        let interface = Interface::find("127.0.0.1").unwrap();
        let reason = Watch::begin("239.77.250.9:9".parse().unwrap(), None, interface).reason();
        assert!(reason.contains("lo"), "{reason}");
    }
}
