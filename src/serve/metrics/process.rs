//! What the process takes, by the names that Prometheus' own clients give it. Linux says so in `/proc`;
//! elsewhere nothing is told.
//!
//! Whether the store works, and what other gateways over it there are.

use super::{Figure, gauge};
use crate::metrics::Metrics;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::time::Duration;
use std::{fs, io};
use tidegate_store::StoreCondition;

/// The most open files that are counted.
const FILES_LIMIT: usize = 1 << 20;

/// What the process takes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcessFigures {
    /// Time on a processor, in user and in system mode.
    cpu: Duration,
    /// When it started, since 1970.
    start: Duration,
    virtual_bytes: u64,
    resident_bytes: u64,
    open_files: usize,
    /// How many it may open; `None`: as many as it wants.
    max_files: Option<u64>,
}

/// In which units the system counts.
#[derive(Debug, Clone, Copy)]
struct KernelUnits {
    ticks_per_second: u64,
    page_size: u64,
}

impl ProcessFigures {
    /// Of `/proc/self/stat`, `/proc/stat` and `/proc/self/limits` (proc(5)).
    fn parse(
        (stat, system, limits): (&str, &str, &str),
        open_files: usize,
        units: KernelUnits,
    ) -> Option<Self> {
        // The name of the program may have spaces and parentheses.
        let (_, after) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        // The field behind the name is number 3.
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
        let ticks = |ticks: u64| {
            let millis = ticks.saturating_mul(1000).checked_div(units.ticks_per_second)?;
            Some(Duration::from_millis(millis))
        };
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        let boot = Duration::from_secs(boot.trim().parse().ok()?);
        let max = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some(Self {
            cpu: ticks(field(14)?.saturating_add(field(15)?))?,
            start: boot.saturating_add(ticks(field(22)?)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(units.page_size),
            open_files,
            max_files: max.split_ascii_whitespace().next().and_then(|soft| soft.parse().ok()),
        })
    }

    /// As the system says. Blocks.
    fn read() -> io::Result<Option<Self>> {
        let open_files = fs::read_dir("/proc/self/fd")?.take(FILES_LIMIT).count();
        let [stat, system, limits] =
            ["/proc/self/stat", "/proc/stat", "/proc/self/limits"].map(fs::read_to_string);
        let units = KernelUnits {
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page_size: u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX),
        };
        Ok(Self::parse((&stat?, &system?, &limits?), open_files, units))
    }
}

/// What the process takes; nothing where the system does not say. Blocks.
pub(super) fn figures() -> Vec<Figure> {
    let Ok(Some(process)) = ProcessFigures::read() else { return Vec::new() };
    let mut figures = vec![
        Figure::new(
            "process_cpu",
            "Time on a processor, in user and in system mode",
            ConstCounter::new(process.cpu.as_secs_f64()),
        )
        .of(Unit::Seconds),
        Figure::new(
            "process_start_time",
            "When the process started, since 1970",
            ConstGauge::new(process.start.as_secs_f64()),
        )
        .of(Unit::Seconds),
        gauge("process_resident_memory", "Memory that the system gave it", process.resident_bytes)
            .of(Unit::Bytes),
        gauge("process_virtual_memory", "Addresses that it has reserved", process.virtual_bytes)
            .of(Unit::Bytes),
        gauge("process_open_fds", "Open files and connections", process.open_files),
    ];
    let most = process.max_files;
    figures.extend(
        most.map(|most| gauge("process_max_fds", "Files and connections it may open", most)),
    );
    figures
}

impl Metrics {
    /// Says whether the store works and how much space it has.
    pub(crate) fn store(&self, condition: &StoreCondition) {
        // That another gateway takes documents in is no shortage.
        let takes_in = condition.check_intake().is_ok() && condition.unanswered.is_none();
        let difference = Duration::from_millis(condition.clock_ahead.unsigned_abs()).as_secs_f64();
        let difference = if condition.clock_ahead < 0 { -difference } else { difference };
        let (free, min_free) = condition.space.map_or((0, 0), |space| (space.free, space.limit));
        let max_size = condition.taken.map_or(0, |taken| taken.limit);
        let figures = vec![
            gauge(
                "store_up",
                "1 while the store is open, 0 while it is opened again after a failure",
                condition.stop.is_none(),
            ),
            gauge(
                "store_takes_in",
                "1 while new documents are taken in, 0 while the store is closed, space is low or the database silent",
                takes_in,
            ),
            gauge(
                "settings_differ",
                "Other gateways over the same store whose settings are others than this one's",
                condition.differences().count(),
            ),
            Figure::new(
                "clock_difference",
                "How far this machine's clock is ahead of the database's, at least; below 0: behind it",
                ConstGauge::new(difference),
            )
            .of(Unit::Seconds),
            gauge("store_free", "Bytes that are free on the file system of the data folder", free)
                .of(Unit::Bytes),
            gauge(
                "store_min_free",
                "Bytes of it that must stay free for anything new to be taken in",
                min_free,
            )
            .of(Unit::Bytes),
            gauge(
                "store_size",
                "Bytes that the files of the data folder take on disk; counted once a minute",
                condition.used.unwrap_or_default(),
            )
            .of(Unit::Bytes),
            gauge(
                "store_max_size",
                "Bytes that they may take for anything new to be taken in; 0 where there is no limit",
                max_size,
            )
            .of(Unit::Bytes),
        ];
        self.figures.set("store", figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4242 (tide) gate (x) S 1 4242 4242 0 -1 4194560 9000 0 12 0 1234 266 0 0 20 0 9 0 \
                        360050 2147483648 25600 18446744073709551615 1 1 0";
    const SYSTEM: &str = "cpu  1 2 3\ncpu0 1 2 3\nbtime 1795000000\nprocesses 9\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max open files            1024                 524288               files\n";
    const UNITS: KernelUnits = KernelUnits { ticks_per_second: 100, page_size: 4096 };

    #[test]
    fn figures_are_read_behind_a_name_with_parentheses() {
        let figures = ProcessFigures::parse((STAT, SYSTEM, LIMITS), 17, UNITS).unwrap();
        let expected = ProcessFigures {
            cpu: Duration::from_secs(15),
            start: Duration::from_millis(1_795_003_600_500),
            virtual_bytes: 2 << 30,
            resident_bytes: 100 << 20,
            open_files: 17,
            max_files: Some(1024),
        };
        assert_eq!(figures, expected);
        let endless = LIMITS.replace("1024", "unlimited");
        let figures = ProcessFigures::parse((STAT, SYSTEM, &endless), 17, UNITS).unwrap();
        assert_eq!(figures.max_files, None);
    }

    #[test]
    fn what_is_not_as_expected_is_left_out() {
        let short = STAT.split_at(80).0;
        for texts in [("", SYSTEM, LIMITS), (short, SYSTEM, LIMITS), (STAT, "", LIMITS)] {
            assert_eq!(ProcessFigures::parse(texts, 17, UNITS), None, "{texts:?}");
        }
        let units = KernelUnits { ticks_per_second: 0, ..UNITS };
        assert_eq!(ProcessFigures::parse((STAT, SYSTEM, LIMITS), 17, units), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_as_the_system_says() {
        let figures = ProcessFigures::read().unwrap().unwrap();
        assert!(figures.resident_bytes > 1 << 20, "{figures:?}");
        assert!(figures.virtual_bytes >= figures.resident_bytes, "{figures:?}");
        assert!(figures.open_files >= 3, "{figures:?}");
        assert!(figures.start > Duration::from_secs(1_600_000_000), "{figures:?}");
    }
}
