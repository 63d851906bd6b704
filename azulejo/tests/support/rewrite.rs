//! Fragments written by the reference, taken apart and written again.

use azulejo::Array;
use azulejo::array::Fragment;
use azulejo::context::Location;
use azulejo::format::Datatype;
use azulejo::format::filter::{EncryptionKey, Filter, Pipeline};
use azulejo::format::fragment::{
    Field, FilePart, Footer, FragmentMetadata, LocatedFooter, SectionOffsets, StatsTrust,
    data_file_name,
};
use azulejo::format::path::FRAGMENT_METADATA_FILE;
use azulejo::format::schema::FieldIndex;
use azulejo::format::tile::{GenericTile, GenericTileHeader};
use azulejo::internal::{
    BufferPool, Cells, FragmentSink, FragmentSpec, TileGrid, TileRequest, TileView,
    WrittenFragment, load_tiles,
};
use azulejo::storage::{ReadRange, ReadRequest};
use bytes::Bytes;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

const LIMIT: u64 = 1 << 30;

/// The bytes of a fragment's metadata file.
pub fn metadata_file(fragment: &Fragment) -> Bytes {
    let path = fragment.location().path.join(FRAGMENT_METADATA_FILE);
    let request = ReadRequest {
        path,
        range: ReadRange::All,
    };
    fragment
        .location()
        .storage
        .read(&[request])
        .expect("it has metadata")
        .remove(0)
}

/// The sections of a metadata file, one behind the other: what each header says (sizes apart) and
/// the unfiltered bytes; and the footer with all offsets of sections set to 0. Two files with equal
/// parts differ in the zlib encoder only.
pub struct Parts {
    /// The sections.
    pub sections: Vec<(GenericTileHeader, Vec<u8>)>,
    /// The footer.
    pub footer: Footer,
}

/// Cuts a file where its footer says. `None` for files with other bytes between the sections, as
/// some writers left them.
pub fn parts(file: &[u8], fragment: &Fragment, key: Option<&EncryptionKey>) -> Option<Parts> {
    let schema = fragment.schema();
    let found = Footer::locate(file, file.len() as u64, fragment.version(), Some(schema))
        .expect("a footer");
    let LocatedFooter::Found { offset, bytes } = found else {
        panic!("the file is whole")
    };
    let mut footer = Footer::decode(bytes, schema, Some(offset)).expect("a footer");
    footer.sections = SectionOffsets::default();
    footer.optional_sections.clear();
    footer.offset = None;
    let mut sections = Vec::new();
    let mut at = 0;
    while at < offset as usize {
        let tile = GenericTile::decode(&file[at..offset as usize], key, LIMIT).ok()?;
        at += tile.consumed;
        let mut header = tile.header;
        header.persisted_size = 0;
        // The reference marks sections with its own newest version, whatever the fragment's.
        header.version = fragment.version();
        sections.push((header, tile.data));
    }
    Some(Parts { sections, footer })
}

/// Takes the metadata of a fragment apart and puts it together again: the same parts must come out.
pub fn metadata_round_trip(array: &Array, fragment: &Fragment) -> Result<bool, String> {
    let key = array.context().key();
    let (schema, version) = (fragment.schema(), fragment.version());
    let file = metadata_file(fragment);
    let mut metadata =
        FragmentMetadata::decode(&file, version, schema, key, LIMIT).map_err(|e| e.to_string())?;
    let again = metadata.encode(schema, key).map_err(|e| e.to_string())?;
    let decoded =
        FragmentMetadata::decode(&again, version, schema, key, LIMIT).map_err(|e| e.to_string())?;
    if decoded != metadata {
        return Err("what was encoded decodes to something else".into());
    }
    let Some(expected) = parts(&file, fragment, key) else {
        return Ok(false);
    };
    let found = parts(&again, fragment, key).ok_or("other bytes between sections")?;
    compare(&expected, &found).map(|()| true)
}

