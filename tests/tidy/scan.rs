//! A reader of Rust sources, good enough for names: tokens without comments and
//! strings, and the paths that they form.
//!
//! `use` trees are unfolded (`use a::{b, c::d}` is `a::b` and `a::c::d`), paths
//! in the code count like those in `use` lines, and `super` is resolved by the
//! file's place and the inline modules around it. What macros make up is not seen.

/// A name, a number or a sign; `::` and `->` are one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// A path as the code names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath<'a> {
    pub(crate) segments: Vec<&'a str>,
    pub(crate) line: usize,
    /// The sign or word in front of it.
    pub(crate) before: &'a str,
    /// The sign or word behind it.
    pub(crate) after: &'a str,
    /// Inline modules around it.
    pub(crate) depth: usize,
}

/// Cuts a source into tokens.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            _ if rest.starts_with("/*") => (block_comment(rest), false),
            _ if string_prefix(rest).is_some() => (string(rest), false),
            '\'' => quote(rest),
            c if c.is_whitespace() => (c.len_utf8(), false),
            c if c.is_alphanumeric() || c == '_' => (name(rest), true),
            _ if rest.starts_with("::") || rest.starts_with("->") => (2, true),
            c => (c.len_utf8(), true),
        };
        let (text, after) = rest.split_at(length);
        if is_token {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

fn name(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The hashes of a string that starts here, and whether it is raw.
fn string_prefix(rest: &str) -> Option<(usize, bool)> {
    let letters = rest.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let (prefix, tail) = rest.split_at(letters);
    let hashes = tail.find(|c| c != '#')?;
    let raw = prefix.ends_with('r');
    let known = matches!(prefix, "" | "b" | "c" | "r" | "br" | "cr");
    let opens = tail.get(hashes..)?.starts_with('"');
    (known && opens && (raw || hashes == 0)).then_some((hashes, raw))
}

fn string(rest: &str) -> usize {
    let Some((hashes, raw)) = string_prefix(rest) else { return 1 };
    let open = rest.find('"').map_or(rest.len(), |at| at + 1);
    let tail = rest.get(open..).unwrap_or_default();
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        return tail.find(&close).map_or(rest.len(), |at| open + at + close.len());
    }
    let mut escaped = false;
    for (at, c) in tail.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return open + at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character is dropped, a lifetime is a token.
fn quote(rest: &str) -> (usize, bool) {
    let mut chars = rest.char_indices().skip(1);
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some((_, '\\')), Some((escaped, c))) => {
            let from = escaped + c.len_utf8();
            let close = rest.get(from..).and_then(|tail| tail.find('\''));
            (close.map_or(rest.len(), |at| from + at + 1), false)
        }
        (Some(_), Some((close, '\''))) => (close + 1, false),
        _ => (1 + name(rest.get(1..).unwrap_or_default()), true),
    }
}

/// All paths that the tokens form; a lone name is a path of one segment.
pub(crate) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<NamedPath<'a>> {
    let mut reader = Reader { tokens, at: 0, paths: Vec::new(), before: "", depth: 0 };
    let mut braces = Vec::new();
    while let Some(token) = tokens.get(reader.at) {
        if token.is_name() {
            reader.before = previous(tokens, reader.at, 1);
            reader.path(Vec::new());
            continue;
        }
        match token.text {
            // `mod name {`: a path inside is one module further from the root.
            "{" => braces.push(previous(tokens, reader.at, 2) == "mod"),
            "}" => drop(braces.pop()),
            _ => {}
        }
        reader.depth = braces.iter().filter(|is_module| **is_module).count();
        reader.at += 1;
    }
    reader.paths
}

fn previous<'a>(tokens: &[Token<'a>], at: usize, back: usize) -> &'a str {
    at.checked_sub(back).and_then(|at| tokens.get(at)).map_or("", |token| token.text)
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    paths: Vec<NamedPath<'a>>,
    before: &'a str,
    depth: usize,
}

impl<'a> Reader<'_, 'a> {
    fn text(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    /// Reads one path, or one branch of a `use` tree under `segments`.
    fn path(&mut self, mut segments: Vec<&'a str>) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            segments.push(self.text());
            self.at += 1;
            if self.text() != "::" {
                break;
            }
            self.at += 1;
            match self.tokens.get(self.at) {
                Some(token) if token.text == "{" => return self.branches(&segments),
                Some(token) if token.is_name() => {}
                // `::*` names what stands before it, as a turbofish does.
                _ => break,
            }
        }
        let (before, after, depth) = (self.before, self.text(), self.depth);
        self.paths.push(NamedPath { segments, line, before, after, depth });
    }

    fn branches(&mut self, segments: &[&'a str]) {
        self.at += 1;
        loop {
            match self.tokens.get(self.at) {
                Some(token) if token.is_name() => self.path(segments.to_vec()),
                _ => {}
            }
            // Over `as name` and `*`, to the next branch or the end.
            while !matches!(self.text(), "," | "}" | "") {
                self.at += 1;
            }
            let ends = self.text() != ",";
            self.at += 1;
            if ends {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    fn named(source: &str) -> Vec<String> {
        paths(&tokens(source)).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_strings_and_characters_are_no_tokens() {
        let check = |source: &str, expected: &[&str]| assert_eq!(words(source), expected, "{source}");
        check("a // b\nc", &["a", "c"]);
        check("a /* b /* c */ d */ e", &["a", "e"]);
        check(r#"a "b \" c" d"#, &["a", "d"]);
        check(r##"a r#"b " c"# d br"e" f b"g" h"##, &["a", "d", "f", "h"]);
        check(r"a 'b' '\'' '\\' '\u{1f600}' 'ы' c", &["a", "c"]);
        check("a<'b> 'static", &["a", "<", "'b", ">", "'static"]);
        check("b::c r br -> -", &["b", "::", "c", "r", "br", "->", "-"]);
        check("\"open", &[]);
    }

    #[test]
    fn lines_are_counted_over_comments_and_strings() {
        let lines: Vec<usize> = tokens("a\n\"\n\"b /*\n*/ c").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn use_trees_are_unfolded() {
        let check = |source: &str, expected: &[&str]| assert_eq!(named(source), expected, "{source}");
        check("use a::b;", &["use", "a::b"]);
        check("use a::{b, c::{d, e as f}, self, g::*};", &["use", "a::b", "a::c::d", "a::c::e", "a::self", "a::g"]);
        check("use a::{\n    b,\n};", &["use", "a::b"]);
        check("x(crate::a::b::<u8>())", &["x", "crate::a::b", "u8"]);
        check("use {a::b, c};", &["use", "a::b", "c"]);
    }

    #[test]
    fn inline_modules_are_counted() {
        let depth_of_x = |source: &str| paths(&tokens(source)).iter().find(|p| p.segments == ["x"]).unwrap().depth;
        assert_eq!(depth_of_x("x"), 0);
        assert_eq!(depth_of_x("fn f() { x }"), 0);
        assert_eq!(depth_of_x("mod a { mod b { fn f() { x } } }"), 2);
        assert_eq!(depth_of_x("mod a { } x"), 0);
    }
}
