//! Halves of circuits on a real kernel, in network namespaces that end with each test. `ip` and `tc` show the
//! result.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test, with a namespace of its own thread"
)]

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::process::Command;

use downburst_host::{
    Burst, Half, Netlink, Owner, Place, Shape, Step, Way, change, clear, keep_only, probe_host, raise,
    raise_watched,
};
use nix::sched::{CloneFlags, unshare};

#[test]
fn a_half_stands_as_told_and_leaves_nothing() {
    in_a_namespace(|netlink| {
        let before = everything();
        let half = tunnel(17, 700);
        let raised = raise(netlink, &half).unwrap();
        assert_eq!(raised.interface, half.interface());
        let link = run("ip", &["-d", "link", "show", &raised.interface]);
        assert!(
            link.contains("vxlan id 700 remote 127.0.0.2 local 127.0.0.1 dev lo") && link.contains("UP"),
            "{link}"
        );
        assert!(link.contains("dstport 4789") && link.contains("gso_max_segs 4"), "{link}");
        assert!(run("ip", &["address", "show", &raised.interface]).contains("10.9.0.0/31"));
        let classes = run("tc", &["class", "show", "dev", "lo"]);
        assert!(
            classes.contains("class htb db00:10 parent db00:1")
                && classes.contains("rate 54Mbit ceil 54Mbit"),
            "{classes}"
        );
        assert!(
            classes.contains("class htb db00:3 parent db00:1")
                && classes.contains("rate 46Mbit ceil 100Mbit"),
            "{classes}"
        );
        assert!(classes.contains("class htb db00:2 parent db00:3"), "{classes}");
        assert_eq!(raise(netlink, &half).unwrap(), raised);
        assert_eq!(
            run("tc", &["filter", "show", "dev", "lo", "parent", "db00:"]).matches("flowid db00:10").count(),
            1
        );
        let cleared = clear(netlink, &half);
        assert_eq!((cleared.leases, cleared.left), (vec![17], vec![]));
        assert_eq!(everything(), before);
    });
}

#[test]
fn a_crash_after_any_step_is_completed_or_taken_away() {
    in_a_namespace(|netlink| {
        let before = everything();
        let half = tunnel(17, 700);
        let mut crash = 0;
        while break_off(netlink, &half, crash) {
            let cleared = keep_only(netlink, half.owner, &[]);
            assert_eq!(cleared.left, [], "after {crash} steps");
            assert_eq!(everything(), before, "after {crash} steps");
            break_off(netlink, &half, crash);
            raise(netlink, &half).unwrap();
            assert_eq!(run("tc", &["class", "show", "dev", "lo"]).lines().count(), 4, "after {crash} steps");
            assert_eq!(keep_only(netlink, half.owner, std::slice::from_ref(&half)).removed, [] as [&str; 0]);
            clear(netlink, &half);
            assert_eq!(everything(), before, "after {crash} steps");
            crash += 1;
        }
        assert!(crash >= 8, "there were steps to crash after");
    });
}

#[test]
fn the_excess_of_a_soft_cap_goes_last_and_is_marked() {
    in_a_namespace(|netlink| {
        let before = everything();
        let hard = tunnel(17, 700);
        let soft = Half { shape: hard.shape.map(|shape| Shape { soft: true, ..shape }), ..hard.clone() };
        let raised = raise(netlink, &soft).unwrap();
        assert_eq!(raised.unmarked, None);
        let classes = run("tc", &["class", "show", "dev", "lo"]);
        let own = classes.lines().find(|line| line.contains("db00:10")).unwrap();
        assert!(own.contains("prio 7 rate 54Mbit ceil 100Mbit"), "{classes}");
        let rules = run("nft", &["list", "table", "netdev", &raised.interface]);
        // 54 Mb/s on the port are 6,527,080 bytes of frames inside a second.
        for part in
            ["hook egress device", "limit rate 6527080 bytes/second", "accept", "ip dscp set", "ip6 dscp set"]
        {
            assert!(rules.contains(part), "no {part} in {rules}");
        }
        assert_eq!(raise(netlink, &soft).unwrap(), raised);
        assert_eq!(keep_only(netlink, soft.owner, std::slice::from_ref(&soft)).removed, [] as [&str; 0]);
        assert_eq!(raise(netlink, &hard).unwrap().index, raised.index);
        assert!(!run("nft", &["list", "ruleset"]).contains("excess"), "a hard cap has no mark");
        raise(netlink, &soft).unwrap();
        assert_eq!(clear(netlink, &soft).left, []);
        assert_eq!(everything(), before);
    });
}

