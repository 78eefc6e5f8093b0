//! Holds the house rules over the source text: who may name whom, what is chosen where, and how long things get.
//!
//! The rules and their reasons are in ARCHITECTURE.md. The text is read as text: comments and the insides of strings are
//! blanked out where a rule is about code, and nothing is parsed beyond that.

#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use source::{Source, files, function_length, function_name, names, paths_after, relative, root, sources};

const MAX_FILE_LINES: usize = 420;
const MAX_FUNCTION_LINES: usize = 80;

/// What each module of the crate may name of the others. `app` puts everything together, and may name all.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("telemetry", &[]),
    ("load", &["config"]),
    ("bench", &["config", "load", "rig"]),
    ("config", &["telemetry", "sale::FailPoint"]),
    ("guard", &["domain"]),
    ("ledger", &["domain"]),
    ("sale", &["domain", "guard", "ledger", "telemetry"]),
    ("rig", &[]),
    ("http", &["domain", "sale", "ledger::LedgerError", "ledger::OrderFilter", "ledger::ProductTotals"]),
];

/// Names from outside the crate, or from another ring, that a module knows nothing of.
const UNKNOWN_TO: &[(&str, &[&str])] = &[
    ("domain", &["tokio", "sqlx", "redis", "deadpool", "deadpool_redis", "axum", "metrics", "tracing", "async_trait"]),
    ("sale", &["axum", "http", "hyper", "StatusCode", "sqlx", "redis", "deadpool_redis"]),
    ("http", &["sqlx", "redis", "deadpool", "deadpool_redis"]),
    ("guard", &["axum", "sqlx", "StatusCode"]),
    ("ledger", &["axum", "redis", "deadpool_redis", "StatusCode"]),
    ("config", &["axum", "sqlx", "redis", "tokio"]),
    ("telemetry", &["axum", "sqlx", "redis"]),
];

/// All code that is written by hand: the crate, its tests and its benchmarks.
fn all_sources() -> Vec<Source> {
    ["src", "tests", "benches"].into_iter().flat_map(sources).collect()
}

#[track_caller]
fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

#[test]
fn modules_name_only_those_below_them() {
    let mut broken = Vec::new();
    let mut seen = BTreeSet::new();
    for source in sources("src") {
        let module = source.module();
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(name, _)| *name == module) else {
            assert!(["app", "main", "lib"].contains(&module), "{}: the rules do not know this module", source.path);
            continue;
        };
        seen.insert(module.to_owned());
        for path in paths_after(&source.code, "crate::") {
            let named = |allowed: &str| path == allowed || path.starts_with(&format!("{allowed}::"));
            if !named(module) && !allowed.iter().any(|allowed| named(allowed)) {
                broken.push(format!("{} names crate::{path}", source.path));
            }
        }
    }
    assert_eq!(seen.len(), DIRECTIONS.len(), "a rule for a module that is gone");
    assert_none("a module names one that it may not", &broken);
}

/// `crate::` is what the rule about directions reads, so nobody leaves its module by the back door.
#[test]
fn nobody_climbs_to_the_root_of_the_crate() {
    let mut broken = Vec::new();
    for source in sources("src") {
        let tests_begin_at = source.code.find("\nmod tests").unwrap_or(source.code.len());
        for (position, _) in source.code.match_indices("super::") {
            let climbed = source.code[..position].ends_with("super::");
            let mut depth = source.depth();
            if position > tests_begin_at {
                depth += 1;
            }
            let mut rest = &source.code[position..];
            let mut supers = 0;
            while let Some(after) = rest.strip_prefix("super::") {
                supers += 1;
                rest = after;
            }
            if !climbed && supers >= depth {
                broken.push(format!("{}: {} super:: in a row", source.path, supers));
            }
        }
    }
    assert_none("write crate:: for another module", &broken);
}

#[test]
fn modules_do_not_know_what_is_not_theirs() {
    let mut broken = Vec::new();
    for source in sources("src") {
        let strangers =
            UNKNOWN_TO.iter().filter(|(module, _)| *module == source.module()).flat_map(|(_, names)| *names);
        for stranger in strangers {
            for (number, line) in source.lines() {
                let own = source.path.starts_with("src/ledger/") && *stranger == "redis";
                if !own && names(line).any(|name| name == *stranger) {
                    broken.push(format!("{}:{number} names {stranger}", source.path));
                }
            }
        }
    }
    assert_none("a module knows what it should not", &broken);
}

/// The rule is about settings. The rig starts other programs, and so looks for them on the search path, puts their files
/// where the system keeps temporary ones, and goes through what they would inherit, to take variables away.
#[test]
fn the_environment_is_read_in_one_place() {
    const HANDED_OVER: &str = "config::read(std::env::args_os(), std::env::vars_os())";
    const FOR_OTHER_PROGRAMS: &[&str] =
        &["env::var_os(\"PATH\")", "env::split_paths(", "env::temp_dir()", "env::vars_os().filter("];
    const NO_ENVIRONMENT: &[&str] = &["env!(\"CARGO_PKG_VERSION\")", "env::current_exe()", "env::consts::OS"];
    let mut broken = Vec::new();
    for source in sources("src") {
        if source.module() == "config" {
            continue;
        }
        for ((number, line), uncommented) in source.lines().zip(source.uncommented.lines()) {
            let handed_over = source.path == "src/main.rs" && line.contains(HANDED_OVER);
            let for_programs =
                source.module() == "rig" && FOR_OTHER_PROGRAMS.iter().any(|allowed| uncommented.contains(allowed));
            let harmless = NO_ENVIRONMENT.iter().any(|allowed| uncommented.contains(allowed));
            if !handed_over
                && !for_programs
                && !harmless
                && names(line).any(|name| name == "env" || name == "option_env")
            {
                broken.push(format!("{}:{number} {}", source.path, line.trim()));
            }
        }
    }
    assert_none("only config reads settings from the environment", &broken);
}

