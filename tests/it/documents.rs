//! What the documents promise that can be checked: commands that parse, files that exist.

mod citations;

use crate::support::prelude::*;
use clap::{CommandFactory, Parser};
use tidegate::cli::Cli;

fn read(name: &str) -> String {
    std::fs::read_to_string(root(name)).unwrap()
}

/// Every document of the repository, by its path from the root.
fn documents() -> Vec<String> {
    let at_the_root = std::fs::read_dir(root("")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = at_the_root.chain(files(&root("docs"))).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    assert!(found.len() >= 15, "{found:?}");
    let name = |path: &PathBuf| path.strip_prefix(root("")).unwrap().to_str().unwrap().to_owned();
    found.iter().map(name).collect()
}

/// The lines of a document that run the program, as its arguments.
fn commands(text: &str) -> Vec<Vec<&str>> {
    const STARTS: [&str; 3] = ["tidegate ", "cargo run --release -- ", "/usr/local/bin/tidegate "];
    let lines = text.lines().map(|line| {
        let line = line.trim();
        line.split_once('=').filter(|(key, _)| key.starts_with("Exec")).map_or(line, |(_, run)| run)
    });
    lines
        .filter_map(|line| STARTS.iter().find_map(|start| line.strip_prefix(start)))
        .map(|arguments| std::iter::once("tidegate").chain(arguments.split_whitespace()).collect())
        .collect()
}

fn blocks(text: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let own = |piece: &str| piece.split("```").next().unwrap_or_default().to_owned();
    // Blocks within a list are indented.
    let flat: Vec<&str> = text.lines().map(str::trim_start).collect();
    flat.join("\n").split(&fence).skip(1).map(own).collect()
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 150, "README.md has {lines} lines, the limit is 150");
}

