//! Reads which crates a public API names out of rustdoc's JSON.
//!
//! The format changes with the compiler. Only what has been stable in it is relied on: an item is found by its id in
//! `index`, what lies in another crate by its id in `paths`, and every mention of a type or trait is an object with an
//! `id` and a `path` (a `source`, in a re-export).

use std::collections::{BTreeSet, HashSet};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// A crate named in a public item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    /// The path of the public item.
    pub(super) item: String,
    /// The path of the outside type or trait.
    pub(super) named: String,
    /// The crate that defines it.
    pub(super) krate: String,
}

/// The documentation of one crate.
#[derive(Debug)]
pub(super) struct Rustdoc {
    root: u64,
    index: Map<String, Value>,
    paths: Map<String, Value>,
    external_crates: Map<String, Value>,
}

impl Rustdoc {
    /// # Errors
    /// If the text is not rustdoc's JSON or of a format that is not known here.
    pub(super) fn parse(json: &str) -> Result<Self> {
        let mut json: Value = serde_json::from_str(json).context("rustdoc wrote no JSON")?;
        let version = json["format_version"].take();
        let mut object = |key: &str| match json[key].take() {
            Value::Object(object) => Ok(object),
            _ => bail!("rustdoc's JSON has no `{key}` in its format {version}"),
        };
        Ok(Self {
            index: object("index")?,
            paths: object("paths")?,
            external_crates: object("external_crates")?,
            root: json["root"]
                .as_u64()
                .context("rustdoc's JSON has no root")?,
        })
    }

    /// Every mention of another crate's type or trait in what can be reached from the root.
    ///
    /// # Errors
    /// If a mention cannot be followed to the crate that defines it.
    pub(super) fn mentions(&self) -> Result<BTreeSet<Mention>> {
        let mut walk = Walk {
            rustdoc: self,
            seen: HashSet::new(),
            mentions: BTreeSet::new(),
        };
        walk.visit(self.root, "")?;
        Ok(walk.mentions)
    }

    fn item(&self, id: u64) -> Option<&Value> {
        self.index.get(&id.to_string())
    }

    /// The path and the crate of an item of another crate; `None` for an item of this one.
    fn outside(&self, id: u64, written: &str) -> Result<Option<(String, String)>> {
        let Some(known) = self.paths.get(&id.to_string()).or_else(|| self.item(id)) else {
            // What a macro defines inside of an anonymous constant, such as the helper types of pin-project-lite, is this
            // crate's own, and nobody can name it.
            if written.starts_with("__") {
                return Ok(None);
            }
            bail!("rustdoc does not say where `{written}` is defined");
        };
        let krate = &known["crate_id"];
        if krate.as_u64() == Some(0) {
            return Ok(None);
        }
        let krate = self.external_crates.get(&krate.to_string());
        let krate = krate.and_then(|krate| krate["name"].as_str());
        let krate = krate.with_context(|| format!("rustdoc names no crate for `{written}`"))?;
        let parts = known["path"].as_array().into_iter().flatten();
        let parts: Vec<_> = parts.filter_map(Value::as_str).collect();
        // By the convention of macros, nobody but their own expansion may name what lies there.
        if parts.contains(&"__private") {
            return Ok(None);
        }
        let path = if parts.is_empty() {
            written.to_owned()
        } else {
            parts.join("::")
        };
        Ok(Some((path, krate.to_owned())))
    }
}

struct Walk<'a> {
    rustdoc: &'a Rustdoc,
    seen: HashSet<u64>,
    mentions: BTreeSet<Mention>,
}

