//! Reading SSE.