#[test]
fn every_command_of_the_documents_is_one() {
    let mut count = 0;
    for document in documents() {
        let shell = blocks(&read(&document), "sh");
        for command in commands(&shell) {
            let parsed = Cli::try_parse_from(&command);
            assert!(parsed.is_ok(), "{document}: {command:?}: {}", parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count >= 20, "{count} commands");
}

#[test]
fn every_configuration_of_the_documents_is_one() {
    let mut count = 0;
    for document in documents() {
        let text = blocks(&read(&document), "toml");
        if !text.is_empty() {
            let checked = tidegate_config::check(&document, &text);
            assert!(checked.is_ok_and(|checked| !checked.config.feeds.is_empty()), "{document}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count} documents with a configuration");
}

/// The options in the section of a command, or the commands themselves, as the command line has them.
#[test]
fn the_command_line_is_described_whole() {
    let text = read("docs/cli.md");
    let section = |title: &str| {
        let start = text.find(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no {title}"));
        let rest = &text[start + 4..];
        rest.split("\n## ").next().unwrap().to_owned()
    };
    let mut titles: BTreeSet<&str> = text.lines().filter_map(|at| at.strip_prefix("## ")).collect();
    let cli = Cli::command();
    let longs = |command: &clap::Command| -> BTreeSet<String> {
        let longs = command.get_arguments().filter_map(|a| a.get_long()).map(str::to_owned);
        longs.filter(|long| long != "help" && long != "version").collect()
    };
    // The commands, and those of the groups with the options of all of a group, which are said once.
    let commands = cli.get_subcommands().flat_map(|command| match command.has_subcommands() {
        false => vec![(command.get_name().to_owned(), command, BTreeSet::new())],
        true => {
            let named =
                |leaf: &clap::Command| format!("{} {}", command.get_name(), leaf.get_name());
            command.get_subcommands().map(|leaf| (named(leaf), leaf, longs(command))).collect()
        }
    });
    for (name, command, of_group) in commands {
        assert!(titles.remove(name.as_str()), "docs/cli.md has no section {name}");
        let section = section(&name);
        let is_named = |c: &char| c.is_ascii_lowercase() || *c == '-';
        let option = |rest: &str| rest.chars().take_while(is_named).collect::<String>();
        let typed = |word: &str| word.split_once("--").map(|(_, rest)| option(rest));
        // Of links, code and tables, what is marked as code.
        let mut described: BTreeSet<String> =
            section.split('`').skip(1).step_by(2).filter_map(typed).collect();
        // Said once, for all commands that have them.
        if section.contains("[options of the gateway](#feed-list)") {
            described.extend(["gateway", "token-file", "config", "data"].map(str::to_owned));
        }
        let defined = longs(command);
        let missing: Vec<_> = defined.difference(&described).collect();
        assert!(missing.is_empty(), "docs/cli.md, {name}: {missing:?} are missing");
        let all = &defined | &of_group;
        let unknown: Vec<_> = described.difference(&all).collect();
        assert!(unknown.is_empty(), "docs/cli.md, {name}: there is no {unknown:?}");
    }
    assert!(titles.is_empty(), "docs/cli.md describes what is no command: {titles:?}");
}

#[test]
fn every_command_of_the_deployment_is_one() {
    let unit = read("deploy/tidegate.service");
    let found: Vec<&str> =
        unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(Cli::try_parse_from(found[0].split(' ')).is_ok(), "{found:?}");
    let image = read("deploy/Dockerfile");
    let words = |mark: &str| -> Vec<String> {
        let (_, rest) = image.split_once(mark).unwrap_or_else(|| panic!("no {mark:?}"));
        serde_json::from_str(rest.lines().next().unwrap()).unwrap()
    };
    let entry = words("ENTRYPOINT ");
    assert_eq!(entry, ["tidegate"]);
    assert!(Cli::try_parse_from(words("s CMD ")).is_ok(), "the health check");
    let usual = words("\nCMD ");
    let more: [&[&str]; 3] = [&["serve", "https://example.org/feed"], &["check"], &["health"]];
    let usual: Vec<&str> = usual.iter().map(String::as_str).collect();
    for more in more.into_iter().chain([usual.as_slice()]) {
        let typed = entry.iter().map(String::as_str).chain(more.iter().copied());
        assert!(Cli::try_parse_from(typed).is_ok(), "{more:?}");
    }
}

#[test]
fn every_path_that_a_document_names_is_there() {
    const FOLDERS: [&str; 7] = ["src/", "tests/", "docs/", "config/", "deploy/", "fuzz/", ".ci/"];
    let mut count = 0;
    for document in documents() {
        let text = prose(&read(&document));
        let code = text.split('`').skip(1).step_by(2);
        for path in code.filter_map(|code| code.split([' ', ':']).next()) {
            // `src/NAME.rs` stands for any of them.
            let is_pattern = path.contains("NAME");
            if FOLDERS.iter().any(|folder| path.starts_with(folder)) && !is_pattern {
                assert!(root(path).exists(), "{document} names {path}");
                count += 1;
            }
        }
    }
    assert!(count >= 30, "{count} paths");
}

/// Without its fenced blocks, in which brackets are code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        if !fence && !fenced {
            kept.push_str(line);
            kept.push('\n');
        }
        fenced ^= fence;
    }
    kept
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let mut count = 0;
    for document in documents() {
        let text = prose(&read(&document));
        let folder = root(&document).parent().unwrap().to_path_buf();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root(&document) } else { folder.join(file) };
            assert!(path.exists(), "{document} leads to {target}");
            if !place.is_empty() {
                let there = prose(&std::fs::read_to_string(&path).unwrap());
                let mut headings = there.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.any(|found| found == place), "{document} leads to {target}");
            }
            count += 1;
        }
    }
    assert!(count >= 50, "{count} links");
}

#[test]
fn the_architecture_names_every_room() {
    let text = read("ARCHITECTURE.md");
    for entry in std::fs::read_dir(root("src")).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        let is_code = module != "lib" && module != "proptest-regressions";
        assert!(!is_code || text.contains(&format!("`{module}`")), "{module} is not in it");
    }
}
