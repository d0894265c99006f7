//! The command line: what was typed → what to do, and the exit status (CONTRACT, Command line).

mod args;
mod check;
mod client;
mod compact;
mod documents;
mod import;
mod logs;
pub mod merge;
mod outline;
mod pull;
mod table;

pub use args::{Cli, Command};
pub use check::check;

use crate::app::{self, AppError};
use clap::Parser;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tidegate_core::terminal::printable_lines;

/// Runs the command that was typed. Wrong arguments end the process with status 2.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) | Err(AppError::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            // A configuration's mistakes stand alone on their lines, so that editors find them.
            let report = match &error {
                AppError::Config(_) => error.report(),
                _ => format!("tidegate: {}", error.report()),
            };
            // Nobody is left to be told when standard error itself is gone.
            let _ = writeln!(std::io::stderr(), "{}", printable_lines(&report));
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(command: Command) -> Result<(), AppError> {
    match command {
        Command::Serve(args) => {
            logs::start(args.log);
            blocking(app::serve(args.settings()))?
        }
        Command::Demo(args) => {
            logs::start_quiet(args.log);
            let has_colour = std::io::stdout().is_terminal() && logs::may_colour();
            blocking(app::demo(args.options(has_colour)))?
        }
        Command::Check(args) => check(args.file().as_deref(), &mut std::io::stdout()),
        Command::Health(args) => blocking(app::health(args.settings()))?,
        Command::Replay(args) => app::replay(&args.options()),
        Command::Pull(args) => {
            logs::start(args.log);
            let options = args.options();
            let into = options.into.clone();
            let pulled = blocking(app::pull(options))??;
            pull::print(&pulled, &into, &mut std::io::stdout().lock(), &mut std::io::stderr())
        }
        Command::Import(args) => {
            let options = args.import();
            let file = options.file.clone();
            let imported = blocking(app::import_to(options, &args.gateway.options()))??;
            let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
            import::print(&imported, (&file, args.json), &mut out, &mut err)
        }
        Command::Export(args) => {
            let options = args.export();
            let file = options.file.clone();
            let carried = blocking(app::export_of(options, &args.gateway.options()))??;
            import::print_export(&carried, &file, &mut std::io::stdout().lock())
        }
        Command::Compact(args) => {
            let compacted = blocking(app::compact(args.settings()))??;
            compact::print(&compacted, &mut std::io::stdout().lock())
        }
        Command::Sup(args) => blocking(app::sup(args.options()))?,
        Command::Client(command) => blocking(client::run(command))?,
        Command::Completions(args) => {
            documents::completions(args.shell, &mut std::io::stdout().lock())
        }
        Command::Man(args) => documents::man(args.into.as_deref(), &mut std::io::stdout().lock()),
        Command::Merge(args) => {
            let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
            merge::merge(&args.local, &args.incoming, &mut out, &mut err)
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AppError::run("no thread could be started", error))?;
    Ok(runtime.block_on(future))
}