impl Walk<'_> {
    /// Visits an item of this crate and what it holds, `parent` being the path of what holds it.
    fn visit(&mut self, id: u64, parent: &str) -> Result<()> {
        let rustdoc = self.rustdoc;
        // What is not in the index is private, or belongs to another crate.
        let Some(item) = rustdoc.item(id) else {
            return Ok(());
        };
        if item["crate_id"].as_u64() != Some(0) || !self.seen.insert(id) {
            return Ok(());
        }
        let inner = &item["inner"];
        if is_given_by_the_compiler(&inner["impl"]) {
            return Ok(());
        }
        // A private module whose content is re-exported adds nothing to the path.
        let is_private = inner["module"]["is_stripped"].as_bool() == Some(true);
        let path = join(parent, item["name"].as_str().filter(|_| !is_private));
        self.note_mentions(inner, &shown(&path, inner))?;
        if let Some(target) = inner["use"]["id"].as_u64() {
            return self.visit(target, parent);
        }
        for child in children(inner) {
            self.visit(child, &path)?;
        }
        Ok(())
    }

    fn note_mentions(&mut self, value: &Value, item: &str) -> Result<()> {
        match value {
            Value::Array(values) => {
                for value in values {
                    self.note_mentions(value, item)?;
                }
            }
            Value::Object(object) => {
                if let Some((id, written)) = mention(object) {
                    self.note(id, written, item)?;
                }
                for value in object.values() {
                    self.note_mentions(value, item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, id: u64, written: &str, item: &str) -> Result<()> {
        let outside = self.rustdoc.outside(id, written);
        if let Some((named, krate)) = outside.with_context(|| item.to_owned())? {
            let item = item.to_owned();
            self.mentions.insert(Mention { item, named, krate });
        }
        Ok(())
    }
}

/// An object that mentions a type, a trait or a re-exported item: its id, and how the source writes it.
fn mention(object: &Map<String, Value>) -> Option<(u64, &str)> {
    let id = object.get("id")?.as_u64()?;
    let written = object
        .get("path")
        .or_else(|| object.get("source"))?
        .as_str()?;
    Some((id, written))
}

/// Impls of auto traits, and those that another crate gives to every type: nothing in the source asks for them.
fn is_given_by_the_compiler(implementation: &Value) -> bool {
    implementation["is_synthetic"].as_bool() == Some(true)
        || !implementation["blanket_impl"].is_null()
}

/// The ids of what an item holds. An id is a bare number; types in the same places are objects.
fn children(value: &Value) -> Vec<u64> {
    const HOLDERS: [&str; 6] = [
        "items",
        "fields",
        "variants",
        "tuple",
        "impls",
        "implementations",
    ];
    let mut ids = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        if HOLDERS.contains(&key.as_str()) {
            ids.extend(
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_u64),
            );
        }
        ids.extend(children(value));
    }
    ids
}

fn join(parent: &str, name: Option<&str>) -> String {
    match name {
        None => parent.to_owned(),
        Some(name) if parent.is_empty() => name.to_owned(),
        Some(name) => format!("{parent}::{name}"),
    }
}

/// How an item is called in a report. An impl has no name of its own.
fn shown(path: &str, inner: &Value) -> String {
    if let Some(name) = inner["use"]["name"].as_str() {
        return format!("{path}::{name} (a re-export)");
    }
    match inner["impl"]["trait"]["path"].as_str() {
        Some(of) => format!("{path} (an impl of {of})"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::step;

    /// Documents a crate made of `source`, which can name the types of another crate, `outside`.
    fn mentions(source: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let outside = "pub struct Leak; pub trait Lift { fn lift(&self) -> Leak; } impl<T> Lift for [T] { \
                       fn lift(&self) -> Leak { Leak } }";
        write(
            folder.path(),
            "outside/Cargo.toml",
            &manifest("outside", ""),
        );
        write(folder.path(), "outside/src/lib.rs", outside);
        let dependency = "[dependencies]\noutside = { path = \"outside\" }\n[workspace]\n";
        write(folder.path(), "Cargo.toml", &manifest("mine", dependency));
        write(folder.path(), "src/lib.rs", source);
        step::output(
            step::cargo()
                .current_dir(folder.path())
                .args(["rustdoc", "--lib", "--offline", "--target-dir", "target"])
                .args(["--", "-Z", "unstable-options", "--output-format", "json"])
                .env("RUSTC_BOOTSTRAP", "1"),
        )
        .unwrap();
        let json = std::fs::read_to_string(folder.path().join("target/doc/mine.json")).unwrap();
        let mentions = Rustdoc::parse(&json).unwrap().mentions().unwrap();
        mentions
            .into_iter()
            .filter(|mention| mention.krate == "outside")
            .map(|mention| format!("{}: {}", mention.item, mention.named))
            .collect()
    }

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{rest}")
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn every_place_where_a_type_can_stand_is_looked_at() {
        let found = mentions(
            "pub struct Plain { pub field: Vec<outside::Leak> }
             pub struct Tuple(pub outside::Leak);
             pub enum Either { Left(outside::Leak), Right { field: outside::Leak } }
             pub trait Bound: outside::Lift {}
             pub trait Method { type Item: outside::Lift; fn method() -> Option<outside::Leak>; }
             pub fn generic<T>(_: T) where T: Fn(&outside::Leak) {}
             pub fn opaque() -> impl outside::Lift { [0] }
             pub fn erased(_: &dyn outside::Lift) {}
             pub type Alias = outside::Leak;
             pub const CONSTANT: Option<outside::Leak> = None;
             impl From<outside::Leak> for Plain { fn from(_: outside::Leak) -> Self { Plain { field: vec![] } } }
             impl Plain { pub fn inherent(&self) -> outside::Leak { outside::Leak } }
             pub trait Extension {}
             impl Extension for outside::Leak {}
             pub use outside::Leak as Renamed;",
        );
        let expected = [
            "mine::Alias: outside::Leak",
            "mine::Bound: outside::Lift",
            "mine::CONSTANT: outside::Leak",
            "mine::Either::Left::0: outside::Leak",
            "mine::Either::Right::field: outside::Leak",
            "mine::Extension (an impl of Extension): outside::Leak",
            "mine::Method::Item: outside::Lift",
            "mine::Method::method: outside::Leak",
            "mine::Plain (an impl of From): outside::Leak",
            "mine::Plain::field: outside::Leak",
            "mine::Plain::from: outside::Leak",
            "mine::Plain::inherent: outside::Leak",
            "mine::Renamed (a re-export): outside::Leak",
            "mine::Tuple::0: outside::Leak",
            "mine::erased: outside::Lift",
            "mine::generic: outside::Leak",
            "mine::opaque: outside::Lift",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_re_exported_from_a_private_module_is_public() {
        let found = mentions(
            "mod named { pub struct Named; impl Named { pub fn leak() -> outside::Leak { outside::Leak } } }
             pub use named::Named;
             mod globbed { pub fn glob() -> outside::Leak { outside::Leak } }
             pub use globbed::*;
             pub use outside::*;",
        );
        let expected = [
            "mine::Named::leak: outside::Leak",
            "mine::glob: outside::Leak",
            "mine::outside (a re-export): outside",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_no_user_can_name_is_left_alone() {
        let found = mentions(
            "mod private { pub fn unreachable(_: outside::Leak) {} }
             pub struct Opaque { _field: Option<outside::Leak> }
             pub fn body() { let _ = outside::Leak; private::unreachable(outside::Leak); }
             pub(crate) fn internal(_: outside::Leak) {}",
        );
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_unknown_format_is_an_error() {
        assert!(Rustdoc::parse("{}").is_err());
        assert!(Rustdoc::parse("not json").is_err());
    }
}
