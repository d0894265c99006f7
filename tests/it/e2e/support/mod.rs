//! A publisher, a gateway and those who read it, all in one process.

pub mod described;
mod hub;
mod net;
pub mod post;
pub mod publisher;
mod reader;
mod stage;
mod subscriber;

pub use hub::{Hub, pushes};
pub use net::{PUBLIC, header};
pub use post::{Format, Post, post, posts};
pub use publisher::{Answer, Publisher};
pub use reader::{Followers, Reader};
pub use stage::{FEED, Stage, Step, TOKEN};
pub use subscriber::Subscriber;
