//! A scan as plans show it.

use super::ArrayScan;
use crate::selection::{self, Selection};
use datafusion::physical_plan::DisplayFormatType;
use std::fmt;

impl ArrayScan {
    /// Writes what is read: the array, fields, cells, partitions.
    pub(super) fn show(
        &self,
        format: DisplayFormatType,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let (sep, end) = match format {
            DisplayFormatType::TreeRender => ("\n", "\n"),
            DisplayFormatType::Default | DisplayFormatType::Verbose => (", ", ""),
        };
        write!(f, "array={}{sep}columns=[{names}]", self.array.uri())?;
        match &self.selection {
            Selection::Nothing => write!(f, "{sep}nothing is selected")?,
            Selection::Cells {
                subarray,
                condition,
            } => {
                let text = selection::show(subarray, self.array.schema());
                if !text.is_empty() {
                    write!(f, "{sep}subarray=[{text}]")?;
                }
                if let Some(condition) = condition {
                    let labels = |name: &str| self.array.enumeration(name);
                    let text = azulejo::condition::format(condition, self.array.schema(), &labels);
                    write!(f, "{sep}condition=[{}]", text.unwrap_or_default())?;
                }
            }
        }
        write!(f, "{sep}partitions={}", self.partitions)?;
        if let Some(limit) = self.limit {
            write!(f, "{sep}limit={limit}")?;
        }
        if !self.order.is_empty() {
            let name = |d: &usize| self.columns.get(*d).map_or("", |c| c.name());
            let order = self.order.iter().map(name).collect::<Vec<_>>().join(", ");
            write!(f, "{sep}order=[{order}]")?;
        }
        if self.backwards {
            write!(f, "{sep}backwards")?;
        }
        if !self.dynamic.is_empty() {
            let filters = self.dynamic.iter().map(ToString::to_string);
            write!(
                f,
                "{sep}dynamic=[{}]",
                filters.collect::<Vec<_>>().join(", ")
            )?;
        }
        f.write_str(end)
    }
}
