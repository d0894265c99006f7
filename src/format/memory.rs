//! How much memory something takes, measured in a process of its own: the other tests of this one take
//! memory, too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Says to a process that it has one test alone.
const ALONE: &str = "TIDEGATE_TEST_ALONE";

/// Whether this process is one of the test's own. Where it is not, the test is run in such a process, and has
/// passed there.
pub fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let run = alone.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(run.status.success() && said[0].contains("1 passed"), "{}", said.concat());
    false
}

/// The most bytes that something takes at a time beside those that were taken before.
pub fn peak<T>(make: impl FnOnce() -> T) -> (T, usize) {
    // The highest mark is that of now (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident("VmRSS:");
    let made = make();
    (made, resident("VmHWM:").saturating_sub(before))
}

fn resident(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
