//! The circuit halves that this node holds in the kernel.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use downburst_host::{
    Ability, Cleared, Failure, Half, Netlink, Owner, Place, Raised, change, clear, keep_only, links,
    probe_host, raise,
};
use downburst_session::CircuitFault;
use serde::Serialize;
use serde_json::{Value, json};

/// Creates and removes halves, one at a time; may be shared.
#[derive(Clone)]
pub(crate) struct Keeper {
    owner: Owner,
    held: Arc<Mutex<Held>>,
}

/// The halves by lease and side: a host between two hops of a circuit has two of them.
type Held = BTreeMap<(u32, Side), Half>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    End,
    Near,
    Far,
}

/// Why an operation failed, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Trouble {
    pub(crate) step: String,
    pub(crate) sentence: String,
    pub(crate) remedy: String,
}

impl Keeper {
    /// `identity` distinguishes this node from every other one on its host.
    pub(crate) fn new(identity: &str) -> Self {
        Self { owner: Owner::of(identity), held: Arc::default() }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Creates a half, or changes the existing one of its lease; if that fails, the former one is restored.
    pub(crate) async fn raise(&self, half: Half) -> Result<Raised, Trouble> {
        let owner = self.owner;
        self.work(move |netlink, held| {
            let former = held.get(&key(&half)).cloned();
            let raised = match &former {
                Some(_) => change(netlink, &half),
                None => raise(netlink, &half),
            };
            match (raised, former) {
                (Ok(raised), former) => {
                    if let Some(failure) = &raised.unmarked {
                        tracing::warn!(lease = half.lease, "{failure}");
                    }
                    held.insert(key(&half), half);
                    if former.is_some() {
                        tidy(netlink, owner, held);
                    }
                    Ok(raised)
                }
                (Err(failure), Some(former)) => {
                    if raise(netlink, &former).is_err() {
                        held.remove(&key(&former));
                    }
                    tidy(netlink, owner, held);
                    Err(failure.into())
                }
                (Err(failure), None) => Err(failure.into()),
            }
        })
        .await
        .unwrap_or_else(Err)
    }

    pub(crate) async fn clear(&self, lease: u32) -> Result<Cleared, Trouble> {
        self.work(move |netlink, held| {
            let mut cleared = Cleared::default();
            for half in [Side::End, Side::Near, Side::Far]
                .map(|side| held.remove(&(lease, side)))
                .into_iter()
                .flatten()
            {
                let Cleared { leases, removed, left } = clear(netlink, &half);
                cleared.leases.extend(leases);
                cleared.removed.extend(removed);
                cleared.left.extend(left);
            }
            cleared
        })
        .await
    }

    /// Gives up the halves of these leases, and removes everything on the host that bears this node's mark and belongs
    /// to no half that it holds.
    pub(crate) async fn give_up(&self, leases: BTreeSet<u32>) -> Result<Cleared, Trouble> {
        let owner = self.owner;
        self.work(move |netlink, held| {
            held.retain(|(lease, _), _| !leases.contains(lease));
            tidy(netlink, owner, held)
        })
        .await
    }

    /// Removes everything on the host that bears this node's mark and belongs to none of these leases.
    pub(crate) async fn keep_only(&self, leases: Vec<u32>) -> Result<Cleared, Trouble> {
        let owner = self.owner;
        self.work(move |netlink, held| {
            held.retain(|(lease, _), _| leases.contains(lease));
            tidy(netlink, owner, held)
        })
        .await
    }

    /// Bytes of frames out and in over each circuit since its creation; without circuits whose interface vanished.
    pub(crate) async fn carried(&self) -> BTreeMap<u32, (u64, u64)> {
        let carried = self.work(|netlink, held| {
            let links = links(netlink).unwrap_or_default();
            let bytes = |half: &Half| {
                let name = half.interface();
                links.iter().find(|link| link.name == name).map(|link| (half.lease, link.bytes))
            };
            held.iter()
                .filter(|((_, side), _)| *side == Side::End)
                .filter_map(|(_, half)| bytes(half))
                .collect()
        });
        carried.await.unwrap_or_default()
    }

    /// Accesses the kernel on a thread that may block.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Netlink, &mut Held) -> T + Send + 'static,
    ) -> Result<T, Trouble> {
        let held = Arc::clone(&self.held);
        let done = tokio::task::spawn_blocking(move || {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            Netlink::open().map(|mut netlink| work(&mut netlink, &mut held))
        });
        match done.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(unspoken(&error)),
            Err(error) => Err(unspoken(&error)),
        }
    }
}

/// Removes what no half needs any more, such as the class on a port that a circuit left.
fn tidy(netlink: &mut Netlink, owner: Owner, held: &Held) -> Cleared {
    let kept: Vec<Half> = held.values().cloned().collect();
    keep_only(netlink, owner, &kept)
}

fn key(half: &Half) -> (u32, Side) {
    let side = match half.place {
        Place::End(..) => Side::End,
        Place::Near => Side::Near,
        Place::Far => Side::Far,
    };
    (half.lease, side)
}

/// The circuit features of this host, determined by trying them.
pub fn describe_host() -> Value {
    let abilities = probe_host();
    json!({
        "net_admin": described(&abilities.net_admin),
        "vxlan": described(&abilities.vxlan),
        "vlan": described(&abilities.vlan),
        "htb": described(&abilities.htb),
        "marking": described(&abilities.marking),
    })
}

fn described(ability: &Ability) -> Value {
    match ability {
        Ok(()) => json!({"able": true, "sentence": null, "remedy": null}),
        Err(failure) => json!({"able": false, "sentence": failure.sentence, "remedy": failure.remedy}),
    }
}

fn unspoken(error: &impl Display) -> Trouble {
    Trouble {
        step: "kernel".to_owned(),
        sentence: format!("the node can't query the kernel about interfaces: {error}"),
        remedy: "allow the node AF_NETLINK sockets (RestrictAddressFamilies in its unit)".to_owned(),
    }
}

impl From<Trouble> for CircuitFault {
    fn from(Trouble { step, sentence, remedy }: Trouble) -> Self {
        Self { step, sentence, remedy }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { step: failure.step.to_string(), sentence: failure.sentence, remedy: failure.remedy }
    }
}