#[test]
fn a_host_between_two_hops_joins_them_and_leaves_nothing() {
    in_a_namespace(|netlink| {
        let before = everything();
        let [near, far] = sides();
        let (first, second) = (raise(netlink, &near).unwrap(), raise(netlink, &far).unwrap());
        for raised in [&first, &second] {
            let link = run("ip", &["-d", "link", "show", &raised.interface]);
            assert!(link.contains("nolearning") && link.contains("learning off"), "{link}");
            assert!(!run("ip", &["address", "show", &raised.interface]).contains("inet"));
        }
        let ports = run("bridge", &["link", "show"]);
        assert_eq!(ports.matches("state forwarding").count(), 2, "{ports}");
        assert_eq!(raise(netlink, &far).unwrap(), second);
        let both = [near.clone(), far.clone()];
        assert_eq!(keep_only(netlink, near.owner, &both).removed, [] as [&str; 0]);
        assert_eq!(run("bridge", &["link", "show"]), ports);
        keep_only(netlink, near.owner, &[]);
        assert_eq!(everything(), before);
    });
}

#[test]
fn a_crash_between_two_hops_is_taken_away() {
    in_a_namespace(|netlink| {
        let before = everything();
        let [near, far] = sides();
        let mut crash = 0;
        while break_off(netlink, &near, crash) {
            assert_eq!(keep_only(netlink, near.owner, &[]).left, [], "after {crash} steps");
            assert_eq!(everything(), before, "after {crash} steps");
            break_off(netlink, &near, crash);
            raise(netlink, &near).unwrap();
            raise(netlink, &far).unwrap();
            let ports = run("bridge", &["link", "show"]);
            assert_eq!(ports.matches("state forwarding").count(), 2, "after {crash} steps: {ports}");
            clear(netlink, &near);
            clear(netlink, &far);
            assert_eq!(everything(), before, "after {crash} steps");
            crash += 1;
        }
        assert!(crash >= 8, "there were steps to crash after");
    });
}

#[test]
fn a_tag_is_an_interface_of_the_port_where_the_kernel_has_tags() {
    in_a_namespace(|netlink| {
        let before = everything();
        let half = Half { way: Way::Tag(100), ..tunnel(17, 700) };
        let raised = raise(netlink, &half);
        if let Err(failure) = probe_host().vlan {
            let reason = format!("this kernel has no VLANs: {failure}");
            assert_eq!(raised.unwrap_err().step, Step::Kernel);
            assert_eq!(everything(), before);
            assert_ne!(std::env::var("DOWNBURST_SKIP").as_deref(), Ok("never"), "{reason}");
            return println!("skipped: {reason}");
        }
        let link = run("ip", &["-d", "link", "show", &raised.unwrap().interface]);
        assert!(link.contains("vlan protocol 802.1Q id 100"), "{link}");
        clear(netlink, &half);
        assert_eq!(everything(), before);
    });
}

#[test]
fn circuits_of_a_port_do_not_touch_each_other() {
    in_a_namespace(|netlink| {
        let (first, second) = (tunnel(1, 701), tunnel(2, 702));
        raise(netlink, &first).unwrap();
        raise(netlink, &second).unwrap();
        // The circuits' rates exceed that of the port; all other traffic keeps its twentieth.
        assert!(run("tc", &["class", "show", "dev", "lo"]).contains("rate 5Mbit ceil 100Mbit"));
        clear(netlink, &first);
        let classes = run("tc", &["class", "show", "dev", "lo"]);
        assert!(classes.contains("db00:11") && !classes.contains("db00:10"), "{classes}");
        assert!(classes.contains("rate 46Mbit ceil 100Mbit"), "{classes}");
        // Another node of the host cleans up after a crash of its own.
        keep_only(netlink, Owner::of("another hub"), &[]);
        assert!(run("tc", &["class", "show", "dev", "lo"]).contains("db00:11"));
        clear(netlink, &second);
    });
}

