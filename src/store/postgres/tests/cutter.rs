//! What stands between a store and its database, and cuts a connection when a commit has gone out.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A commit, as it goes over the wire.
const COMMIT: &[u8] = b"COMMIT\0";

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The commit does not arrive.
    Before,
    /// It arrives, and its answer does not.
    After,
}

/// A proxy that cuts at every so many commits, before and after it in turn.
pub(super) struct Cutter {
    pub(super) address: SocketAddr,
    commits: Arc<AtomicUsize>,
    every: usize,
}

impl Cutter {
    pub(super) fn new(database: SocketAddr, every: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let commits = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&commits);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, seen) = (TcpStream::connect(database).unwrap(), Arc::clone(&seen));
                let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || answers(from, to));
                std::thread::spawn(move || questions(client, server, &seen, every));
            }
        });
        Self { address, commits, every }
    }

    /// How often it has cut.
    pub(super) fn cuts(&self) -> usize {
        self.commits.load(Ordering::Acquire) / self.every
    }
}

fn answers(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn questions(mut from: TcpStream, mut to: TcpStream, seen: &AtomicUsize, every: usize) {
    let mut part = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut part) {
        let part = &part[..length];
        let cut = match part.ends_with(COMMIT) {
            true => match seen.fetch_add(1, Ordering::AcqRel) + 1 {
                number if number % (2 * every) == 0 => Some(Cut::Before),
                number if number % every == 0 => Some(Cut::After),
                _ => None,
            },
            false => None,
        };
        if cut == Some(Cut::After) {
            // Nobody is told what becomes of it.
            let _ = from.shutdown(Shutdown::Both);
        }
        if cut != Some(Cut::Before) && to.write_all(part).is_err() || cut.is_some() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Write);
}
