//! Data to stdout, talk to stderr, tables without borders.

use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{Table, presets};
use serde::Serialize;

/// Writes data; a reader that has had enough (`| head`) is no error.
pub(super) fn out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes an answer as JSON.
pub(super) fn json<T: Serialize>(answer: &T) -> io::Result<()> {
    out(&(serde_json::to_string_pretty(answer)? + "\n"))
}

/// Says something on stderr; nobody hears it where that fails.
pub(super) fn say(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Asks a question that a person must answer with yes.
pub(super) fn confirm(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes" | "д" | "да"))
}

/// Whether a person sits there to be asked.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Columns under their names, a row a line.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    lines(&table)
}

/// Columns without names.
pub(super) fn columns<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).add_rows(rows);
    lines(&table)
}

fn lines(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().strip_prefix(' ').unwrap_or_default().to_owned() + "\n");
    lines.collect()
}

/// An absent value in a table.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

/// The first words of a text that may be long.
pub(super) fn short(text: &str, chars_max: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= chars_max && line.len() == text.len() {
        return text.to_owned();
    }
    line.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_dense_and_texts_are_cut() {
        let rows = [["t1".to_owned(), "dead".to_owned()], ["t22".to_owned(), or_dash(None)]];
        assert_eq!(table(["id", "state"], rows), "id   state\nt1   dead\nt22  -\n");
        assert_eq!(short("Договор", 7), "Договор");
        assert_eq!(short("Договоры", 7), "Догово…");
        assert_eq!(short("one\ntwo", 7), "one…");
    }
}
