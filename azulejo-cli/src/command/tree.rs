//! `azulejo tree`: arrays and groups below a folder or group.

use super::ls::{Row, children};
use crate::args::TreeArgs;
use crate::error::Result;
use crate::object::{self, Kind};
use crate::session::Session;
use crate::terminal::{FAINT, NAME};
use azulejo::Context;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Groups may contain one another; deeper than this nobody nests them.
const MAX_DEPTH: usize = 64;

/// An object with what lies in it.
#[derive(Debug)]
struct Node {
    row: Row,
    children: Vec<Node>,
}

/// Runs the command.
pub fn run(session: &mut Session, args: &TreeArgs) -> Result<()> {
    let location = object::locate(&session.context, &args.uri)?;
    let kind = object::look(&location)?.0;
    let root = Row { name: args.uri.clone(), kind, uri: args.uri.clone() };
    // Asked for by name, it has to exist.
    children(&session.context, &args.uri, &location)?;
    let depth = args.depth.unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
    let root = grow(&session.context, root, depth, &mut Vec::new());
    if session.output.json {
        return session.output.write_json(&node_json(&root));
    }
    writeln!(session.output, "{NAME}{}{NAME:#}{}", root.row.name, suffix(root.row.kind))?;
    write_children(&mut session.output, &root, "")?;
    let (arrays, groups) = count(&root);
    writeln!(
        session.output,
        "{}, {}",
        super::schema::plural(arrays, "array"),
        super::schema::plural(groups, "group")
    )?;
    Ok(())
}

/// An object with all below it; folders without arrays and groups are left out. What cannot be read has no children.
fn grow(context: &Context, row: Row, depth: usize, above: &mut Vec<String>) -> Node {
    let mut node = Node { row, children: Vec::new() };
    if node.row.kind == Kind::Array || depth == 0 || above.contains(&node.row.uri) {
        return node;
    }
    let Ok(location) = object::locate(context, &node.row.uri) else { return node };
    let Ok(rows) = children(context, &node.row.uri, &location) else { return node };
    above.push(node.row.uri.clone());
    node.children = rows.into_iter().map(|row| grow(context, row, depth - 1, above)).collect();
    above.pop();
    node.children.retain(|child| child.row.kind != Kind::Folder || !child.children.is_empty() || depth == 1);
    node
}

fn suffix(kind: Kind) -> String {
    match kind {
        Kind::Folder => format!("{FAINT}/{FAINT:#}"),
        kind => format!("  {FAINT}{}{FAINT:#}", kind.name()),
    }
}

fn write_children(out: &mut impl Write, node: &Node, indent: &str) -> Result<()> {
    for (at, child) in node.children.iter().enumerate() {
        let last = at + 1 == node.children.len();
        let (branch, below) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
        writeln!(out, "{indent}{branch}{NAME}{}{NAME:#}{}", child.row.name, suffix(child.row.kind))?;
        write_children(out, child, &format!("{indent}{below}"))?;
    }
    Ok(())
}

fn count(node: &Node) -> (usize, usize) {
    let own = (usize::from(node.row.kind == Kind::Array), usize::from(node.row.kind == Kind::Group));
    node.children.iter().map(count).fold(own, |(a, g), (b, h)| (a + b, g + h))
}

fn node_json(node: &Node) -> Json {
    let mut json = node.row.json();
    if let (Json::Object(fields), true) = (&mut json, node.row.kind != Kind::Array) {
        let children: Vec<Json> = node.children.iter().map(node_json).collect();
        fields.insert("children".to_owned(), json!(children));
    }
    json
}
