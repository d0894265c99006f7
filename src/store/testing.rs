//! What tests stand on: a store in memory that does what a test says, and a database. Tests of the latter need one (`tests/scripts/postgres.sh`); without it they say that they did not run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

pub mod draft;

pub use crate::embedded::testing::{ScriptedFeed, ScriptedItem, ScriptedStore, StoreFault};

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once};
#[cfg(test)]
use std::time::Duration;
use tokio_postgres::{NoTls, SimpleQueryMessage};

const VARIABLE: &str = "TIDEGATE_POSTGRES";

/// Whether there is a database for tests; says once where there is none, past what keeps the words of tests that
/// pass.
pub fn is_tested() -> bool {
    static SAID: Once = Once::new();
    let is_there = std::env::var_os(VARIABLE).is_some();
    if !is_there {
        SAID.call_once(|| {
            let said = "the tests of the store in PostgreSQL do not run";
            let how = "tests/scripts/postgres.sh starts a database for them";
            let _ = writeln!(std::io::stderr(), "{said}: {VARIABLE} names no database ({how})");
        });
    }
    is_there
}

/// Waits until something holds; says what is wrong where that takes too long.
#[cfg(test)]
pub(crate) async fn eventually(fault: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect(fault);
}

/// Schemas that are to be removed once no store has them.
fn left() -> MutexGuard<'static, Vec<String>> {
    static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());
    LEFT.lock().unwrap()
}

/// A schema of its own in the database for tests.
pub struct TestSchema {
    name: String,
    /// The address of the database, with this schema.
    pub url: String,
}

impl TestSchema {
    /// An empty one; `None` where there is no database for tests.
    pub fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let base = is_tested().then(|| std::env::var(VARIABLE).unwrap())?;
        let before = std::mem::take(&mut *left());
        for left in before {
            // A store may outlive the schema's owner.
            let is_used = format!("application_name = '{left}'");
            let used = format!("SELECT 1 FROM pg_stat_activity WHERE {is_used}");
            let gone = format!("DROP SCHEMA {left} CASCADE");
            match sql(&base, &used) {
                0 => drop(sql(&base, &gone)),
                _ => self::left().push(left),
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        sql(&base, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
        let sign = if base.contains('?') { '&' } else { '?' };
        let url = format!("{base}{sign}application_name={name}&options=-csearch_path%3D{name}");
        Some(Self { name, url })
    }

    pub fn sql(&self, text: &str) {
        sql(&self.url, text);
    }
}

impl Drop for TestSchema {
    fn drop(&mut self) {
        left().push(self.name.clone());
    }
}

/// Executes statements; how many rows they answered. On a thread of its own, since tests call it where blocking is
/// not allowed.
pub(crate) fn sql(url: &str, text: &str) -> usize {
    let (url, text) = (url.to_owned(), text.to_owned());
    let done = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            let running = tokio::spawn(connection);
            let answers = client.simple_query(&text).await.unwrap();
            drop(client);
            let _ = running.await;
            answers.iter().filter(|answer| matches!(answer, SimpleQueryMessage::Row(_))).count()
        })
    });
    done.join().unwrap()
}