/// The first difference.
pub fn compare(expected: &Parts, found: &Parts) -> Result<(), String> {
    if expected.footer != found.footer {
        return Err(format!(
            "footer {:?} instead of {:?}",
            found.footer, expected.footer
        ));
    }
    for (i, (e, f)) in expected.sections.iter().zip(&found.sections).enumerate() {
        if e != f {
            return Err(format!("section {i}: {f:?} instead of {e:?}"));
        }
    }
    let (e, f) = (expected.sections.len(), found.sections.len());
    if e == f {
        Ok(())
    } else {
        Err(format!("{f} sections instead of {e}"))
    }
}

/// Which cells of a dense tile lie in the box (offsets, first and last) of its fragment; `None` if
/// all do.
fn written(grid: &TileGrid, bounds: &[(u64, u64)], tile: &[u64]) -> Option<Vec<Range<u64>>> {
    let inside: Vec<Range<u64>> = (0..grid.ndim())
        .map(|d| {
            let low = tile[d] * grid.extents()[d];
            let high = low + grid.extents()[d];
            bounds[d].0.clamp(low, high) - low..(bounds[d].1 + 1).clamp(low, high) - low
        })
        .collect();
    if inside
        .iter()
        .zip(grid.extents())
        .all(|(range, extent)| *range == (0..*extent))
    {
        return None;
    }
    let mut ranges: Vec<Range<u64>> = vec![0..0];
    for (i, d) in grid.cell_order().iter().copied().enumerate() {
        let fastest = i + 1 == grid.ndim();
        let stride = grid.cell_strides()[d];
        ranges = ranges
            .iter()
            .flat_map(|range| {
                let start = range.start;
                let steps = if fastest {
                    vec![inside[d].start]
                } else {
                    inside[d].clone().collect()
                };
                let len = if fastest {
                    inside[d].end - inside[d].start
                } else {
                    0
                };
                steps
                    .into_iter()
                    .map(move |step| start + step * stride..start + step * stride + len)
            })
            .collect();
    }
    Some(ranges)
}

/// The coordinates of the tiles of a dense fragment, in its order.
fn tile_coordinates(grid: &TileGrid, bounds: &[(u64, u64)]) -> Vec<Vec<u64>> {
    let mut tiles = vec![vec![0; grid.ndim()]];
    for d in grid.tile_order().iter().copied() {
        let axis = &grid.axes()[d];
        let range = axis.tile_of(bounds[d].0)..=axis.tile_of(bounds[d].1);
        tiles = tiles
            .into_iter()
            .flat_map(|tile| {
                range.clone().map(move |t| {
                    let mut tile = tile.clone();
                    tile[d] = t;
                    tile
                })
            })
            .collect();
    }
    tiles
}

/// Reads a fragment tile by tile and writes it, under its name, to another array's folder; `batch`
/// tiles at a time.
pub fn copy_fragment(
    array: &Array,
    index: usize,
    to: &Location,
    batch: usize,
) -> Result<WrittenFragment, String> {
    let text = |e: azulejo::Error| e.to_string();
    let fragment = &array.fragments()[index];
    let footer = fragment.footer();
    let dense_domain = footer
        .non_empty_domain
        .clone()
        .filter(|_| fragment.is_dense());
    let conditions = fragment.processed_conditions().map_err(text)?.to_vec();
    let spec = FragmentSpec {
        location: to.clone(),
        schema: Arc::clone(fragment.schema()),
        schema_name: footer.schema_name.clone().unwrap_or_default(),
        name: fragment.timestamped_name().clone(),
        dense_domain: dense_domain.clone(),
        timestamps: footer.has_timestamps,
        delete_metadata: footer.has_delete_metadata,
        processed_conditions: conditions,
    };
    let mut sink = FragmentSink::new(array.context(), spec).map_err(text)?;
    let fields = sink.fields().to_vec();
    let mut written_cells = vec![None; fragment.tile_num() as usize];
    if let Some(domain) = &dense_domain {
        let grid = TileGrid::new(fragment.schema()).map_err(text)?;
        let bounds = grid
            .offsets_of(domain)
            .ok_or("a domain outside the array's")?;
        let tiles = tile_coordinates(&grid, &bounds);
        written_cells = tiles
            .iter()
            .map(|tile| written(&grid, &bounds, tile))
            .collect();
    }
    let pool = BufferPool::of_budget(1 << 30);
    let all: Vec<u64> = (0..fragment.tile_num()).collect();
    for tiles in all.chunks(batch) {
        let requests: Vec<TileRequest> = tiles
            .iter()
            .flat_map(|tile| {
                fields.iter().map(|field| TileRequest {
                    fragment: index,
                    field: *field,
                    tile: *tile,
                    cells: Cells::All,
                })
            })
            .collect();
        let loaded = load_tiles(array, &requests, &pool).map_err(text)?;
        let views: Vec<TileView<'_>> = loaded
            .chunks(fields.len())
            .zip(tiles)
            .map(|(fields, tile)| TileView {
                cell_num: fragment.tile_cell_num(*tile),
                fields: fields.iter().map(|tile| tile.view()).collect(),
                written: written_cells[*tile as usize].clone(),
            })
            .collect();
        sink.push(&views).map_err(text)?;
    }
    sink.finish().map_err(text)
}

