//! Random schemas and cells, all from one seed.

use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::datatype::{Datatype, Physical};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{Attribute, Dimension, Enumeration, Layout, NewArray};
use azulejo::format::{ArraySchema, CellValNum, FormatVersion, Range};
use std::collections::BTreeMap;

/// Numbers that look random and follow from a seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64: every seed is a good one.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to and without `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// With a probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn between(&mut self, low: i128, high: i128) -> i128 {
        low + i128::from(self.below(u64::try_from(high - low + 1).unwrap_or(u64::MAX)))
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Whole numbers that lie in a physical type.
fn limits(physical: Physical) -> (i128, i128) {
    match physical {
        Physical::I8 => (i8::MIN.into(), i8::MAX.into()),
        Physical::U8 => (0, u8::MAX.into()),
        Physical::I16 => (i16::MIN.into(), i16::MAX.into()),
        Physical::U16 => (0, u16::MAX.into()),
        Physical::I32 => (i32::MIN.into(), i32::MAX.into()),
        Physical::U32 => (0, u32::MAX.into()),
        Physical::I64 => (i64::MIN.into(), i64::MAX.into()),
        Physical::U64 => (0, u64::MAX.into()),
        Physical::F32 | Physical::F64 => (-4000, 4000),
    }
}

/// A number as stored.
pub fn bytes_of(datatype: Datatype, value: i128) -> Vec<u8> {
    match datatype.physical() {
        Physical::F32 => (value as f32).to_le_bytes().to_vec(),
        Physical::F64 => (value as f64).to_le_bytes().to_vec(),
        _ => value.to_le_bytes()[..datatype.size()].to_vec(),
    }
}

/// The whole number that is stored.
pub fn number(datatype: Datatype, bytes: &[u8]) -> i128 {
    let signed = limits(datatype.physical()).0 < 0;
    let negative = signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn is_text(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char
    )
}

fn compressor(rng: &mut Rng) -> Filter {
    let level = if rng.chance(50) {
        -1
    } else {
        1 + rng.below(6) as i32
    };
    match rng.below(4) {
        0 => Filter::Gzip { level },
        1 => Filter::Zstd { level },
        2 => Filter::Lz4 { level },
        _ => Filter::Bzip2 { level },
    }
}

/// A pipeline that the type allows; every filter can occur.
fn filters(rng: &mut Rng, datatype: Datatype, num: CellValNum) -> Pipeline {
    let mut out = Vec::new();
    let real = matches!(datatype, Datatype::Float32 | Datatype::Float64);
    let (level, reinterpret) = (-1, None);
    if num.is_var()
        && matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8)
        && rng.chance(40)
    {
        out.push(if rng.chance(50) {
            Filter::Rle { level }
        } else {
            Filter::Dictionary { level }
        });
    } else if !num.is_var() && real && rng.chance(25) {
        out.push(Filter::FloatScale {
            scale: 0.25,
            offset: 1.0,
            byte_width: 8,
        });
        if rng.chance(50) {
            out.push(
                rng.pick(&[
                    Filter::Delta { level, reinterpret },
                    Filter::Xor,
                    Filter::Byteshuffle,
                ])
                .clone(),
            );
        }
    } else if !is_text(datatype) && !real {
        match rng.below(7) {
            0 => out.push(Filter::BitWidthReduction {
                max_window: *rng.pick(&[64, 256, 1024]),
            }),
            1 => out.push(Filter::DoubleDelta { level, reinterpret }),
            2 => out.push(Filter::Delta { level, reinterpret }),
            3 => out.push(Filter::Xor),
            4 if num == CellValNum::ONE => out.push(Filter::Rle { level }),
            _ => {}
        }
    } else if real && rng.chance(30) {
        out.push(Filter::Xor);
    }
    if rng.chance(40) {
        out.push(if rng.chance(50) {
            Filter::Byteshuffle
        } else {
            Filter::Bitshuffle
        });
    }
    // The reference cannot read an empty tile that went through other filters and then a checksum
    // or encryption, with no compressor between.
    let other = num.is_var() && !out.is_empty();
    if rng.chance(60) || other {
        out.push(compressor(rng));
    }
    if rng.chance(20) {
        out.push(if rng.chance(50) {
            Filter::ChecksumMd5
        } else {
            Filter::ChecksumSha256
        });
    }
    Pipeline {
        filters: out,
        ..Pipeline::default()
    }
}

