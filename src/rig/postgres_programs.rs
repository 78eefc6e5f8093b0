//! Where the Postgres programs are on this machine.

use std::path::{Path, PathBuf};

use super::RigError;
use super::process::search_path;

/// The folder with `initdb` and `postgres`. Distributions like to keep it off the search path.
pub(super) fn folder() -> Result<PathBuf, RigError> {
    search_path()
        .into_iter()
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
        .ok_or(RigError::NotInstalled {
            program: "a Postgres server",
            advice: "install the package postgresql (Debian, Ubuntu: `apt-get install postgresql`, Homebrew: `brew \
                     install postgresql@17`)",
        })
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