fn trusted(field: Field, fragment: &Fragment) -> bool {
    let trust = StatsTrust::of(
        field,
        fragment.schema(),
        fragment.version(),
        fragment.is_dense(),
    );
    trust != StatsTrust::Untrusted
}

/// Where the metadata of a fragment and of its copy differ, apart from what the reference does not
/// know or gets wrong: the section, the field, its type.
pub fn differences(
    array: &Array,
    fragment: &Fragment,
    copy: &Fragment,
) -> Result<Vec<String>, String> {
    let key = array.context().key();
    let (schema, version) = (fragment.schema(), fragment.version());
    let decode = |file: &[u8]| {
        FragmentMetadata::decode(file, version, schema, key, LIMIT).map_err(|e| e.to_string())
    };
    let (expected, found) = (
        decode(&metadata_file(fragment))?,
        decode(&metadata_file(copy))?,
    );
    let dense = fragment.is_dense();
    // What the reference wrote of dense fragments before it left out the cells that were not
    // written.
    let early = dense && !version.has_deletes();
    let is_text = |field: Field| {
        let layout = field.layout(schema);
        layout.is_some_and(|(datatype, n)| {
            n.is_var() || datatype.is_string() || datatype == Datatype::Char
        })
    };
    let bounds_differ =
        |field: Field| early || (dense && is_text(field) && !trusted(field, fragment));
    let counts_differ = |field: Field| {
        field.is_nullable(schema)
            && (early || !StatsTrust::in_null_counts(field, schema, version, dense))
    };
    let mut differences = Vec::new();
    let mut differ = |what: &str, field: Option<Field>, e: &dyn Debug, f: &dyn Debug| {
        let (e, f) = (format!("{e:?}"), format!("{f:?}"));
        if e != f {
            let kind = field.and_then(|field| field.layout(schema));
            let nullable = field.is_some_and(|field| field.is_nullable(schema));
            differences.push(format!(
                "dense {dense} {what} {field:?} {kind:?} nullable {nullable}: {f:.300} instead of {e:.300}"
            ));
        }
    };
    let facts = |f: &Footer| {
        let Footer {
            version,
            dense,
            sparse_tile_num,
            last_tile_cell_num,
            has_timestamps,
            ..
        } = *f;
        (
            (
                version,
                dense,
                sparse_tile_num,
                last_tile_cell_num,
                has_timestamps,
                f.has_delete_metadata,
            ),
            (
                f.schema_name.clone(),
                f.non_empty_domain.clone(),
                f.slots,
                f.optional_sections.len(),
            ),
        )
    };
    differ(
        "footer",
        None,
        &facts(&expected.footer),
        &facts(&found.footer),
    );
    differ("rtree", None, &expected.rtree, &found.rtree);
    differ(
        "conditions",
        None,
        &expected.processed_conditions,
        &found.processed_conditions,
    );
    differ(
        "global order",
        None,
        &expected.global_order,
        &found.global_order,
    );
    for ((field, e), f) in expected
        .footer
        .slots
        .fields()
        .zip(&expected.fields)
        .zip(&found.fields)
    {
        let field = Some(field);
        // Where tiles lie depends on encoders; that there is an entry for each does not.
        differ("offsets", field, &e.offsets.len(), &f.offsets.len());
        differ(
            "var offsets",
            field,
            &e.var_offsets.len(),
            &f.var_offsets.len(),
        );
        differ(
            "validity offsets",
            field,
            &e.validity_offsets.len(),
            &f.validity_offsets.len(),
        );
        differ("var sizes", field, &e.var_sizes, &f.var_sizes);
        let name = field.ok_or("no field")?;
        if !bounds_differ(name) {
            differ("mins", field, &e.mins, &f.mins);
            differ("maxs", field, &e.maxs, &f.maxs);
        }
        if !early {
            differ("sums", field, &e.sums, &f.sums);
        }
        if !counts_differ(name) {
            differ("null counts", field, &e.null_counts, &f.null_counts);
        }
    }
    for ((field, e), f) in expected
        .footer
        .slots
        .fields()
        .zip(&expected.stats.fields)
        .zip(&found.stats.fields)
    {
        // The reference looks at the wrong tiles where some hold only nulls.
        let misplaced = field.is_nullable(schema) && is_text(field) && !field.is_var(schema);
        if !bounds_differ(field) && !misplaced {
            differ(
                "fragment min and max",
                Some(field),
                &(&e.min, &e.max),
                &(&f.min, &f.max),
            );
        }
        if !early {
            differ("fragment sum", Some(field), &e.sum_bits, &f.sum_bits);
        }
        if !counts_differ(field) {
            differ(
                "fragment null count",
                Some(field),
                &e.null_count,
                &f.null_count,
            );
        }
    }
    differ(
        "fragment stats",
        None,
        &expected.stats.fields.len(),
        &found.stats.fields.len(),
    );
    Ok(differences)
}

