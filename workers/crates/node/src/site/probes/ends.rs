//! The other ends of a site's probes: the hub's node, the relay by which its session comes, or, at a relay, a site that
//! it carries.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use downburst_session::{OtherEnd, PathProbed, ProbeOpen, ProbeSaid};

use super::{Carrier, Probes, Running};
use crate::probing::Port;

/// The host to which packets of a session's probes may go.
pub(in crate::site) enum Ends<'a> {
    /// The hub's node, at this address: the session is direct.
    Node(&'a str),
    /// The first relay of the session; `None`: it is not connected any more.
    Relay(Option<IpAddr>),
}

impl Ends<'_> {
    /// The address and port of the other end that the order names.
    pub(super) fn far(&self, open: &ProbeOpen) -> Result<SocketAddr, String> {
        let host = match (open.other_end, self) {
            (None, Self::Node(node)) => node.parse().map(|node: SocketAddr| node.ip()).ok(),
            (None, Self::Relay(_)) => {
                return Err(
                    "the site's session comes by a relay, and its packets would not take that path; probe \
                            from the relay"
                        .to_owned(),
                );
            }
            (Some(OtherEnd::Relay), Self::Relay(relay @ Some(_))) => *relay,
            (Some(OtherEnd::Relay), _) => return Err("the site's session comes by no relay".to_owned()),
            (Some(OtherEnd::Site), _) => {
                return Err("a relay probes the paths to its sites by UDP".to_owned());
            }
        };
        let host = host.ok_or("the address of the hub's node is not known here")?;
        Ok(SocketAddr::new(host, open.port))
    }
}

impl Probes {
    /// The port towards the other end, and the answer to the order.
    pub(super) fn port(&self, open: &ProbeOpen, ends: &Ends<'_>) -> Result<(Port, ProbeSaid), String> {
        if open.other_end == Some(OtherEnd::Site) {
            return self.listening(open);
        }
        let port = self.towards(ends.far(open)?, open)?;
        Ok((port, ProbeSaid::Ready { step: None, tcp: None }))
    }

    fn towards(&self, end: SocketAddr, open: &ProbeOpen) -> Result<Port, String> {
        Port::towards(end, open.key, open.packet_bytes, self.clock).map_err(|error| {
            format!("the site can't open UDP to port {} of {}: {error}", end.port(), end.ip())
        })
    }

    fn listening(&self, open: &ProbeOpen) -> Result<(Port, ProbeSaid), String> {
        let carries = self.carries.as_ref().ok_or("this is no relay, so no site is behind it")?;
        let opened = Port::listen_for(Arc::clone(carries), open.key, open.packet_bytes, self.clock)
            .and_then(|port| port.number().map(|number| (port, ProbeSaid::Listening { port: number })));
        opened.map_err(|error| format!("the relay can't open UDP for the probe: {error}"))
    }
}

impl Running {
    /// True if this end counts, and the other one sends.
    pub(super) fn counts(&self) -> bool {
        self.open.out != (self.open.other_end == Some(OtherEnd::Site))
    }

    /// A relay reports the first hello of its site.
    pub(super) fn say_when_heard(&mut self) {
        if let (Some(OtherEnd::Site), Carrier::Steps(way)) = (self.open.other_end, &self.carrier) {
            let (way, run, say) = (Arc::clone(way), self.run, self.say.clone());
            self.work.spawn(async move {
                way.hears().await;
                let _ = say.send(PathProbed { run, said: ProbeSaid::Heard { ipv6: way.is_ipv6() } });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use downburst_probe::Key;
    use downburst_session::{PathProbe, ProbeOrder, ProbeStep};

    use super::*;
    use crate::clock::Clock;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn open(port: u16, out: bool, other_end: Option<OtherEnd>) -> ProbeOrder {
        ProbeOrder::Open(ProbeOpen {
            key: Key([5; 32]),
            port,
            out,
            packet_bytes: 200,
            most_bps: 2_000_000,
            tcp: None,
            other_end,
        })
    }

    fn order(probes: &mut Probes, order: ProbeOrder, ends: &Ends<'_>) {
        probes.order(PathProbe { run: 7, order }, ends);
    }

    fn relay() -> Probes {
        Probes::new(None, Some(Arc::new(|from| from == HOME)), Clock::start(0))
    }

    async fn refusal(probes: &mut Probes, opening: ProbeOrder, ends: Ends<'_>) -> String {
        order(probes, opening, &ends);
        match probes.said().await.said {
            ProbeSaid::Refused(sentence) => sentence,
            said => panic!("{said:?}"),
        }
    }

    #[tokio::test]
    async fn packets_take_the_path_of_the_session_or_none() {
        let site = &mut Probes::new(None, None, Clock::start(0));
        let by_relay = Ends::Relay(Some(HOME));
        assert!(refusal(site, open(9, true, None), by_relay).await.contains("probe from the relay"));
        let relay = Some(OtherEnd::Relay);
        assert!(refusal(site, open(9, true, relay), Ends::Node("127.0.0.1:1")).await.contains("by no relay"));
        assert!(refusal(site, open(9, true, relay), Ends::Relay(None)).await.contains("by no relay"));
        let behind = open(9, true, Some(OtherEnd::Site));
        assert!(refusal(site, behind, Ends::Node("127.0.0.1:1")).await.contains("no relay"));
    }

    /// Both ends of a probe between a relay and its site, ready for a step.
    async fn pair(out: bool) -> (Probes, Probes) {
        let (mut relay, mut site) = (relay(), Probes::new(None, None, Clock::start(0)));
        order(&mut relay, open(0, out, Some(OtherEnd::Site)), &Ends::Node("127.0.0.1:1"));
        let ProbeSaid::Listening { port } = relay.said().await.said else { panic!("a port") };
        order(&mut site, open(port, out, Some(OtherEnd::Relay)), &Ends::Relay(Some(HOME)));
        assert_eq!(site.said().await.said, ProbeSaid::Ready { step: None, tcp: None });
        assert_eq!(relay.said().await.said, ProbeSaid::Heard { ipv6: false });
        (relay, site)
    }

    #[tokio::test]
    async fn a_step_goes_between_a_relay_and_its_site_in_either_direction() {
        let ends = Ends::Relay(Some(HOME));
        for out in [true, false] {
            let (relay, site) = pair(out).await;
            let (mut sender, mut counter) = if out { (relay, site) } else { (site, relay) };
            let step = ProbeOrder::Step(ProbeStep { step: 2, rate_bps: 2_000_000, duration_ms: 200 });
            order(&mut counter, step.clone(), &ends);
            assert_eq!(counter.said().await.said, ProbeSaid::Ready { step: Some(2), tcp: None });
            order(&mut sender, step, &ends);
            let ProbeSaid::Sent { step: 2, sent } = sender.said().await.said else { panic!("it sent") };
            order(&mut counter, ProbeOrder::Sent { step: 2, packets: sent.packets }, &ends);
            let figures = loop {
                if let ProbeSaid::Arrived { figures, .. } = counter.said().await.said {
                    break figures;
                }
            };
            assert_eq!((figures.sent, figures.received), (sent.packets, sent.packets));
        }
    }
}