/// An attribute of any type that the version has.
pub fn attribute(rng: &mut Rng, name: &str) -> Attribute {
    let (datatype, num) = match rng.below(10) {
        0..3 => {
            let text = [
                Datatype::StringAscii,
                Datatype::StringUtf8,
                Datatype::Char,
                Datatype::Blob,
            ];
            (*rng.pick(&text), CellValNum::Var)
        }
        3 => (any_type(rng), CellValNum::Var),
        4 => (any_type(rng), CellValNum::Fixed(2 + rng.below(3) as u32)),
        _ => (any_type(rng), CellValNum::ONE),
    };
    let mut attribute = Attribute::new(name, datatype, num);
    if rng.chance(35) {
        attribute = attribute.nullable();
    }
    let filters = filters(rng, datatype, num);
    attribute = attribute.filters(filters);
    if rng.chance(25) && attribute.datatype != Datatype::Char {
        let fill = value(rng, &attribute);
        if !fill.is_empty() {
            attribute = attribute.fill_value(fill);
        }
    }
    attribute
}

fn any_type(rng: &mut Rng) -> Datatype {
    loop {
        let datatype = *rng.pick(&Datatype::ALL);
        if datatype != Datatype::Any {
            return datatype;
        }
    }
}

/// A value that is not null.
pub fn value(rng: &mut Rng, attribute: &Attribute) -> Vec<u8> {
    let tame = attribute
        .filters
        .filters
        .iter()
        .any(|f| matches!(f, Filter::FloatScale { .. } | Filter::DoubleDelta { .. }));
    let count = match attribute.cell_val_num {
        CellValNum::Fixed(n) => u64::from(n),
        // In run lengths of strings the reference forgets the length of the last one.
        CellValNum::Var if rng.chance(3) => rng.below(
            if matches!(attribute.filters.filters.first(), Some(Filter::Rle { .. })) {
                250
            } else {
                3000
            },
        ),
        CellValNum::Var => *rng.pick(&[0, 0, 1, 1, 2, 5, 9]),
    };
    (0..count)
        .flat_map(|_| scalar(rng, attribute.datatype, tame))
        .collect()
}

