//! `tidegate completions` and `tidegate man`: what is made of the definition of the command line.

use super::args::Cli;
use crate::app::AppError;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell, out: &mut dyn Write) -> Result<(), AppError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut text);
    out.write_all(&text).and_then(|()| out.flush()).map_err(AppError::output)
}

/// Writes the pages of all commands to a folder; without one, prints that of the program.
pub(super) fn man(into: Option<&Path>, out: &mut dyn Write) -> Result<(), AppError> {
    let Some(folder) = into else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(AppError::output)?;
        return out.write_all(&page).and_then(|()| out.flush()).map_err(AppError::output);
    };
    let failed = |error| AppError::run(format!("{} cannot be written to", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    // Help of help would be a page for each command.
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn commands() -> Vec<String> {
        let command = Cli::command();
        command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect()
    }

    #[test]
    fn every_command_has_its_page_and_is_completed_by_every_shell() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("man1");
        man(Some(&into), &mut Vec::new()).unwrap();
        let mut main = Vec::new();
        man(None, &mut main).unwrap();
        // A hyphen is written as one that stays.
        let main = String::from_utf8(main).unwrap().replace("\\-", "-");
        for name in commands() {
            let page = std::fs::read_to_string(into.join(format!("tidegate-{name}.1"))).unwrap();
            let page = page.replace("\\-", "-");
            assert!(page.contains(".SH SYNOPSIS") && page.contains(&name), "{page}");
            assert!(main.contains(&name), "{name}: {main}");
        }
        assert!(into.join("tidegate.1").exists());
        // And every shell completes it.
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            completions(*shell, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            for name in commands() {
                assert!(text.contains(&name), "{shell}: {name}");
            }
        }
    }
}
