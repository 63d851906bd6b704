//! What a query counts, for itself and for its context.

use super::State;
use crate::enums::QueryType;
use crate::stats::{Stats, is_enabled};
use azulejo_format::schema::ArraySchema;
use std::sync::Arc;
use std::time::Duration;

/// Statistics of a query.
#[derive(Debug)]
pub struct QueryStats {
    own: Stats,
    context: Arc<Stats>,
    /// "Reader", "Writer" or "Deletes": the part of names that follows "Query.".
    side: &'static str,
}

impl QueryStats {
    /// Statistics of a query of a context.
    pub fn new(kind: QueryType, context: &Arc<Stats>) -> Self {
        let side = match kind {
            QueryType::Read => "Reader",
            QueryType::Write | QueryType::ModifyExclusive => "Writer",
            QueryType::Delete | QueryType::Update => "Deletes",
        };
        Self {
            own: Stats::default(),
            context: Arc::clone(context),
            side,
        }
    }

    /// As JSON; empty if nothing was counted.
    pub fn json(&self) -> String {
        self.own.json("")
    }

    fn count(&self, name: &str, number: u64) {
        let name = format!("Query.{}.{name}", self.side);
        self.own.count(&name, number);
        self.context.count(&name, number);
    }

    /// Counts a submission, which took so long.
    pub fn submitted(&self, state: &State, schema: &ArraySchema, time: Duration) {
        if !is_enabled() {
            return;
        }
        let name = format!("Query.{}.dowork", self.side);
        self.own.time(&name, time);
        self.context.time(&name, time);
        self.count("loop_num", 1);
        let (mut cells, mut bytes) = (0, 0);
        for buffers in &state.buffers {
            let Some(field) = schema.field(&buffers.name) else {
                continue;
            };
            let is_dimension = schema.domain.index_of(&buffers.name).is_some();
            let (what, shape) = (
                if is_dimension { "dim" } else { "attr" },
                if schema.is_var(field) { "var" } else { "fixed" },
            );
            self.count(&format!("{what}_num"), 1);
            self.count(&format!("{what}_{shape}_num"), 1);
            let size = |place: Option<super::Place>| place.map_or(0, |place| place.current());
            bytes += size(buffers.data) + size(buffers.offsets) + size(buffers.validity);
            let cell = schema
                .type_of(field)
                .and_then(|(datatype, num)| num.cell_size(datatype));
            cells = cells.max(match cell {
                Some(cell) if cell > 0 => size(buffers.data) / cell as u64,
                _ => size(buffers.offsets) / 8,
            });
        }
        self.count(
            if self.side == "Reader" {
                "result_num"
            } else {
                "cell_num"
            },
            cells,
        );
        self.count("buffer_byte_num", bytes);
    }
}