/// Compares the data files of a fragment and of its copy whose encoders are determined: how many
/// are equal, and those that are not.
pub fn compare_files(array: &Array, fragment: &Fragment, copy: &Fragment) -> (usize, Vec<String>) {
    let (mut same, mut different) = (0, Vec::new());
    // Encryption draws random numbers.
    if array.context().key().is_some() {
        return (same, different);
    }
    let (schema, version) = (fragment.schema(), fragment.version());
    let read = |fragment: &Fragment, name: &str| {
        let location = fragment.location();
        let request = ReadRequest {
            path: location.path.join(name),
            range: ReadRange::All,
        };
        location.storage.read(&[request]).expect("a data file")
    };
    // Other implementations than the reference's.
    let varies = |filters: &Pipeline| {
        filters.filters.iter().any(|f| {
            matches!(
                f,
                Filter::Gzip { .. } | Filter::Lz4 { .. } | Filter::Webp { .. }
            )
        })
    };
    for field in fragment
        .footer()
        .slots
        .fields()
        .filter(|field| fragment.stores(*field))
    {
        let filters = match field {
            Field::Attribute(i) => schema.filters_of(FieldIndex::Attribute(i)),
            Field::Dimension(i) => schema.filters_of(FieldIndex::Dimension(i)),
            _ => &schema.coords_filters,
        };
        let mut parts = vec![(FilePart::Data, filters)];
        if field.is_var(schema) {
            parts = vec![
                (FilePart::Data, &schema.offsets_filters),
                (FilePart::Var, filters),
            ];
        }
        if field.is_nullable(schema) {
            parts.push((FilePart::Validity, &schema.validity_filters));
        }
        for (part, _) in parts.into_iter().filter(|(_, filters)| !varies(filters)) {
            let name = data_file_name(field, part, schema, version).expect("a name");
            if read(fragment, &name) == read(copy, &name) {
                same += 1;
            } else {
                different.push(name);
            }
        }
    }
    (same, different)
}
