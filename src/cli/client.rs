//! What a gateway that runs is asked and told: `tidegate feed`, `item`, `list` and `reader`, each command a
//! request of its API.

mod feeds;
mod items;
mod shown;

use super::args::client::{AskArgs, ClientCommand, FeedArg, ListCommand, ReaderCommand};
use crate::app::{AppError, ErrorContext, RunningGateway};
use clap::Subcommand;
use http::Method;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use tidegate_core::terminal::{printable, printable_json};

/// The most pages that are listed.
const PAGES: usize = 1000;
/// The longest answer to a question, in bytes.
const TYPED: usize = 200;

type Pairs<'a> = [(&'a str, &'a str)];

/// Does what was typed.
pub(super) async fn run(command: ClientCommand) -> Result<(), AppError> {
    match command {
        ClientCommand::Feed(args) => {
            let (to, command) = AskedGateway::new(args)?;
            feeds::run(&to, command).await
        }
        ClientCommand::Item(args) => {
            let (to, command) = AskedGateway::new(args)?;
            items::run(&to, command).await
        }
        ClientCommand::List(args) => {
            let (to, ListCommand::Subscriptions { feed }) = AskedGateway::new(args)?;
            let pairs: Vec<_> = feed.iter().map(|feed| ("feed", feed.as_str())).collect();
            to.read(("/subscriptions", &pairs), shown::subscriptions).await
        }
        ClientCommand::Reader(args) => {
            let (to, ReaderCommand::List) = AskedGateway::new(args)?;
            to.read(("/readers", &[]), shown::readers).await
        }
    }
}

/// The gateway that is asked, and how its answers are printed.
struct AskedGateway {
    gateway: RunningGateway,
    is_json: bool,
}

impl AskedGateway {
    /// The gateway that a command is for, and the command.
    fn new<C: Subcommand>(args: AskArgs<C>) -> Result<(Self, C), AppError> {
        let gateway = RunningGateway::find(&args.gateway.options())?;
        Ok((Self { gateway, is_json: args.json }, args.command))
    }

    /// Reads, and prints the answer itself or what it says.
    async fn read(
        &self,
        to: (&str, &Pairs<'_>),
        said: impl FnOnce(&Value) -> String,
    ) -> Result<(), AppError> {
        match self.is_json {
            true => print_json(&self.gateway.text(to).await?),
            false => print(&said(&self.gateway.call(Method::GET, to, None).await?)),
        }
    }

    /// Tells, and prints likewise.
    async fn tell(
        &self,
        method: Method,
        to: &str,
        body: Option<Value>,
        said: impl FnOnce(&Value) -> String,
    ) -> Result<(), AppError> {
        let answer = self.gateway.call(method, (to, &[]), body.as_ref()).await?;
        self.print(&answer, said)
    }

    fn print(&self, answer: &Value, said: impl FnOnce(&Value) -> String) -> Result<(), AppError> {
        if self.is_json { print_json(&answer.to_string()) } else { print(&said(answer)) }
    }
}

fn print(text: &str) -> Result<(), AppError> {
    super::print_lines(text, &mut std::io::stdout().lock())
}

/// Prints an answer itself.
fn print_json(answer: &str) -> Result<(), AppError> {
    print(&format!("{}\n", printable_json(answer)))
}

fn path(feed: &FeedArg, below: &str) -> String {
    format!("/feeds/{}{below}", feed.name)
}

/// Asks on a terminal for a name to be typed; elsewhere nothing is `done` that `--yes` does not say.
fn confirm(asked: &str, name: &str, done: &str) -> Result<(), AppError> {
    if !std::io::stdin().is_terminal() {
        let said = format!("nobody can be asked here, so nothing was {done}; say --yes");
        return Err(AppError::Input(said));
    }
    let mut err = std::io::stderr();
    let asked = write!(err, "{}", printable(asked));
    asked.and_then(|()| err.flush()).map_err(AppError::output)?;
    let mut typed = String::new();
    let read = std::io::Read::take(std::io::stdin(), u64::try_from(TYPED).unwrap_or(u64::MAX));
    std::io::BufRead::read_line(&mut std::io::BufReader::new(read), &mut typed)
        .context("standard input cannot be read")?;
    match typed.trim() == name {
        true => Ok(()),
        false => Err(AppError::Input(format!("that is not its name; nothing was {done}"))),
    }
}
