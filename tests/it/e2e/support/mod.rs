//! A publisher, a gateway and those who read it, all in one process.

pub mod described;
mod hub;
mod net;
pub mod post;
mod reader;
mod stage;
mod subscriber;

pub use hub::{Hub, pushes};
pub use net::{PUBLIC, header};
pub use post::{Format, Post, post, posts};
pub use reader::{Followers, Reader};
pub use stage::{FEED, Stage, Step, TOKEN, on_disk};
pub use subscriber::Subscriber;

pub use crate::support::publisher::{Answer, Publisher};
