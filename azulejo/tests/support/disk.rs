//! What a power failure leaves of files, by the letter of POSIX: a file's bytes last once the file was
//! synced, a name once the folder that has it was, and what was not synced may have lasted or not, each
//! name and each file by itself. Only of renames two things are taken for granted that every file
//! system keeps: what is renamed does not lose both of its names, and a folder has one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::storage::FileChange;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

/// Files with their bytes, by their paths below the root.
pub type Files = BTreeMap<String, Vec<u8>>;

type Node = usize;

/// What a name stood for at a time.
#[derive(Debug, Clone)]
struct Meaning {
    node: Option<Node>,
    /// The rename that gave or took it, and whether it gave.
    rename: Option<(usize, bool)>,
}

/// What a name has stood for since its folder was synced: the first lasts, the last is of now.
type Name = Vec<Meaning>;

#[derive(Debug, Clone)]
enum Content {
    Folder(BTreeMap<String, Name>),
    File { synced: Vec<u8>, now: Vec<u8> },
}

/// A disk, and all that may have become of it.
#[derive(Debug, Clone)]
pub struct Disk {
    nodes: Vec<Content>,
    renames: usize,
    /// Renames of which the new name lasts.
    lasting: HashSet<usize>,
    /// Renames of folders.
    of_folders: HashSet<usize>,
}

/// Something that may have lasted in several ways: a name of a folder, or a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Choice {
    Name(Node, String),
    Bytes(Node),
}

const ROOT: Node = 0;

impl Disk {
    /// A folder of which all lasts.
    pub fn of(root: &Path) -> Self {
        let mut disk = Self {
            nodes: vec![Content::Folder(BTreeMap::new())],
            renames: 0,
            lasting: HashSet::new(),
            of_folders: HashSet::new(),
        };
        disk.load(root, ROOT);
        disk
    }

