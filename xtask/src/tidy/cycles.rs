//! Files of one crate that import each other.
//!
//! A file uses another when a path of its code leads there: `crate::…`, `super::…`, or a name that a
//! module on the way imports under that path. A module and what lies under it are one thing and do
//! not count. What two files both need belongs into a third; `xtask/ceilings.toml` has how many
//! files still lie on a cycle, which only falls.

use super::graph;
use super::paths::{Import, imports};
use super::{Ceiling, files};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by the names that lead to it from the top of its crate.
type Module = Vec<String>;

/// How often an import may lead to another one before it is taken for a loop.
const HOPS_MAX: usize = 8;

pub(super) fn check(root: &Path, ceiling: &mut Ceiling<'_>) -> Result<()> {
    let mut cycles = Vec::new();
    for (source, modules) in crates(root)? {
        cycles.extend(Crate::read(root, &source, modules)?.cycles());
    }
    let count = cycles.iter().map(Vec::len).sum();
    let list: Vec<String> = cycles.iter().map(|files| files.join(", ")).collect();
    ceiling.hold("files_on_cycles", count, || {
        format!("{}. Give what both need a file of its own", list.join("; "))
    });
    Ok(())
}

/// The files of each crate by module, without tests; by the folder of its sources.
fn crates(root: &Path) -> Result<BTreeMap<PathBuf, BTreeMap<Module, PathBuf>>> {
    let mut crates = BTreeMap::<PathBuf, BTreeMap<Module, PathBuf>>::new();
    for file in files(root)? {
        let Some(text) = file.to_str().and_then(|f| f.strip_suffix(".rs")) else { continue };
        let Some((above, inside)) = text.split_once("/src/") else { continue };
        let mut module: Module = inside.split('/').map(str::to_owned).collect();
        if module.iter().any(|name| name == "tests") || module[0] == "bin" {
            continue;
        }
        if module.last().is_some_and(|name| name == "mod")
            || module == ["lib"]
            || module == ["main"]
        {
            module.pop();
        }
        crates.entry(Path::new(above).join("src")).or_default().insert(module, file);
    }
    Ok(crates)
}

struct Crate {
    files: BTreeMap<Module, PathBuf>,
    imports: BTreeMap<Module, Vec<Import>>,
}

impl Crate {
    fn read(root: &Path, source: &Path, files: BTreeMap<Module, PathBuf>) -> Result<Self> {
        let mut found = BTreeMap::new();
        for (module, file) in &files {
            let text = fs::read_to_string(root.join(file));
            let text =
                text.with_context(|| format!("{} of {}", file.display(), source.display()))?;
            found.insert(module.clone(), imports(&text));
        }
        Ok(Self { files, imports: found })
    }

    /// Files that import each other, in groups.
    fn cycles(&self) -> Vec<Vec<String>> {
        let uses = self.imports.iter().map(|(module, imports)| {
            let rooted = imports.iter().filter(|import| is_rooted(&import.path[0]));
            let targets = rooted.filter_map(|import| self.target(module, &import.path, 0));
            let others = targets.filter(|t| !t.starts_with(module) && !module.starts_with(t));
            (module.clone(), others.collect::<BTreeSet<Module>>())
        });
        let groups = graph::cycles(&uses.collect());
        let shown = |module: &Module| self.files[module].display().to_string();
        groups.iter().map(|group| group.iter().map(shown).collect()).collect()
    }

    /// The module where `path`, written in `module`, ends; none outside of the crate.
    fn target(&self, module: &Module, path: &[String], hops: usize) -> Option<Module> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            _ => (module.clone(), path),
        };
        while let Some((first, further)) = rest.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => _ = at.pop(),
                name => {
                    at.push(name.to_owned());
                    if !self.files.contains_key(&at) {
                        at.pop();
                        let imported = self.imported(&at, name, further, hops);
                        return imported.or_else(|| self.files.contains_key(&at).then_some(at));
                    }
                }
            }
            rest = further;
        }
        self.files.contains_key(&at).then_some(at)
    }

    /// Where `name` leads that the module `at` imports, with `rest` behind it.
    fn imported(&self, at: &Module, name: &str, rest: &[String], hops: usize) -> Option<Module> {
        if hops >= HOPS_MAX {
            return None;
        }
        let imports = self.imports.get(at)?.iter();
        imports.filter(|import| import.name == name && import.path.len() > 1).find_map(|import| {
            let first = &import.path[0];
            let below = [at.as_slice(), std::slice::from_ref(first)].concat();
            let leads_on = is_rooted(first) || self.files.contains_key(&below);
            let path = [&import.path, rest].concat();
            leads_on.then(|| self.target(at, &path, hops + 1)).flatten()
        })
    }
}

fn is_rooted(first: &str) -> bool {
    matches!(first, "crate" | "super" | "self")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let module = |name: &str| -> Module {
            name.split('/').filter(|n| !n.is_empty()).map(str::to_owned).collect()
        };
        let paths = files.iter().map(|(name, _)| (module(name), PathBuf::from(name)));
        let found = files.iter().map(|(name, text)| (module(name), imports(text)));
        Crate { files: paths.collect(), imports: found.collect() }.cycles()
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let found =
            cycles(&[("", ""), ("a", "use crate::b::B;"), ("b", "use super::a::{self, A};")]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn what_a_module_imports_leads_on() {
        let found = cycles(&[
            ("", ""),
            ("m", "mod x; mod y; pub use x::X; use y::Y as Z;"),
            ("m/x", "fn f() -> super::Z { crate::m::Z::new() }"),
            ("m/y", "use super::X;"),
        ]);
        assert_eq!(found, [["m/x", "m/y"]]);
    }

    #[test]
    fn a_module_and_its_parts_are_one_and_tests_do_not_count() {
        let test = "\n#[cfg(test)]\nmod tests { use crate::a::A; }";
        assert!(cycles(&[("", ""), ("m", "use self::x::X;"), ("m/x", "use super::M;")]).is_empty());
        assert!(cycles(&[("", ""), ("a", "use crate::b::B;"), ("b", test)]).is_empty());
        let comment = "// use crate::a::A;\nconst T: &str = \"use crate::a::A;\";";
        assert!(cycles(&[("", ""), ("a", "use crate::b::B;"), ("b", comment)]).is_empty());
    }
}
