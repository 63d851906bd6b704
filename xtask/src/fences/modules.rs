//! The modules of a crate: the types that each defines, and the modules whose items it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::Visit;
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// A module's path: its steps from the crate's root.
pub type ModulePath = Vec<String>;

/// Imports that a path may lead through: names of other crates may seem to name each other.
const DEPTH: usize = 16;

/// A module that is a file.
#[derive(Default)]
struct Module {
    /// Names that it imports, and the paths that they stand for.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths that its code names.
    uses: BTreeSet<Vec<String>>,
    /// Structs, enums, traits, unions, aliases.
    types: Vec<String>,
}

/// All modules of a crate, tests left out.
pub struct Modules(BTreeMap<ModulePath, Module>);

impl Modules {
    /// Reads the files below `src`.
    pub fn read(src: &Path, files: &[std::path::PathBuf]) -> Result<Self, String> {
        let mut modules = BTreeMap::new();
        for file in files {
            let relative = file.strip_prefix(src).unwrap_or(file).with_extension("");
            let mut path: ModulePath = (relative.iter())
                .map(|step| step.to_string_lossy().into_owned())
                .collect();
            if path == ["lib"] {
                path.clear();
            }
            if path.iter().any(|step| step == "tests") {
                continue;
            }
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|e| format!("{}: {e}", file.display()))?;
            let parsed = syn::parse_file(&text).map_err(|e| format!("{}: {e}", file.display()))?;
            let mut module = Module::default();
            module.visit_file(&parsed);
            modules.insert(path, module);
        }
        Ok(Self(modules))
    }

    /// The types that have one name in several modules. Not counted are those of which one build
    /// has only one (`#[cfg(..)]` alternatives in sibling modules that `alternatives` names).
    pub fn names_of_several(&self, alternatives: &[&str]) -> Vec<String> {
        let mut places: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for name in module
                .types
                .iter()
                .filter(|n| !alternatives.contains(&n.as_str()))
            {
                places.entry(name).or_default().insert(path.join("/"));
            }
        }
        let several = places.into_iter().filter(|(_, places)| places.len() > 1);
        several
            .map(|(name, places)| {
                let places: Vec<String> = places.into_iter().collect();
                format!(
                    "`{name}` is the name of {} types: {}",
                    places.len(),
                    places.join(", ")
                )
            })
            .collect()
    }

    /// The circles in which modules use each other's items, as lines to print. What a module only
    /// passes on (`pub use` of its children's items) it does not use.
    pub fn circles(&self) -> Vec<String> {
        let edges: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = self
            .0
            .keys()
            .map(|path| (path, self.uses_of(path)))
            .collect();
        let reach: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = edges
            .keys()
            .map(|path| (*path, reachable(path, &edges)))
            .collect();
        let mut circles: Vec<BTreeSet<&ModulePath>> = Vec::new();
        for (path, far) in &reach {
            if far.contains(path) && !circles.iter().any(|circle| circle.contains(path)) {
                let back =
                    |other: &&&ModulePath| reach.get(**other).is_some_and(|r| r.contains(path));
                circles.push(far.iter().filter(back).copied().collect());
            }
        }
        let lines = circles.into_iter().flat_map(|circle| {
            let edges = &edges;
            let inside = circle.clone();
            circle.into_iter().map(move |from| {
                let to = edges.get(from).into_iter().flatten();
                let to: Vec<String> = to
                    .filter(|to| inside.contains(**to))
                    .map(|to| to.join("/"))
                    .collect();
                format!("{} uses {}, in a circle", from.join("/"), to.join(", "))
            })
        });
        lines.collect()
    }

    /// The modules that define what a module uses.
    fn uses_of(&self, path: &ModulePath) -> BTreeSet<&ModulePath> {
        let Some(module) = self.0.get(path).filter(|_| !path.is_empty()) else {
            return BTreeSet::new();
        };
        let used = module.uses.iter().filter_map(|used| {
            let whole = self.absolute(path, used, 0)?;
            // A module that is named brings nothing: what is used of it is named by other paths.
            let definer = (!self.0.contains_key(&whole)).then(|| self.definer(&whole, 0))??;
            (definer != path && !definer.is_empty()).then_some(definer)
        });
        used.collect()
    }

    /// The module that defines what a path from the root names; `None` if that lies in another
    /// crate.
    fn definer(&self, path: &[String], depth: usize) -> Option<&ModulePath> {
        let steps = (0..=path.len())
            .rev()
            .find(|n| self.0.contains_key(&path[..*n]))?;
        let (module, rest) = path.split_at(steps);
        let (key, content) = self.0.get_key_value(module)?;
        let Some((name, behind)) = rest.split_first().filter(|_| depth < DEPTH) else {
            return Some(key);
        };
        let Some(import) = content.imports.get(name) else {
            return Some(key);
        };
        let mut whole = self.absolute(module, import, depth)?;
        whole.extend_from_slice(behind);
        if whole == path {
            Some(key)
        } else {
            self.definer(&whole, depth + 1)
        }
    }

    /// A path as a module writes it, from the root; `None` for those into other crates.
    fn absolute(&self, module: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first().filter(|_| depth < DEPTH)?;
        let mut base = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => return Some([module, rest].concat()),
            "super" => module.to_vec(),
            name => {
                let child = [module, std::slice::from_ref(first)].concat();
                if self.0.contains_key(&child) {
                    return Some([&child[..], rest].concat());
                }
                let import = self.0.get(module)?.imports.get(name)?;
                if import.first() == Some(first) && import.len() == 1 {
                    return None;
                }
                let whole = self.absolute(module, import, depth + 1)?;
                return Some([whole, rest.to_vec()].concat());
            }
        };
        let ups = path.iter().take_while(|step| *step == "super").count();
        base.truncate(base.len().checked_sub(ups)?);
        base.extend_from_slice(path.get(ups..)?);
        Some(base)
    }
}

