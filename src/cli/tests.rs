//! Golden help texts: `TAMBOUR_UPDATE_GOLDEN=1 cargo test --lib cli` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/help")
}

/// The help of a command and of all below it, by the words that lead there.
fn helps(words: &str, command: &mut clap::Command) -> Vec<(String, String)> {
    let mut all = vec![(words.to_owned(), command.render_long_help().to_string())];
    for inner in command.get_subcommands_mut() {
        let words = format!("{words}-{}", inner.get_name());
        all.extend(helps(&words, inner));
    }
    all
}

/// What people read stands in files, one a command; no file is left over.
#[test]
fn help_texts_are_as_recorded() {
    let mut command = Cli::command();
    command.build();
    let helps = helps("tambour", &mut command);
    if std::env::var_os("TAMBOUR_UPDATE_GOLDEN").is_some() {
        for (words, help) in &helps {
            fs::write(folder().join(format!("{words}.txt")), help).unwrap();
        }
    }
    for (words, help) in &helps {
        let recorded = fs::read_to_string(folder().join(format!("{words}.txt"))).unwrap_or_default();
        assert_eq!(*help, recorded, "{words}");
        assert!(help.contains("Examples:") || words == "tambour", "{words} shows no example");
    }
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected: BTreeSet<String> = helps.iter().map(|(words, _)| format!("{words}.txt")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

const README: &str = include_str!("../../README.md");

/// A person who is told a code finds what to do about it.
#[test]
fn the_readme_explains_every_code() {
    for code in crate::domain::ReasonCode::ALL {
        let heading = format!("\n#### `{code}`\n");
        assert!(README.contains(&heading), "README.md has no heading `{code}`");
    }
}

/// The table of commands and the command line name the same.
#[test]
fn the_readme_lists_every_command() {
    let table = README.split("\n## Commands\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let words = |cell: &str| -> Vec<String> {
        let commands =
            cell.split("`, `").map(|command| command.split([' ', '`']).next().unwrap_or_default().to_owned());
        commands.collect()
    };
    let listed: BTreeSet<String> = cells.flat_map(words).collect();
    let known = Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    assert_eq!(listed, known);
}
