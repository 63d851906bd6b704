//! Answers that differ and are right, by the place where they stand.

use std::path::Path;

/// Why an answer may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Text in arrays is of another Arrow type, which the query names.
    Types,
    /// The query has no `ORDER BY`.
    Order,
}

/// By file and line. A query that is not named here must answer as over tables in memory.
const KNOWN: [(&str, u32, Why); 13] = [
    ("aggregate_any_value.slt", 44, Why::Types),
    // What is made of these windows' rows is made in parallel, where nobody knows that they are few.
    ("array_agg_sliding_window.slt", 190, Why::Order),
    ("array_agg_sliding_window.slt", 202, Why::Order),
    ("array_agg_sliding_window.slt", 222, Why::Order),
    ("array_agg_sliding_window.slt", 238, Why::Order),
    ("array_agg_sliding_window.slt", 254, Why::Order),
    ("array_agg_sliding_window.slt", 275, Why::Order),
    ("array_agg_sliding_window.slt", 293, Why::Order),
    ("array_agg_sliding_window.slt", 318, Why::Order),
    ("array_agg_sliding_window.slt", 342, Why::Order),
    ("sort_merge_join.slt", 920, Why::Order),
    ("sort_merge_join.slt", 927, Why::Order),
    ("string/string_view.slt", 1326, Why::Types),
];

/// Why the query of a line may answer otherwise, if that is all that its difference shows: even such
/// a query must have the rows that it should, but for their order or the types' names.
pub fn reason(file: &Path, line: u32, error: &str) -> Option<Why> {
    let of_line = KNOWN
        .iter()
        .find(|(name, known, _)| Path::new(name) == file && *known == line);
    let why = of_line.map(|(.., why)| *why)?;
    (side(error, '-', why)? == side(error, '+', why)?).then_some(why)
}

/// The rows of one side of a difference.
fn side(error: &str, sign: char, why: Why) -> Option<Vec<String>> {
    let (_, rows) = error.split_once("[Diff] (-expected|+actual)\n")?;
    let rows = rows.lines().filter_map(|line| line.strip_prefix(sign));
    let mut rows: Vec<String> = match why {
        Why::Order => rows.map(str::to_owned).collect(),
        Why::Types => rows.map(plain).collect(),
    };
    rows.sort();
    Some(rows).filter(|rows| !rows.is_empty())
}

/// A row with one name for all types of text.
fn plain(row: &str) -> String {
    ["LargeUtf8", "Utf8View"]
        .iter()
        .fold(row.to_owned(), |row, name| row.replace(name, "Utf8"))
        .replace("Dictionary(Int32, Utf8)", "Utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_query_may_not_answer_anything() {
        let (types, order) = (Path::new("describe.slt"), Path::new("sort_merge_join.slt"));
        let diff = |rows: &str| format!("[SQL] x\n[Diff] (-expected|+actual)\n{rows}\nat x.slt:95");
        for (file, line, rows, known) in [
            (
                types,
                95,
                "-   a Utf8View\n+   a LargeUtf8",
                Some(Why::Types),
            ),
            (types, 95, "-   a Utf8View\n+   b LargeUtf8", None),
            (types, 96, "-   a Utf8View\n+   a LargeUtf8", None),
            (order, 920, "-   1\n    2\n+   1", Some(Why::Order)),
            (order, 920, "-   1\n    2\n+   3", None),
            (order, 920, "-   1\n    2", None),
            (order, 920, "    2", None),
        ] {
            assert_eq!(reason(file, line, &diff(rows)), known, "{rows}");
        }
        assert_eq!(reason(order, 920, "took too long"), None);
    }
}
