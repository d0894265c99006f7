//! What the documents promise that can be checked: commands that parse, files that exist.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use clap::Parser;
use std::path::{Path, PathBuf};
use tidegate::cli::Cli;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
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

/// The fenced blocks of a document in one language, joined.
fn blocks(text: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let own = |piece: &str| piece.split("```").next().unwrap_or_default().to_owned();
    // Blocks within a list are indented.
    let flat: Vec<&str> = text.lines().map(str::trim_start).collect();
    flat.join("\n").split(&fence).skip(1).map(own).collect()
}

#[test]
fn every_command_of_the_readme_is_one() {
    let shell = blocks(&read("README.md"), "sh");
    let found = commands(&shell);
    assert!(found.len() >= 7, "{found:?}");
    for command in found {
        let parsed = Cli::try_parse_from(&command);
        assert!(parsed.is_ok(), "{command:?}: {}", parsed.unwrap_err());
    }
}

#[test]
fn the_configuration_of_the_readme_is_one() {
    let text = blocks(&read("README.md"), "toml");
    assert_eq!(tidegate::config::check("README.md", &text).unwrap().config.feeds.len(), 1);
}

#[test]
fn every_command_of_the_deployment_is_one() {
    let unit = read("deploy/tidegate.service");
    let found = commands(&unit);
    assert_eq!(found.len(), 2, "{found:?}");
    for command in found {
        assert!(Cli::try_parse_from(&command).is_ok(), "{command:?}");
    }
    let image = read("deploy/Dockerfile");
    let entry = image.lines().find_map(|line| line.strip_prefix("ENTRYPOINT ")).unwrap();
    let entry: Vec<String> = serde_json::from_str(entry).unwrap();
    for more in [&[][..], &["https://example.org/feed"], &["-c", "/etc/tidegate.toml"]] {
        let typed = entry.iter().map(String::as_str).chain(more.iter().copied());
        assert!(Cli::try_parse_from(typed).is_ok(), "{more:?}");
    }
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    for document in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        let text = read(document);
        let targets: Vec<PathBuf> = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .filter(|target| !target.starts_with("http"))
            .map(|target| root().join(target))
            .collect();
        for target in targets {
            assert!(target.exists(), "{document} leads to {}", target.display());
        }
    }
}

#[test]
fn the_architecture_names_every_room() {
    let text = read("ARCHITECTURE.md");
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(room == "lib" || text.contains(&format!("`{room}`")), "{room} is not in it");
    }
}