fn reachable<'a>(
    from: &'a ModulePath,
    edges: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
) -> BTreeSet<&'a ModulePath> {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(at) = todo.pop() {
        let next = edges.get(at).into_iter().flatten();
        todo.extend(next.filter(|next| seen.insert(**next)).copied());
    }
    seen
}

/// Whether an item is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    let test = |a: &Attribute| {
        a.path().is_ident("cfg")
            && a.parse_args::<syn::Path>()
                .is_ok_and(|p| p.is_ident("test"))
    };
    attributes.iter().any(test)
}

/// The paths of an import, each with the name that it gets.
fn leaves(tree: &UseTree, before: &[String], out: &mut Vec<(String, Vec<String>)>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), out),
        UseTree::Name(name) if name.ident == "self" => {
            out.extend(before.last().map(|last| (last.clone(), before.to_vec())));
        }
        UseTree::Name(name) => out.push((name.ident.to_string(), with(&name.ident))),
        UseTree::Rename(rename) => out.push((rename.rename.to_string(), with(&rename.ident))),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| leaves(tree, before, out)),
        UseTree::Glob(_) => {}
    }
}

impl Visit<'_> for Module {
    fn visit_item(&mut self, item: &Item) {
        let (attributes, name) = match item {
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Mod(item) => (&item.attrs, None),
            Item::Fn(item) => (&item.attrs, None),
            Item::Impl(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            _ => return syn::visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            self.types.extend(name.map(ToString::to_string));
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let mut paths = Vec::new();
        leaves(&item.tree, &[], &mut paths);
        for (name, path) in paths {
            if matches!(item.vis, Visibility::Inherited) {
                self.uses.insert(path.clone());
            }
            self.imports.insert(name, path);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let steps: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if steps.len() > 1 {
            self.uses.insert(steps);
        }
        syn::visit::visit_path(self, path);
    }
}
