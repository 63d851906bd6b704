//! Format versions and what each brought: the only file that knows version numbers.
//!
//! Page: *Array Format Version History*.

use crate::error::{DecodeError, Result};

/// A format version, 1 to 23, of a schema, a fragment or a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatVersion(u32);

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident: $since:literal;)*) => {
        impl FormatVersion {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $name(self) -> bool { self.0 >= $since }
            )*
        }
    };
}

impl FormatVersion {
    /// The oldest version.
    pub const OLDEST: Self = Self(1);
    /// The newest version that can be read and written.
    pub const NEWEST: Self = Self(23);
    /// What new arrays are written in: the newest version that released TileDB reads.
    pub const CURRENT: Self = Self(22);
    /// The oldest version that can be appended to.
    pub const OLDEST_WRITABLE: Self = Self(7);

    /// Checks a version number found in (or wanted for) `what`.
    pub fn new(number: u32, what: &'static str) -> Result<Self> {
        if (Self::OLDEST.0..=Self::NEWEST.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(DecodeError::UnsupportedVersion {
                what,
                found: number,
                max: Self::NEWEST.0,
            })
        }
    }

    /// Whether arrays and fragments of this version can be written.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 >= Self::OLDEST_WRITABLE.0
    }

    /// The number as stored.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether footers of this version exist with and without an offset of fragment statistics,
    /// which are never there.
    #[must_use]
    pub const fn may_lack_fragment_stats(self) -> bool {
        self.0 == 11
    }

    /// All versions, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(Self)
    }
}

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

capabilities! {
    /// Coordinates are stored unzipped whatever the filters (v2).
    always_unzips_coords: 2;
    /// Fragment metadata has a footer, an R-tree and lazily loaded parts (v3).
    has_footer: 3;
    /// Dimensions are separate files with their own type and filters; `allows_dups`; commit files
    /// (v5).
    has_separate_dimensions: 5;
    /// Attributes store their fill value (v6).
    has_fill_value: 6;
    /// Attributes can be nullable (v7).
    has_nullable: 7;
    /// File names are percent-encoded (v8 only, see [`Self::names_files_by_index`]).
    percent_encodes_file_names: 8;
    /// Data files are named by index (v9).
    names_files_by_index: 9;
    /// Consolidated fragment metadata names fragments relative to the array (v9).
    has_relative_fragment_names: 9;
    /// Schemas live in `__schema`, fragments name theirs, the footer length is always stored (v10).
    has_schema_evolution: 10;
    /// Fragment metadata holds min, max, sum and null count of tiles (v11).
    has_tile_stats: 11;
    /// Footers say where min, max, sum and null count of the whole fragment lie; in v11 not always,
    /// and never rightly (v11).
    has_fragment_stats: 11;
    /// A cell is never split across chunks (v11).
    keeps_cells_whole: 11;
    /// Fragments, commits and consolidated metadata have folders of their own; commits end in
    /// `.wrt` (v12).
    has_subdirectories: 12;
    /// RLE on ASCII strings keeps the offsets inside the data tile (v12).
    rle_ascii_keeps_offsets: 12;
    /// Dictionary on ASCII strings keeps the offsets inside the data tile (v13).
    dictionary_ascii_keeps_offsets: 13;
    /// Consolidated fragments can hold a timestamp per cell (v14).
    has_cell_timestamps: 14;
    /// Consolidated fragments can hold delete metadata (v15).
    has_delete_metadata: 15;
    /// Fragments may count in part, by their cells' timestamps: older ones that have them are taken
    /// whole (v15).
    may_count_in_part: 15;
    /// Delete and update commits; processed conditions (v16).
    has_deletes: 16;
    /// Attributes store an order (v17).
    has_attribute_order: 17;
    /// RLE and dictionary on UTF-8 strings keep the offsets inside the data tile (v17).
    utf8_keeps_offsets: 17;
    /// Schemas hold dimension labels (v18).
    has_dimension_labels: 18;
    /// The delta filter stores a reinterpret datatype (v19).
    delta_has_reinterpret: 19;
    /// Vacuum files hold relative names (v19).
    has_relative_vacuum_names: 19;
    /// Schemas hold enumerations (v20).
    has_enumerations: 20;
    /// Double delta stores a reinterpret datatype (v20).
    double_delta_has_reinterpret: 20;
    /// Bit width reduction and positive delta work on datetime and time types (v20).
    reduces_datetimes: 20;
    /// Tile statistics of nullable fixed-size strings in dense arrays can be trusted (v21).
    trusts_dense_nullable_string_stats: 21;
    /// Schemas hold a current domain (v22).
    has_current_domain: 22;
    /// Footers hold optional sections (v23).
    has_optional_sections: 23;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_history_are_refused() {
        assert!(matches!(
            FormatVersion::new(0, "schema"),
            Err(DecodeError::UnsupportedVersion { found: 0, .. })
        ));
        assert!(matches!(
            FormatVersion::new(24, "schema"),
            Err(DecodeError::UnsupportedVersion { max: 23, .. })
        ));
        assert!(FormatVersion::new(u32::MAX, "schema").is_err());
        assert_eq!(FormatVersion::all().count(), 23);
    }
}