fn scalar(rng: &mut Rng, datatype: Datatype, tame: bool) -> Vec<u8> {
    if datatype.physical() == Physical::F32 || datatype.physical() == Physical::F64 {
        let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let value = if !tame && rng.chance(5) {
            *rng.pick(&special)
        } else {
            (rng.below(8000) as f64 - 4000.0) * 0.25
        };
        return match datatype.physical() {
            Physical::F32 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
    }
    match datatype {
        Datatype::Bool => vec![rng.below(2) as u8],
        _ if datatype.size() == 1 && datatype.physical() == Physical::U8
            || datatype == Datatype::Char =>
        {
            vec![*rng.pick(b"abcdxyz019 ")]
        }
        _ => {
            let (low, high) = limits(datatype.physical());
            if !tame && rng.chance(5) {
                // Not the default fill of a type, which would be told apart by nobody.
                return bytes_of(datatype, *rng.pick(&[low + 1, high - 1]));
            }
            bytes_of(datatype, rng.between(low.max(-1000), high.min(1000)))
        }
    }
}

fn dimension(rng: &mut Rng, name: &str, datatype: Datatype, dense: bool) -> Dimension {
    if datatype == Datatype::StringAscii {
        return Dimension::string(name);
    }
    let mut made = Dimension::new(name, 0i64..=1);
    made.datatype = datatype;
    let (low, high) = limits(datatype.physical());
    let extent = if dense {
        rng.between(1, 7)
    } else {
        rng.between(5, 50)
    };
    let count = if dense {
        rng.between(1, 4) * extent - rng.between(0, extent - 1)
    } else {
        rng.between(50, 110)
    };
    let count = count.max(1);
    let extent = extent.min(count);
    let start = match rng.below(6) {
        0 => low,
        1 => (high - count - 2 * extent).max(low),
        _ => rng.between(-20, 5).max(low),
    };
    made.domain = Some(Range::new(
        bytes_of(datatype, start),
        bytes_of(datatype, start + count - 1),
    ));
    made.tile_extent = Some(bytes_of(datatype, extent));
    if !dense && rng.chance(50) {
        made.filters = filters(rng, datatype, CellValNum::ONE);
        made.filters
            .filters
            .retain(|f| !matches!(f, Filter::FloatScale { .. }));
    }
    made
}

/// A schema of a version from 10 to 22, such that the reference reads what it writes itself if
/// `shared`.
pub fn schema(rng: &mut Rng, shared: bool) -> NewArray {
    loop {
        let number = if rng.chance(50) {
            22
        } else {
            10 + rng.below(13) as u32
        };
        let Ok(version) = FormatVersion::new(number, "schema") else {
            continue;
        };
        let dense = rng.chance(45);
        let mut builder = if dense {
            ArraySchema::dense()
        } else {
            ArraySchema::sparse()
        }
        .version(version);
        let integers = [
            Datatype::Int8,
            Datatype::UInt8,
            Datatype::Int16,
            Datatype::UInt16,
            Datatype::Int32,
            Datatype::UInt32,
            Datatype::Int64,
            Datatype::UInt64,
            Datatype::DateTimeDay,
            Datatype::DateTimeMilli,
            Datatype::TimeMilli,
        ];
        let others = [
            Datatype::Float32,
            Datatype::Float64,
            Datatype::StringAscii,
            Datatype::StringAscii,
        ];
        let one = *rng.pick(&integers);
        for d in 0..*rng.pick(&[1, 1, 2, 2, 2, 3]) {
            let datatype = if dense {
                one
            } else if rng.chance(40) {
                *rng.pick(&others)
            } else {
                *rng.pick(&integers)
            };
            builder = builder.dimension_with(dimension(rng, &format!("d{d}"), datatype, dense));
        }
        for a in 0..1 + rng.below(4) {
            builder = builder.attribute_with(attribute(rng, &format!("a{a}")));
        }
        if number >= 20 && rng.chance(25) {
            let labels = ["blue", "g", "red", "white"];
            let ordered = rng.chance(50);
            if let Ok(colour) =
                Enumeration::of_strings("colour", Datatype::StringAscii, ordered, labels)
            {
                let datatype = *rng.pick(&[Datatype::Int8, Datatype::UInt16, Datatype::Int32]);
                let mut attribute =
                    Attribute::new("en", datatype, CellValNum::ONE).enumerated("colour");
                if rng.chance(30) {
                    attribute = attribute.nullable();
                }
                builder = builder.enumeration(colour).attribute_with(attribute);
            }
        }
        builder = builder
            .capacity(2 + rng.below(25))
            .allows_duplicates(!dense && rng.chance(35));
        let order = [Layout::RowMajor, Layout::ColMajor];
        builder = builder.tile_order(*rng.pick(&order));
        builder = builder.cell_order(if !dense && rng.chance(20) {
            Layout::Hilbert
        } else {
            *rng.pick(&order)
        });
        let only = |filters: &[Filter]| Pipeline {
            filters: filters.to_vec(),
            ..Pipeline::default()
        };
        if rng.chance(50) {
            builder = builder.offsets_filters(only(rng.pick::<&[Filter]>(&[
                &[][..],
                &[
                    Filter::PositiveDelta { max_window: 1024 },
                    Filter::BitWidthReduction { max_window: 256 },
                ],
                &[
                    Filter::DoubleDelta {
                        level: -1,
                        reinterpret: None,
                    },
                    Filter::Bzip2 { level: -1 },
                ],
            ])));
            builder = builder.validity_filters(only(
                rng.pick::<&[Filter]>(&[&[][..], &[Filter::Byteshuffle]]),
            ));
            builder = builder.coords_filters(only(
                rng.pick::<&[Filter]>(&[&[][..], &[Filter::Gzip { level: -1 }]]),
            ));
        }
        // What a version or type does not allow is drawn anew.
        if let Ok(new) = builder.build()
            && !new
                .schema
                .attributes
                .iter()
                .any(|a| is_undefined(a, version) || (shared && is_broken(a)))
        {
            return new;
        }
    }
}

/// Run lengths of strings before the version that defines them: the reference appends tiles that it
/// cannot read.
fn is_undefined(attribute: &Attribute, version: FormatVersion) -> bool {
    let rle = attribute.cell_val_num.is_var()
        && matches!(attribute.filters.filters.first(), Some(Filter::Rle { .. }));
    rle && !match attribute.datatype {
        Datatype::StringUtf8 => version.utf8_keeps_offsets(),
        _ => version.rle_ascii_keeps_offsets(),
    }
}

/// The reference does not read its own empty tiles of differences.
fn is_broken(attribute: &Attribute) -> bool {
    let differences = |f: &Filter| matches!(f, Filter::Delta { .. } | Filter::DoubleDelta { .. });
    attribute.cell_val_num.is_var() && attribute.filters.filters.iter().any(differences)
}

/// A coordinate anywhere in a dimension's domain.
pub fn coordinate(rng: &mut Rng, dimension: &Dimension) -> Vec<u8> {
    let Some(domain) = &dimension.domain else {
        return (0..rng.below(5)).map(|_| *rng.pick(b"ACGT")).collect();
    };
    match dimension.datatype.physical() {
        Physical::F32 | Physical::F64 => {
            let (low, high) = match dimension.datatype {
                Datatype::Float32 => {
                    let (a, b) = domain.bounds::<f32>();
                    (f64::from(a), f64::from(b))
                }
                _ => domain.bounds::<f64>(),
            };
            let value = low + (high - low) * (rng.below(257) as f64 / 256.0);
            match dimension.datatype {
                Datatype::Float32 => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            }
        }
        _ => {
            let (low, high) = (
                number(dimension.datatype, &domain.start),
                number(dimension.datatype, &domain.end),
            );
            // Domains of old arrays can be huge: stay where cells meet.
            let span = (high - low).min(200);
            bytes_of(dimension.datatype, rng.between(low, low + span))
        }
    }
}

/// Random cells of all attributes; `labels` is how many entries each enumeration has.
pub fn columns(
    rng: &mut Rng,
    schema: &ArraySchema,
    cells: usize,
    labels: u64,
) -> BTreeMap<String, Vec<Option<Vec<u8>>>> {
    let mut out = BTreeMap::new();
    for attribute in &schema.attributes {
        let cell = |rng: &mut Rng| {
            if attribute.nullable && rng.chance(30) {
                return None;
            }
            Some(match attribute.enumeration {
                Some(_) => bytes_of(attribute.datatype, i128::from(rng.below(labels))),
                None => value(rng, attribute),
            })
        };
        out.insert(
            attribute.name.clone(),
            (0..cells).map(|_| cell(rng)).collect(),
        );
    }
    out
}

/// Columns for the writer.
pub fn column_set(
    types: &[ColumnType],
    columns: &BTreeMap<String, Vec<Option<Vec<u8>>>>,
) -> Result<ColumnSet, String> {
    let column = |ty: &ColumnType| {
        let mut builder = ColumnBuilder::new(ty.clone());
        let zero = vec![0; if ty.is_var() { 0 } else { ty.cell_size() }];
        for cell in columns.get(&*ty.name).into_iter().flatten() {
            builder.append_cell(cell.as_deref().unwrap_or(&zero), cell.is_some());
        }
        builder.finish()
    };
    ColumnSet::of(types.iter().map(column)).map_err(|e| e.to_string())
}
