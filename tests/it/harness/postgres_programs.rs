//! Where the Postgres programs are on this machine.

use std::path::{Path, PathBuf};

/// The folder with `initdb` and `postgres`. Distributions like to keep it off the search path.
pub(crate) fn folder() -> PathBuf {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path)
        .find(|folder| has_programs(folder))
        .or_else(|| {
            [
                ("/usr/lib/postgresql", "", "bin"),
                ("/opt/homebrew/opt", "postgresql", "bin"),
                ("/usr/local/opt", "postgresql", "bin"),
            ]
            .into_iter()
            .find_map(|(parent, prefix, programs)| newest(Path::new(parent), prefix, programs))
        })
        .expect(
            "no Postgres server found: install the package postgresql (Debian, Ubuntu: \
             `apt-get install postgresql`, Homebrew: `brew install postgresql@17`)",
        )
}

/// The folder `parent/prefix*/programs` with the highest version that has the programs.
fn newest(parent: &Path, prefix: &str, programs: &str) -> Option<PathBuf> {
    std::fs::read_dir(parent)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.trim_start_matches('@');
            // `postgresql` without a version is the one the owner made the default.
            let version: u32 = match version {
                "" => u32::MAX,
                version => version.parse().ok()?,
            };
            let folder = entry.path().join(programs);
            has_programs(&folder).then_some((version, folder))
        })
        .max()
        .map(|(_, folder)| folder)
}

fn has_programs(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}
