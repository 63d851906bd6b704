//! `azulejo tree`: arrays and groups below a folder or group.

use super::ls::{Row, Shortener};
use super::schema::plural;
use crate::args::TreeArgs;
use crate::error::Result;
use crate::output::table::one_line;
use crate::session::Session;
use crate::terminal::{FAINT, NAME};
use azulejo::group::ObjectType;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Deeper than anyone nests.
const MAX_DEPTH: usize = 256;

/// An object with what lies in it.
#[derive(Debug)]
struct Node {
    row: Row,
    depth: usize,
    /// Whether it stands elsewhere in the tree with all that lies in it.
    repeated: bool,
    children: Vec<Node>,
}

/// Runs the command.
pub fn run(session: &mut Session, args: &TreeArgs) -> Result<()> {
    let kind = session.context.object(&args.uri).object_type()?;
    let depth = args.depth.unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
    let shorten = Shortener::new(&args.uri)?;
    let row = Row {
        name: Some(args.uri.clone()),
        kind,
        uri: args.uri.clone(),
        unfinished: false,
    };
    // The nodes from the root to the last one, each the parent of the next.
    let mut path = vec![Node {
        row,
        depth: 0,
        repeated: false,
        children: Vec::new(),
    }];
    for entry in session.context.object(&args.uri).walk(depth)? {
        match entry {
            Ok(entry) => {
                fold(&mut path, entry.depth, depth);
                let (row, repeated) = (shorten.row(&entry), entry.repeated);
                path.push(Node {
                    row,
                    depth: entry.depth,
                    repeated,
                    children: Vec::new(),
                });
            }
            Err(error) => session.output.note(&error.to_string()),
        }
    }
    fold(&mut path, 1, depth);
    let Some(root) = path.pop() else {
        return Ok(());
    };
    if session.output.json {
        return session.output.write_json(&node_json(&root));
    }
    writeln!(
        session.output,
        "{NAME}{}{NAME:#}{}",
        args.uri.trim_end_matches('/'),
        suffix(&root)
    )?;
    write_children(&mut session.output, &root, "")?;
    let (arrays, groups) = count(&root);
    writeln!(
        session.output,
        "{}, {}",
        plural(arrays, "array"),
        plural(groups, "group")
    )?;
    Ok(())
}

/// Hands the nodes at `depth` and deeper to their parents. Folders in which the walk found nothing
/// are dropped; those at the greatest depth were not looked into.
fn fold(path: &mut Vec<Node>, depth: usize, max_depth: usize) {
    while path.len() > 1 && path.last().is_some_and(|node| node.depth >= depth) {
        let (Some(node), Some(parent)) = (path.pop(), path.last_mut()) else {
            return;
        };
        if node.row.kind.is_some()
            || !node.children.is_empty()
            || node.depth == max_depth
            || node.repeated
        {
            parent.children.push(node);
        }
    }
}

fn suffix(node: &Node) -> String {
    let repeated = if node.repeated { ", see above" } else { "" };
    match node.row.kind {
        None => format!("{FAINT}/{repeated}{FAINT:#}"),
        Some(kind) => format!("  {FAINT}{kind}{repeated}{FAINT:#}"),
    }
}

fn write_children(out: &mut impl Write, node: &Node, indent: &str) -> Result<()> {
    for (at, child) in node.children.iter().enumerate() {
        let last = at + 1 == node.children.len();
        let (branch, below) = if last {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        writeln!(
            out,
            "{indent}{branch}{NAME}{}{NAME:#}{}",
            one_line(child.row.name.as_deref().unwrap_or("-")),
            suffix(child)
        )?;
        write_children(out, child, &format!("{indent}{below}"))?;
    }
    Ok(())
}

fn count(node: &Node) -> (usize, usize) {
    let own = match node.row.kind {
        _ if node.repeated => (0, 0),
        Some(ObjectType::Array) => (1, 0),
        Some(ObjectType::Group) => (0, 1),
        None => (0, 0),
    };
    node.children
        .iter()
        .map(count)
        .fold(own, |(a, g), (b, h)| (a + b, g + h))
}

fn node_json(node: &Node) -> Json {
    let mut json = node.row.json();
    if let (Json::Object(fields), true) = (&mut json, node.row.kind != Some(ObjectType::Array)) {
        let children: Vec<Json> = node.children.iter().map(node_json).collect();
        fields.insert("children".to_owned(), json!(children));
    }
    json
}
