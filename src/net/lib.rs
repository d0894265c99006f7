//! All outgoing requests, behind one SSRF guard (`fetch`), and the rules for passing requests on to origins (`origin`).

pub mod fetch;
pub mod origin;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
