//! Announcements of sites to a relay that sends a leg by unicast.
//!
//! The site announces itself from the socket on which it wants the leg. The relay answers with a cookie, which is bound
//! to the socket's address, and sends only to an address that has returned its cookie. So nobody has a relay send
//! anything to a third host. Announcements are repeated, which keeps the way open through firewalls and NAT, and expire
//! without repetition. Every message proves by the leg's pass that a member of the leg made it; the relay answers no
//! other ones, and no answer is longer than its question.
mod announcer;
mod message;
mod receivers;
#[cfg(test)]
mod tests;

pub use announcer::Announcer;
pub use message::ANNOUNCEMENT_BYTES;
pub use receivers::Receivers;
