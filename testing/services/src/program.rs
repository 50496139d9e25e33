//! Where the servers' programs lie.

use std::path::{Path, PathBuf};

/// A program on the search path.
#[must_use]
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Where `cargo xtask services install` keeps the programs it fetches or builds:
/// `tollgate/servers` in the user's cache directory (`XDG_CACHE_HOME`, or `.cache` at home).
#[must_use]
pub fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("tollgate").join("servers")
}

/// A path as a word of a command line.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