#[test]
fn redis_keys_are_formatted_in_one_place() {
    let mut broken = Vec::new();
    for source in sources("src") {
        if source.path != "src/guard/redis/keys.rs" && source.uncommented.contains("seg:") {
            broken.push(source.path);
        }
    }
    for path in files("src", "lua") {
        let script = fs::read_to_string(&path).expect("the file can be read");
        if script.contains("seg:") {
            broken.push(relative(&path));
        }
    }
    assert_none("only keys.rs formats keys", &broken);
}

/// Success is for each handler to say; every other status is an error, and errors have one map.
#[test]
fn statuses_are_chosen_in_one_place() {
    let mut broken = Vec::new();
    for source in sources("src") {
        let allowed: &[&str] = match (source.module(), source.path.as_str()) {
            (_, "src/http/problem.rs") => continue,
            (_, "src/http/health.rs") => &["OK", "SERVICE_UNAVAILABLE"],
            ("http", _) => &["CREATED", "OK"],
            _ => &[],
        };
        for status in paths_after(&source.code, "StatusCode::") {
            if !allowed.contains(&status.as_str()) {
                broken.push(format!("{} chooses {status}", source.path));
            }
        }
        let imported = names(&source.code).any(|name| name == "StatusCode");
        if imported && allowed.is_empty() {
            broken.push(format!("{} names StatusCode", source.path));
        }
    }
    assert_none("only problem.rs maps errors to statuses", &broken);
}

/// The files that the crate's `include_str!` name.
fn included() -> BTreeSet<PathBuf> {
    let mut included = BTreeSet::new();
    for source in sources("src") {
        let folder = root().join(&source.path);
        let folder = folder.parent().expect("a file is in a folder");
        for (position, opening) in source.uncommented.match_indices("include_str!(\"") {
            let name = &source.uncommented[position + opening.len()..];
            let name = &name[..name.find('"').expect("a string ends")];
            let path = folder.join(name).canonicalize();
            included.insert(path.unwrap_or_else(|_| panic!("{}: no {name}", source.path)));
        }
    }
    included
}

#[test]
fn statements_and_scripts_have_a_header_and_are_used() {
    let included = included();
    let mut broken = Vec::new();
    let in_use = files("src", "lua").into_iter().chain(files("src", "sql"));
    for (path, is_migration) in
        in_use.map(|path| (path, false)).chain(files("migrations", "sql").into_iter().map(|path| (path, true)))
    {
        let text = fs::read_to_string(&path).expect("the file can be read");
        if !text.starts_with("-- ") {
            broken.push(format!("{} has no header", relative(&path)));
        }
        let path = path.canonicalize().expect("the file is there");
        if !is_migration && !included.contains(&path) {
            broken.push(format!("{} is included nowhere", relative(&path)));
        }
    }
    assert_none("statements and scripts", &broken);
}

#[test]
fn files_begin_with_what_belongs_in_them() {
    let mut broken = Vec::new();
    for source in all_sources() {
        if !source.text.starts_with("//! ") {
            broken.push(source.path);
        }
    }
    assert_none("a file begins with //!", &broken);
}

#[test]
fn files_and_functions_stay_short() {
    let mut broken = Vec::new();
    for source in all_sources() {
        let lines: Vec<&str> = source.code.lines().collect();
        if lines.len() > MAX_FILE_LINES {
            broken.push(format!("{} has {} lines", source.path, lines.len()));
        }
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else {
                continue;
            };
            let length = function_length(&lines[start..]);
            if length > MAX_FUNCTION_LINES {
                broken.push(format!("{}:{} {name} has {length} lines", source.path, start + 1));
            }
        }
    }
    let wish = format!("files have {MAX_FILE_LINES} lines and functions {MAX_FUNCTION_LINES}, at most");
    assert_none(&wish, &broken);
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let markers = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["unimple", "mented!"], ["to", "do!("]]
        .map(|halves| halves.concat());
    let mut broken = Vec::new();
    for source in all_sources() {
        for (number, line) in (1..).zip(source.text.lines()) {
            if markers.iter().any(|marker| line.contains(marker.as_str())) {
                broken.push(format!("{}:{number} {}", source.path, line.trim()));
            }
        }
    }
    assert_none("finish it, or say what is absent and why", &broken);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md"] {
        let Ok(text) = fs::read_to_string(root().join(document)) else {
            continue;
        };
        for (position, _) in text.match_indices("](") {
            let target = &text[position + 2..];
            let target = &target[..target.find(')').expect("a link ends")];
            let file = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || file.is_empty();
            if !outside && !root().join(file).exists() {
                broken.push(format!("{document} links to {target}"));
            }
        }
    }
    assert_none("links that lead nowhere", &broken);
}
