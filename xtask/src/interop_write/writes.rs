//! Random writes, by either engine.

use super::peer::{self, Peer, hex};
use super::session::Session;
use super::{model, random};
use crate::Outcome;
use azulejo::format::{ArraySchema, NdRectangle};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::Layout;
use azulejo::write::Duplicates;
use azulejo::{Config, Context, WriteLayout, WriteOptions};
use serde_json::{Value, json};
use std::sync::Arc;

impl Session {
    /// A random write, by the reference if it is given.
    pub fn write(&mut self, peer: Option<&mut Peer>) -> Outcome {
        let time = self.tick();
        let who = if peer.is_some() { "theirs" } else { "ours" };
        self.ours |= peer.is_none();
        if self.schema.is_dense() {
            self.write_box(peer, time, who)
        } else {
            self.write_cells(peer, time, who)
        }
    }

    fn write_box(&mut self, peer: Option<&mut Peer>, time: u64, who: &str) -> Outcome {
        let schema = Arc::clone(&self.schema);
        let layout = match self.rng.below(4) {
            0 if peer.is_none() => WriteLayout::Global,
            1 => WriteLayout::Col,
            _ => WriteLayout::Row,
        };
        let bounds = model::random_box(&mut self.rng, &schema, layout == WriteLayout::Global)?;
        // The domain may end within a tile, which cannot be written in global order.
        let whole = model::is_of_whole_tiles(&schema, &bounds)?;
        let layout = if layout == WriteLayout::Global && !whole {
            WriteLayout::Row
        } else {
            layout
        };
        let coordinates = model::box_cells(&schema, &bounds, layout)?;
        let labels = self.labels();
        let columns = random::columns(&mut self.rng, &schema, coordinates.len(), labels);
        let ranges = NdRectangle {
            ranges: model::box_ranges(&schema, &bounds)?,
        };
        self.log
            .push(format!("{who} {layout:?} {bounds:?} at {time}"));
        if let Some(peer) = peer {
            let mut command = self.command("write");
            command["layout"] = i32::from(layout == WriteLayout::Col).into();
            command["t"] = time.into();
            command["box"] = ranges
                .ranges
                .iter()
                .map(|r| json!([hex(&r.start), hex(&r.end)]))
                .collect();
            command["columns"] = columns
                .iter()
                .map(|(name, cells)| column_json(&schema, name, cells))
                .collect();
            peer.tell(&command)?;
        } else {
            let mut options = WriteOptions::new()
                .layout(layout)
                .timestamp(time)
                .subarray(ranges);
            if self.rng.chance(15) {
                options = options.max_fragment_size(200 + self.rng.below(2000));
            }
            let mut writer = self
                .context
                .array(&self.uri)
                .writer(options)
                .map_err(|e| e.to_string())?;
            let set = random::column_set(&writer.column_types(&[]), &columns)?;
            if layout == WriteLayout::Global {
                let cut = self.rng.below(set.cell_num as u64 + 1) as usize;
                for part in [0..cut, cut..set.cell_num] {
                    writer
                        .write(&set.slice(part))
                        .map_err(|e| format!("write: {e}"))?;
                }
            } else {
                writer.write(&set).map_err(|e| format!("write: {e}"))?;
            }
            writer.finish().map_err(|e| format!("finish: {e}"))?;
        }
        self.model.add(time, coordinates, &columns);
        Ok(())
    }

    fn write_cells(&mut self, peer: Option<&mut Peer>, time: u64, who: &str) -> Outcome {
        let schema = Arc::clone(&self.schema);
        let count = *self.rng.pick(&[1, 3, 20, 60, 60, 300]);
        let mut coordinates: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..count {
            let known = if self.rng.chance(20) {
                self.model.any(&mut self.rng)
            } else {
                None
            };
            let at = known.unwrap_or_else(|| {
                schema
                    .domain
                    .dimensions
                    .iter()
                    .map(|d| random::coordinate(&mut self.rng, d))
                    .collect()
            });
            if schema.allows_dups || seen.insert(at.clone()) {
                coordinates.push(at);
            }
        }
        let labels = self.labels();
        let columns = random::columns(&mut self.rng, &schema, coordinates.len(), labels);
        let mut all = columns.clone();
        for (d, dimension) in schema.domain.dimensions.iter().enumerate() {
            all.insert(
                dimension.name.clone(),
                coordinates.iter().map(|at| Some(at[d].clone())).collect(),
            );
        }
        if let Some(peer) = peer {
            self.log
                .push(format!("{who} {} cells at {time}", coordinates.len()));
            let mut command = self.command("write");
            command["layout"] = 3.into();
            command["t"] = time.into();
            command["columns"] = all
                .iter()
                .map(|(name, cells)| column_json(&schema, name, cells))
                .collect();
            peer.tell(&command)?;
        } else {
            let global = self.rng.chance(35);
            self.log.push(format!(
                "{who} {} cells{} at {time}",
                coordinates.len(),
                if global { " in global order" } else { "" }
            ));
            let layout = if global {
                WriteLayout::Global
            } else {
                WriteLayout::Unordered
            };
            let mut options = WriteOptions::new().layout(layout).timestamp(time);
            if self.rng.chance(15) {
                options = options.max_fragment_size(200 + self.rng.below(2000));
            }
            if self.rng.chance(20) {
                options = options.duplicates(Duplicates::Dedup);
            }
            let mut writer = self
                .context
                .array(&self.uri)
                .writer(options)
                .map_err(|e| e.to_string())?;
            let set = random::column_set(&writer.column_types(&[]), &all)?;
            if global {
                let sorted = sorted(&schema, &set)?;
                let cut = self.rng.below(sorted.cell_num as u64 + 1) as usize;
                for part in [0..cut, cut..sorted.cell_num] {
                    writer
                        .write(&sorted.slice(part))
                        .map_err(|e| format!("write: {e}"))?;
                }
            } else {
                writer.write(&set).map_err(|e| format!("write: {e}"))?;
            }
            writer.finish().map_err(|e| format!("finish: {e}"))?;
        }
        self.model.add(time, coordinates, &columns);
        Ok(())
    }
}

fn column_json(schema: &ArraySchema, name: &str, cells: &[Option<Vec<u8>>]) -> Value {
    let cells: Vec<Option<String>> = cells.iter().map(|cell| cell.as_deref().map(hex)).collect();
    json!([peer::field_json(schema, name), cells])
}

/// Cells in the global order of a schema: by way of a scratch array.
fn sorted(schema: &ArraySchema, set: &azulejo::ColumnSet) -> Result<azulejo::ColumnSet, String> {
    let text = |e: azulejo::Error| format!("scratch: {e}");
    let context = Context::new(Config::default(), None).map_err(text)?;
    let mut plain = schema.clone();
    for attribute in &mut plain.attributes {
        attribute.enumeration = None;
    }
    plain.enumerations.clear();
    context
        .array("mem://scratch")
        .create(azulejo::format::schema::NewArray::from(plain))
        .map_err(text)?;
    let mut writer = context
        .array("mem://scratch")
        .writer(WriteOptions::new())
        .map_err(text)?;
    writer.write(set).map_err(text)?;
    writer.finish().map_err(text)?;
    let array = context.array("mem://scratch").open().map_err(text)?;
    let names: Vec<String> = set
        .columns
        .iter()
        .map(|c| c.column_type.name.to_string())
        .collect();
    let options = ReadOptions::new().fields(names).layout(Layout::Global);
    array.read(options).and_then(Reader::read_all).map_err(text)
}
