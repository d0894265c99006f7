//! The command line: what was typed → what to do, and the exit status (CONTRACT, Command line).

mod args;
mod check;
mod client;
mod documents;
mod import;
mod logs;
pub mod merge;
mod outline;
mod pull;
mod table;

pub use args::{Cli, Command};
pub use check::check;

use crate::app::{self, AppError, DemoOptions, ErrorContext};
use clap::Parser;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tidegate_config::{ConfigError, Overrides};
use tidegate_core::model::counted;
use tidegate_core::terminal::printable_lines;
use tidegate_store::Compacted;
use tracing_subscriber::filter::LevelFilter;

/// Runs the command that was typed. Wrong arguments end the process with status 2.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) | Err(AppError::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            // A configuration's mistakes stand alone on their lines, so that editors find them.
            let report = match &error {
                AppError::Config(ConfigError::Faults(_) | ConfigError::Unusable(_)) => {
                    error.report()
                }
                _ => format!("tidegate: {}", error.report()),
            };
            // Nobody is left to be told when standard error itself is gone.
            let _ = writeln!(std::io::stderr(), "{}", printable_lines(&report));
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(command: Command) -> Result<(), AppError> {
    let mut out = std::io::stdout();
    match command {
        Command::Serve(args) => {
            logs::start(args.logs.log, LevelFilter::INFO);
            blocking(app::serve(args.settings()))?
        }
        Command::Demo { listen, data, every, logs } => {
            // It tells what happens on standard output.
            logs::start(logs.log, LevelFilter::WARN);
            let has_colour = std::io::stdout().is_terminal() && logs::may_colour();
            blocking(app::demo(DemoOptions { listen, data, every, has_colour }))?
        }
        Command::Check(config) => check(app::config_file(config.config).as_deref(), &mut out),
        Command::Health { config, listen } => {
            let overrides = Overrides { listen, ..Overrides::default() };
            blocking(app::health(config.with(overrides)))?
        }
        Command::Replay(options) => app::replay(&options),
        Command::Pull { options, logs } => {
            logs::start(logs.log, LevelFilter::INFO);
            let into = options.into.clone();
            let pulled = blocking(app::pull(options))??;
            pull::print(&pulled, &into, &mut out, &mut std::io::stderr())
        }
        Command::Import { file, rearrange, json, gateway } => {
            let imported = blocking(app::import_to(&file, rearrange, &gateway))??;
            import::print(&imported, (&file, json), &mut out, &mut std::io::stderr())
        }
        Command::Export { file, gateway } => {
            let carried = blocking(app::export_of(&file, &gateway))??;
            import::print_export(&carried, &file, &mut out)
        }
        Command::Compact { config, data } => {
            let overrides = Overrides { data, ..Overrides::default() };
            let Compacted { items, before, after } =
                blocking(app::compact(config.with(overrides)))??;
            let words = format!(
                "the store was written anew with {}: {}, {before} before\n\
                 what was redacted, pruned or purged before is in none of its files\n",
                counted(items, "item"),
                counted(after, "byte")
            );
            print_lines(&words, &mut out)
        }
        Command::Reincarnate { config, data } => {
            let overrides = Overrides { data, ..Overrides::default() };
            let feeds = blocking(app::reincarnate(config.with(overrides)))??;
            let feeds = counted(feeds, "feed");
            print_lines(
                &format!("the store is a new incarnation; new windows: {feeds}\n"),
                &mut out,
            )
        }
        Command::Sup(options) => blocking(app::sup(options))?,
        Command::Client(command) => blocking(client::run(command))?,
        Command::Completions { shell } => documents::completions(shell, &mut out),
        Command::Man { into } => documents::man(into.as_deref(), &mut out),
        Command::Merge { local, incoming } => {
            merge::merge(&local, &incoming, &mut out, &mut std::io::stderr())
        }
    }
}

/// Prints what is for people.
fn print_lines(text: &str, out: &mut dyn Write) -> Result<(), AppError> {
    let written = out.write_all(printable_lines(text).as_bytes()).and_then(|()| out.flush());
    written.map_err(AppError::output)
}

/// Runs a future to its end on a runtime of its own.
fn blocking<T>(future: impl Future<Output = T>) -> Result<T, AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no thread could be started")?;
    Ok(runtime.block_on(future))
}