    fn load(&mut self, path: &Path, folder: Node) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let node = if path.is_dir() {
                let node = self.new_node(Content::Folder(BTreeMap::new()));
                self.load(&path, node);
                node
            } else {
                let bytes = fs::read(&path).unwrap();
                let (synced, now) = (bytes.clone(), bytes);
                self.new_node(Content::File { synced, now })
            };
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let lasts = Meaning {
                node: Some(node),
                rename: None,
            };
            self.folder(folder).insert(name, vec![lasts]);
        }
    }

    fn new_node(&mut self, content: Content) -> Node {
        self.nodes.push(content);
        self.nodes.len() - 1
    }

    fn folder(&mut self, node: Node) -> &mut BTreeMap<String, Name> {
        match &mut self.nodes[node] {
            Content::Folder(names) => names,
            Content::File { .. } => panic!("a file in the place of a folder"),
        }
    }

    fn now(&mut self, path: &Path) -> Option<Node> {
        let mut node = ROOT;
        for part in path {
            let meaning = self.folder(node).get(part.to_str().unwrap())?.last()?;
            node = meaning.node?;
        }
        Some(node)
    }

    fn name(&mut self, path: &Path) -> &mut Name {
        let parent = self.now(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let names = self.folder(parent);
        names.entry(name).or_insert_with(|| {
            vec![Meaning {
                node: None,
                rename: None,
            }]
        })
    }

    fn mean(&mut self, path: &Path, node: Option<Node>, rename: Option<(usize, bool)>) {
        self.name(path).push(Meaning { node, rename });
    }

    fn remove_below(&mut self, node: Node) {
        let Content::Folder(names) = &mut self.nodes[node] else {
            return;
        };
        let mut below = Vec::new();
        for name in names.values_mut() {
            below.extend(name.last().unwrap().node);
            let (node, rename) = (None, None);
            name.push(Meaning { node, rename });
        }
        below.into_iter().for_each(|node| self.remove_below(node));
    }

    /// What a change does to the disk.
    pub fn apply(&mut self, root: &Path, change: &FileChange) {
        let inside = |path: &'_ Path| path.strip_prefix(root).map(Path::to_owned).ok();
        match change {
            FileChange::MakeFolder(path) => {
                let node = self.new_node(Content::Folder(BTreeMap::new()));
                self.mean(&inside(path).unwrap(), Some(node), None);
            }
            FileChange::Create(path) => {
                let (synced, now) = Default::default();
                let node = self.new_node(Content::File { synced, now });
                self.mean(&inside(path).unwrap(), Some(node), None);
            }
            FileChange::Write(path, bytes) => {
                let node = self.now(&inside(path).unwrap()).unwrap();
                if let Content::File { now, .. } = &mut self.nodes[node] {
                    now.extend(bytes);
                }
            }
            FileChange::SyncFile(path) => {
                let node = self.now(&inside(path).unwrap()).unwrap();
                if let Content::File { synced, now } = &mut self.nodes[node] {
                    synced.clone_from(now);
                }
            }
            FileChange::SyncFolder(path) => {
                // What is above the root lasts.
                let Some(path) = inside(path) else { return };
                let Some(node) = self.now(&path) else { return };
                let mut lasting = Vec::new();
                self.folder(node).retain(|_, name| {
                    let given = |m: &Meaning| m.rename.filter(|(_, gave)| *gave).map(|(k, _)| k);
                    lasting.extend(name.iter().filter_map(given));
                    name.drain(..name.len() - 1);
                    name[0].rename = None;
                    name[0].node.is_some()
                });
                self.lasting.extend(lasting);
            }
            FileChange::Rename(from, to) => {
                let (from, to) = (inside(from).unwrap(), inside(to).unwrap());
                let node = self.now(&from);
                let rename = self.renames;
                self.renames += 1;
                if node.is_some_and(|node| matches!(self.nodes[node], Content::Folder(_))) {
                    self.of_folders.insert(rename);
                }
                self.mean(&from, None, Some((rename, false)));
                self.mean(&to, node, Some((rename, true)));
            }
            FileChange::Link(from, to) => {
                let node = self.now(&inside(from).unwrap());
                self.mean(&inside(to).unwrap(), node, None);
            }
            FileChange::Remove(path) => self.mean(&inside(path).unwrap(), None, None),
            FileChange::RemoveFolder(path) => {
                let path = inside(path).unwrap();
                let node = self.now(&path).unwrap();
                self.remove_below(node);
                self.mean(&path, None, None);
            }
        }
    }

    /// What may have lasted in several ways, with the number of ways.
    fn choices(&self) -> BTreeMap<Choice, usize> {
        let (mut found, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let mut todo = vec![ROOT];
        while let Some(node) = todo.pop() {
            if !seen.insert(node) {
                continue;
            }
            match &self.nodes[node] {
                Content::Folder(names) => {
                    for (text, name) in names {
                        todo.extend(name.iter().filter_map(|meaning| meaning.node));
                        if name.len() > 1 {
                            found.insert(Choice::Name(node, text.clone()), name.len());
                        }
                    }
                }
                // Its bytes of then, of now, or half of what came between.
                Content::File { synced, now } if synced != now => {
                    found.insert(Choice::Bytes(node), 3);
                }
                Content::File { .. } => {}
            }
        }
        found
    }

    /// Whether the name that a rename took may still be there.
    fn is_open(&self, rename: usize) -> bool {
        self.nodes.iter().any(|node| match node {
            Content::Folder(names) => {
                let mut meanings = names.values().flatten();
                meanings.any(|meaning| meaning.rename == Some((rename, false)))
            }
            Content::File { .. } => false,
        })
    }

    /// What the disk has if each choice goes as said; `None` if this cannot be.
    fn state(&self, chosen: &BTreeMap<&Choice, usize>) -> Option<Files> {
        let of = |choice: &Choice| chosen.get(choice).copied();
        let (mut given, mut taken) = (self.lasting.clone(), HashSet::new());
        for (choice, &way) in chosen {
            let Choice::Name(node, text) = choice else {
                continue;
            };
            let Content::Folder(names) = &self.nodes[*node] else {
                continue;
            };
            for (rename, gave) in names[text][..=way].iter().filter_map(|m| m.rename) {
                if gave {
                    given.insert(rename);
                } else {
                    taken.insert(rename);
                }
            }
        }
        // One that was taken and lasts is not among the choices any more.
        let whole = |rename: &&usize| taken.contains(rename) || !self.is_open(**rename);
        if !taken.is_subset(&given) || !given.intersection(&self.of_folders).all(|r| whole(&r)) {
            return None;
        }
        let mut files = Files::new();
        let mut todo = vec![(ROOT, String::new())];
        while let Some((node, path)) = todo.pop() {
            match &self.nodes[node] {
                Content::Folder(names) => {
                    for (text, name) in names {
                        let way = of(&Choice::Name(node, text.clone())).unwrap_or(name.len() - 1);
                        let inner = match path.as_str() {
                            "" => text.clone(),
                            path => format!("{path}/{text}"),
                        };
                        todo.extend(name[way].node.map(|node| (node, inner)));
                    }
                }
                Content::File { synced, now } => {
                    let bytes = match of(&Choice::Bytes(node)) {
                        Some(0) => synced.clone(),
                        Some(1) => now[..(synced.len() + now.len()) / 2].to_vec(),
                        _ => now.clone(),
                    };
                    files.insert(path, bytes);
                }
            }
        }
        Some(files)
    }

    /// What the disk may have after a power failure: all that it may if there are at most `limit`
    /// ways; else each choice by itself gone otherwise than all others, and as many at random, which
    /// `seed` decides. Whether these are all.
    pub fn states(&self, limit: usize, seed: u64) -> (Vec<Files>, bool) {
        let choices: Vec<(Choice, usize)> = self.choices().into_iter().collect();
        let ways = choices.iter().try_fold(1usize, |n, (_, ways)| {
            n.checked_mul(*ways).filter(|n| *n <= limit)
        });
        let pick = |way: &dyn Fn(usize, usize) -> usize| {
            let chosen = choices.iter().enumerate();
            let chosen = chosen.map(|(i, (choice, ways))| (choice, way(i, *ways)));
            self.state(&chosen.collect())
        };
        let mut states = Vec::new();
        if let Some(ways) = ways {
            for number in 0..ways {
                let mut rest = number;
                let digits: Vec<usize> = choices
                    .iter()
                    .map(|(_, ways)| {
                        let digit = rest % ways;
                        rest /= ways;
                        digit
                    })
                    .collect();
                states.extend(pick(&|i, _| digits[i]));
            }
            return (states, true);
        }
        for (other, (_, ways)) in choices.iter().enumerate() {
            for way in 0..*ways {
                states.extend(pick(&|i, _| if i == other { way } else { 0 }));
                states.extend(pick(&|i, ways| if i == other { way } else { ways - 1 }));
            }
        }
        let mut random = seed;
        for _ in 0..limit {
            let digits: Vec<usize> = choices
                .iter()
                .map(|(_, ways)| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) as usize % ways
                })
                .collect();
            states.extend(pick(&|i, _| digits[i]));
        }
        (states, false)
    }
}
