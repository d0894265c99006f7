//! Every request that leaves the gateway, behind one guard (`fetch`), and what of a request is passed on (`origin`).

pub mod fetch;
pub mod origin;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
