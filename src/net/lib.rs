//! Every request that leaves the gateway, behind one guard (`fetch`), and the protocols that need no
//! more than that: certificates (`acme`), and what of a request is passed on (`origin`).

pub mod acme;
pub mod fetch;
pub mod origin;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
