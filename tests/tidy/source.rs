//! Source text, read as text: comments and strings blanked out, names and paths found.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository, as it is and as code alone.
pub(super) struct Source {
    /// Relative to the repository, with slashes.
    pub(super) path: String,
    pub(super) text: String,
    /// Without comments.
    pub(super) uncommented: String,
    /// Without comments and without what stands in strings. As long as the text, line by line.
    pub(super) code: String,
}

impl Source {
    /// The parts of a path below `src`: `["guard", "redis", "keys.rs"]`.
    pub(super) fn parts(&self) -> Vec<&str> {
        self.path.strip_prefix("src/").map_or_else(Vec::new, |below| below.split('/').collect())
    }

    /// The module of the crate that the file belongs to: `guard` for `src/guard/redis/keys.rs`.
    pub(super) fn module(&self) -> &str {
        let first = self.parts().first().copied().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// How many `super::` lead from the file's own module to the root of the crate.
    pub(super) fn depth(&self) -> usize {
        let parts = self.parts();
        parts.len() - usize::from(parts.ends_with(&["mod.rs"]))
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files with this ending below a folder of the repository.
pub(super) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{ending} file in {folder}");
    found
}

pub(super) fn relative(path: &Path) -> String {
    let below = path.strip_prefix(root()).expect("a file of the repository");
    below.to_string_lossy().replace('\\', "/")
}

pub(super) fn sources(folder: &str) -> Vec<Source> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the file can be read");
        Source { path: relative(&path), uncommented: blank(&text, false), code: blank(&text, true), text }
    };
    files(folder, "rs").into_iter().map(read).collect()
}

/// The text without comments, and without what stands in strings where that is asked for. Line ends stay.
fn blank(text: &str, strings_too: bool) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let raw = rest
            .strip_prefix('r')
            .filter(|_| !kept.ends_with(|before: char| before.is_alphanumeric() || before == '_'))
            .map(|after| after.len() - after.trim_start_matches('#').len())
            .filter(|hashes| rest[1 + hashes..].starts_with('"'));
        let (length, is_string) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if let Some(hashes) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let inside = hashes + 2;
            let length = rest[inside..].find(&end).expect("a string ends") + inside + end.len();
            (length, true)
        } else if first == '"' {
            (string_length(rest), true)
        } else if let Some(length) = character_length(rest) {
            (length, true)
        } else {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let (piece, after) = rest.split_at(length);
        match (is_string, strings_too) {
            (true, false) => kept.push_str(piece),
            _ => kept.extend(piece.chars().filter(|it| *it == '\n')),
        }
        rest = after;
    }
    kept
}

/// The length of a string literal that the text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, character)| {
        let ends = *character == '"' && !escaped;
        escaped = *character == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(position, _)| position + 1)
}

/// The length of a character literal that the text begins with; `None` for a lifetime and for everything else.
fn character_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    if inside.starts_with('\\') {
        // The character behind the backslash may itself be a quote.
        return inside[2..].find('\'').map(|end| end + 4);
    }
    let character = inside.chars().next()?;
    inside[character.len_utf8()..].starts_with('\'').then_some(character.len_utf8() + 2)
}

fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The names in a piece of code.
pub(super) fn names(code: &str) -> impl Iterator<Item = &str> {
    code.split(|character| !is_of_a_name(character)).filter(|name| !name.is_empty())
}

/// The paths that follow each `prefix` (such as `crate::`): `a::B` for `crate::a::B`, and for `crate::a::{B, C}` both.
pub(super) fn paths_after(code: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (position, _) in code.match_indices(prefix) {
        let starts_a_name = !code[..position].ends_with(|it| is_of_a_name(it) || it == ':');
        if starts_a_name {
            expand("", &code[position + prefix.len()..], &mut found);
        }
    }
    found
}

/// Adds the path that the code begins with; where it is a group, each of the group. Returns what follows.
fn expand<'a>(base: &str, code: &'a str, found: &mut Vec<String>) -> &'a str {
    let mut path = base.to_owned();
    let mut rest = code;
    loop {
        let name = rest.trim_start();
        if let Some(group) = name.strip_prefix('{') {
            rest = group;
            while !rest.trim_start().starts_with('}') {
                rest = expand(&path, rest, found).trim_start().trim_start_matches(',');
            }
            return rest.trim_start().strip_prefix('}').unwrap_or_default();
        }
        let length = name.find(|it| !is_of_a_name(it)).unwrap_or(name.len());
        if length == 0 {
            // `*` and macros; the path so far says enough.
            found.push(path);
            return name.get(1..).unwrap_or_default();
        }
        path = if path.is_empty() { name[..length].to_owned() } else { format!("{path}::{}", &name[..length]) };
        match name[length..].strip_prefix("::") {
            Some(after) => rest = after,
            None => {
                found.push(path);
                return &name[length..];
            }
        }
    }
}

/// The name of the function that a line begins.
pub(super) fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let only_keywords =
        before.split_whitespace().all(|word| ["async", "const", "unsafe"].contains(&word) || word.starts_with("pub"));
    only_keywords.then(|| names(after).next()).flatten()
}

/// Lines from the beginning of a function to the brace that closes it, as rustfmt sets it: at the same depth.
pub(super) fn function_length(lines: &[&str]) -> usize {
    let depth = lines[0].len() - lines[0].trim_start().len();
    let closes = |line: &str| line.len() > depth && line[depth..].starts_with('}');
    let body = lines.iter().position(|line| line.trim_end().ends_with(['{', ';', '}'])).unwrap_or(0);
    if !lines[body].trim_end().ends_with('{') {
        return body + 1;
    }
    let end = lines.iter().skip(body + 1).position(|line| {
        line.trim_start().starts_with('}') && closes(line) && !line.starts_with(&" ".repeat(depth + 1))
    });
    end.map_or(lines.len(), |end| body + 2 + end)
}
