//! The files that the process may have open. Each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The part of all files that connections of clients may be, that of requests at sites, and how many are left for publishers,
/// subscribers, operators and the store. Where there are too few for that, connections are a smaller part.
const PART: u64 = 2;
pub(super) const OF_SITES: u64 = 4;
const OTHERS: u64 = 512;
const PART_OF_FEW: u64 = 8;

/// Raises the soft limit of files to the hard one, and answers how many connections may be served of those that are
/// wanted.
pub fn connections_within_files(wanted: u32) -> usize {
    let most = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit { current: most, maximum: most };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    let files = limit();
    let connections = within(wanted, files);
    if connections < u64::from(wanted) {
        tracing::warn!(
            files,
            connections,
            wanted,
            "fewer connections are served than server.connections says, since the process may have so few files \
             open; raise its limit (LimitNOFILE of a unit, ulimit -n)"
        );
    }
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// How many files the process may have open; `None`: without a limit.
pub(super) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// `None`: without a limit.
fn within(wanted: u32, files: Option<u64>) -> u64 {
    let wanted = u64::from(wanted);
    files.map_or(wanted, |files| {
        let left = (files - files / OF_SITES).saturating_sub(OTHERS).max(files / PART_OF_FEW);
        wanted.min(left.min(files / PART).max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_all_else() {
        for (wanted, files, connections) in [
            (1024, None, 1024),
            (1024, Some(524_288), 1024),
            (1024, Some(2048), 1024),
            (1024, Some(1024), 256),
            (1024, Some(256), 32),
            (16, Some(1024), 16),
            (16, Some(0), 1),
        ] {
            assert_eq!(within(wanted, files), connections, "{wanted} of {files:?}");
        }
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let limit = getrlimit(Resource::Nofile);
        // By little, since other tests are in this process.
        let lowered = Some(limit.maximum.map_or(1 << 20, |most| most - 1));
        setrlimit(Resource::Nofile, Rlimit { current: lowered, ..limit }).unwrap();
        assert_eq!(connections_within_files(16), 16);
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: limit.maximum, ..limit });
    }
}