#[test]
fn a_rate_is_changed_in_place() {
    in_a_namespace(|netlink| {
        let half = tunnel(17, 700);
        let raised = raise(netlink, &half).unwrap();
        let faster = Half {
            shape: half.shape.map(|shape| Shape { rate_bps: 81_000_000, soft: true, ..shape }),
            ..half.clone()
        };
        assert_eq!(raise(netlink, &faster).unwrap(), raised);
        let classes = run("tc", &["class", "show", "dev", "lo"]);
        assert!(
            classes.contains("rate 81Mbit ceil 100Mbit") && classes.contains("rate 19Mbit ceil 100Mbit"),
            "{classes}"
        );
        clear(netlink, &faster);
    });
}

#[test]
fn what_somebody_else_configured_is_left_alone_and_the_steps_before_are_undone() {
    in_a_namespace(|netlink| {
        run("tc", &["qdisc", "add", "dev", "lo", "root", "handle", "7:", "pfifo"]);
        let before = everything();
        let failure = raise(netlink, &tunnel(17, 700)).unwrap_err();
        assert_eq!(failure.step, Step::Shaping);
        assert_eq!(
            failure.to_string(),
            "lo has traffic control of its own (pfifo), which the node does not touch; remove it (tc qdisc del \
             dev lo root), or give circuits another port"
        );
        keep_only(netlink, Owner::of("hub"), &[]);
        assert_eq!(everything(), before);
    });
}

#[test]
fn the_port_that_is_not_there_is_named_with_those_that_are() {
    in_a_namespace(|netlink| {
        let failure = raise(netlink, &Half { port: "eth7".to_owned(), ..tunnel(17, 700) }).unwrap_err();
        assert_eq!(
            (failure.step, failure.sentence.as_str()),
            (Step::Interface, "this host has no interface eth7; it has lo")
        );
        run("ip", &["link", "set", "lo", "down"]);
        assert_eq!(raise(netlink, &tunnel(17, 700)).unwrap_err().remedy, "switch it on: ip link set lo up");
    });
}

#[test]
fn an_identifier_that_is_taken_is_told_as_such() {
    in_a_namespace(|netlink| {
        raise(netlink, &tunnel(1, 700)).unwrap();
        let failure = raise(netlink, &tunnel(2, 700)).unwrap_err();
        assert_eq!(failure.step, Step::Tunnel);
        assert!(failure.sentence.contains("VNI 700") && failure.remedy.contains("another VNI"), "{failure}");
        assert!(run("tc", &["class", "show", "dev", "lo"]).contains("db00:10"), "the first one stands");
    });
}

#[test]
fn many_ends_each_get_a_copy() {
    in_a_namespace(|netlink| {
        let half = to_ends(&[2, 3, 4]);
        let raised = raise(netlink, &half).unwrap();
        assert_eq!(copied_to(&raised.interface), ["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
        assert_eq!(raise(netlink, &half).unwrap(), raised);
    });
}

#[test]
fn ends_join_and_leave_a_tunnel_in_place() {
    in_a_namespace(|netlink| {
        let half = to_ends(&[2, 3]);
        let raised = raise(netlink, &half).unwrap();
        for ends in [&[2, 3, 4][..], &[2, 4], &[4, 5, 6], &[2, 3]] {
            assert_eq!(change(netlink, &to_ends(ends)).unwrap(), raised);
            let wanted: Vec<String> = ends.iter().map(|host| format!("127.0.0.{host}")).collect();
            assert_eq!(copied_to(&raised.interface), wanted);
        }
        clear(netlink, &half);
        assert!(!run("ip", &["link"]).contains(&raised.interface));
    });
}

#[test]
fn a_declared_circuit_is_looked_at_and_bounded() {
    in_a_namespace(|netlink| {
        let declared = |address: [u8; 4]| Half {
            way: Way::Declared,
            place: Place::End(address.into(), 8),
            ..tunnel(17, 700)
        };
        let before = everything();
        let failure = raise(netlink, &declared([10, 9, 0, 0])).unwrap_err();
        assert_eq!(failure.step, Step::Address);
        assert!(
            failure.sentence.contains("does not have the address 10.9.0.0; it has 127.0.0.1/8"),
            "{failure}"
        );
        assert_eq!(everything(), before);
        let half = declared([127, 0, 0, 1]);
        assert_eq!(raise(netlink, &half).unwrap().interface, "lo");
        assert!(run("tc", &["class", "show", "dev", "lo"]).contains("rate 54Mbit ceil 54Mbit"));
        assert_eq!(keep_only(netlink, half.owner, std::slice::from_ref(&half)).removed, [] as [&str; 0]);
        clear(netlink, &half);
        assert_eq!(everything(), before);
    });
}

#[test]
fn abilities_are_found_by_trying_and_trying_leaves_nothing() {
    in_a_namespace(|_| {
        let before = everything();
        let abilities = probe_host();
        assert_eq!((&abilities.net_admin, &abilities.vxlan, &abilities.htb), (&Ok(()), &Ok(()), &Ok(())));
        assert_eq!(abilities.marking, Ok(()));
        if let Err(failure) = abilities.vlan {
            assert_eq!(failure.step, Step::Kernel);
            let told = "making a VLAN is not possible with this host's kernel";
            assert!(failure.sentence.starts_with(told), "{failure}");
            assert!(failure.remedy.contains("8021q"), "{failure}");
        }
        assert_eq!(everything(), before);
    });
}

/// Runs a test in a namespace of its own thread, with the loopback interface as its port.
fn in_a_namespace(test: fn(&mut Netlink)) {
    let outcome = std::thread::spawn(move || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            let reason = format!("needs root for a network namespace of its own: {error}");
            assert_ne!(std::env::var("DOWNBURST_SKIP").as_deref(), Ok("never"), "{reason}");
            return println!("skipped: {reason}");
        }
        run("ip", &["link", "set", "lo", "up"]);
        test(&mut Netlink::open().unwrap());
    });
    outcome.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Starts to raise the half and stops after `crash` steps, as a crash would; false if there are fewer.
fn break_off(netlink: &mut Netlink, half: &Half, crash: usize) -> bool {
    let mut steps = 0;
    let broken = raise_watched(netlink, half, |_| {
        steps += 1;
        if steps > crash { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    broken.is_break()
}

/// Everything that circuits may change, as shown by the host's own tools.
fn everything() -> String {
    let shown = [
        run("ip", &["-d", "address", "show"]),
        run("ip", &["route", "show", "table", "all"]),
        run("tc", &["qdisc", "show"]),
        run("tc", &["class", "show", "dev", "lo"]),
        run("tc", &["filter", "show", "dev", "lo"]),
        run("nft", &["list", "ruleset"]),
    ];
    shown.join("\n")
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn tunnel(lease: u32, vni: u32) -> Half {
    let way =
        Way::Tunnel { vni, local: [127, 0, 0, 1].into(), others: vec![[127, 0, 0, 2].into()], group: None };
    let shape =
        Shape { rate_bps: 54_000_000, soft: false, burst: Burst::Auto, port_rate_bps: Some(100_000_000) };
    let place = Place::End(IpAddr::from([10, 9, 0, 0]), 31);
    Half { owner: Owner::of("hub"), lease, port: "lo".to_owned(), way, place, shape: Some(shape) }
}

/// The halves of a host between two hops.
fn sides() -> [Half; 2] {
    [(Place::Near, 3021, [127, 0, 0, 2]), (Place::Far, 3123, [127, 0, 0, 3])].map(|(place, vni, other)| {
        let others = vec![IpAddr::from(other)];
        let way = Way::Tunnel { vni, local: [127, 0, 0, 1].into(), others, group: None };
        Half { place, way, ..tunnel(17, vni) }
    })
}

/// A tunnel from this host to several others.
fn to_ends(ends: &[u8]) -> Half {
    let others = ends.iter().map(|host| IpAddr::from([127, 0, 0, *host])).collect();
    let way = Way::Tunnel { vni: 700, local: [127, 0, 0, 1].into(), others, group: None };
    Half { way, ..tunnel(17, 700) }
}

/// The ends that a tunnel sends a copy to.
fn copied_to(interface: &str) -> Vec<String> {
    let table = run("bridge", &["fdb", "show", "dev", interface]);
    let copies = table.lines().filter_map(|line| line.strip_prefix("00:00:00:00:00:00 dst "));
    let mut ends: Vec<String> =
        copies.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect();
    ends.sort_unstable();
    ends
}
