//! Schema evolution: changes to a schema as a value, and what they make of it.

use super::{ArraySchema, Attribute, CurrentDomain, Enumeration, EnumerationRef, SchemaError};
use crate::filter::{Filter, Pipeline};
use crate::range::NdRectangle;
use crate::version::FormatVersion;

/// Changes that turn one schema of an array into the next. Applying it writes nothing: the caller
/// stores the schema that comes out, and before it the enumerations that were added or extended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SchemaEvolution {
    /// Attributes to add behind those that are there.
    pub add_attributes: Vec<Attribute>,
    /// Names of attributes to drop.
    pub drop_attributes: Vec<String>,
    /// Enumerations to add.
    pub add_enumerations: Vec<Enumeration>,
    /// Enumerations to put in the place of shorter ones of the same name, each made by
    /// [`Enumeration::extend`].
    pub extend_enumerations: Vec<Enumeration>,
    /// Names of enumerations to drop; names that the schema has not are passed by.
    pub drop_enumerations: Vec<String>,
    /// The current domain to set, which must cover the one that is set.
    pub expand_current_domain: Option<NdRectangle>,
}

impl SchemaEvolution {
    /// Makes the next schema. `enumerations` are those of `schema` that are loaded: all that are
    /// extended, and all that added attributes refer to.
    ///
    /// # Errors
    /// Changes that contradict the schema or each other, and a schema that breaks
    /// [`ArraySchema::validate`].
    pub fn apply(
        &self,
        schema: &ArraySchema,
        enumerations: &[Enumeration],
    ) -> Result<ArraySchema, SchemaError> {
        if !schema.version.has_schema_evolution() {
            return Err(SchemaError::Version {
                feature: "schema evolution",
                version: schema.version,
            });
        }
        let mut next = schema.clone();
        for enumeration in &self.add_enumerations {
            add_enumeration(&mut next, enumeration)?;
        }
        for enumeration in &self.extend_enumerations {
            extend_enumeration(&mut next, enumeration, enumerations)?;
        }
        for (i, attribute) in self.add_attributes.iter().enumerate() {
            let twice = self
                .add_attributes
                .iter()
                .take(i)
                .any(|other| other.name == attribute.name);
            if twice || self.drop_attributes.contains(&attribute.name) {
                return Err(attribute_error(
                    &attribute.name,
                    "is added and dropped, or added twice, at once",
                ));
            }
            next.attributes.push(attribute.clone());
        }
        for name in &self.drop_attributes {
            let Some(at) = next.attributes.iter().position(|a| a.name == *name) else {
                return Err(attribute_error(name, "is to be dropped and not there"));
            };
            if name.is_empty() {
                return Err(attribute_error(name, "has no name and cannot be dropped"));
            }
            next.attributes.remove(at);
        }
        for name in &self.drop_enumerations {
            if next
                .attributes
                .iter()
                .any(|a| a.enumeration.as_ref() == Some(name))
            {
                return Err(enumeration_error(name, "is in use and cannot be dropped"));
            }
            next.enumerations.retain(|e| e.name != *name);
        }
        if let Some(expanded) = &self.expand_current_domain {
            expand_current_domain(&mut next, expanded)?;
        }
        next.fill_picture_extents();
        self.check_enumerated(&next, enumerations)?;
        next.validate()?;
        if self.add_attributes.iter().any(Attribute::is_var) {
            next.check_offsets_filters()?;
        }
        if self.add_attributes.iter().any(|added| added.nullable) {
            next.check_validity_filters()?;
        }
        Ok(next)
    }

    /// Attributes must be able to hold every index of their enumeration.
    fn check_enumerated(
        &self,
        next: &ArraySchema,
        loaded: &[Enumeration],
    ) -> Result<(), SchemaError> {
        for attribute in &next.attributes {
            let Some(name) = &attribute.enumeration else {
                continue;
            };
            let changed = self
                .extend_enumerations
                .iter()
                .chain(&self.add_enumerations);
            let enumeration = changed.chain(loaded).find(|e| e.name == *name);
            let added = self.add_attributes.iter().any(|a| a.name == attribute.name);
            match enumeration {
                None if added && next.enumeration(name).is_some() => {
                    return Err(attribute_error(
                        &attribute.name,
                        "refers to an enumeration that is not loaded",
                    ));
                }
                // The greatest index is one less than the number of entries.
                Some(enumeration)
                    if attribute.datatype.max_integer()
                        < (enumeration.len() as u64).saturating_sub(1) =>
                {
                    return Err(attribute_error(
                        &attribute.name,
                        "has a type too small for the indices of its enumeration",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl ArraySchema {
    /// This schema in the version that new arrays have, with [filters that keep
    /// times](Self::with_times_filters); `None` if it is in that or a newer one and no filter changes
    /// times. Nothing else changes: every version's model has what older ones lack at its default.
    ///
    /// `zipped`: whether the array may have fragments of zipped coordinates (below version 5).
    /// Filters that only want numbers to ascend may be as old as these, for which the reference
    /// looks at them in the latest schema.
    #[must_use]
    pub fn upgraded(&self, zipped: bool) -> Option<Self> {
        let version = self.version.max(FormatVersion::CURRENT);
        let loses_times = self.check_times_filters(zipped).is_err();
        (version != self.version || loses_times).then(|| {
            let own = self.with_own_filters();
            let schema = if loses_times {
                own.with_times_filters()
            } else {
                own
            };
            Self { version, ..schema }
        })
    }

    /// What a change of this schema begins with: it in the version that new arrays have at least,
    /// with [its own filters](Self::with_own_filters).
    #[must_use]
    pub fn to_change(&self) -> Self {
        self.upgraded(true)
            .unwrap_or_else(|| self.with_own_filters())
    }

    /// The same schema, in which `coords_filters` give back the times of cells
    /// ([`Self::check_times_filters`]): those that would not become the dimensions' own, where these
    /// have none.
    #[must_use]
    pub fn with_times_filters(self) -> Self {
        if self.check_times_filters(false).is_ok() {
            return self;
        }
        Self {
            coords_filters: Pipeline {
                filters: vec![Filter::Zstd { level: -1 }],
                ..Pipeline::default()
            },
            ..self.with_own_filters()
        }
    }

    /// The same schema, in which dimensions that took their filters from `coords_filters` have them
    /// as their own. That is how the reference stores a schema that it has read; to readers it
    /// makes no difference.
    #[must_use]
    pub fn with_own_filters(&self) -> Self {
        let mut schema = self.clone();
        if schema.version.has_separate_dimensions() {
            for dimension in &mut schema.domain.dimensions {
                if dimension.filters.filters.is_empty() {
                    dimension.filters.clone_from(&schema.coords_filters);
                }
            }
        }
        schema
    }
}

fn add_enumeration(next: &mut ArraySchema, enumeration: &Enumeration) -> Result<(), SchemaError> {
    enumeration.check()?;
    if next.enumeration(&enumeration.name).is_some() {
        return Err(enumeration_error(
            &enumeration.name,
            "is to be added and already there",
        ));
    }
    let (name, file_name) = (enumeration.name.clone(), enumeration.file_name.clone());
    next.enumerations.push(EnumerationRef { name, file_name });
    Ok(())
}

fn extend_enumeration(
    next: &mut ArraySchema,
    enumeration: &Enumeration,
    loaded: &[Enumeration],
) -> Result<(), SchemaError> {
    enumeration.check()?;
    let error = |reason| Err(enumeration_error(&enumeration.name, reason));
    if next
        .enumerations
        .iter()
        .any(|e| e.file_name == enumeration.file_name)
    {
        return error("is extended under a file name that is taken");
    }
    let Some(place) = next
        .enumerations
        .iter_mut()
        .find(|e| e.name == enumeration.name)
    else {
        return error("is to be extended and not there");
    };
    let Some(old) = loaded
        .iter()
        .find(|e| e.name == enumeration.name && e.file_name == place.file_name)
    else {
        return error("is to be extended and not loaded");
    };
    if !enumeration.is_extension_of(old) {
        return error("does not begin with the values that it is to extend");
    }
    place.file_name.clone_from(&enumeration.file_name);
    Ok(())
}

fn expand_current_domain(
    next: &mut ArraySchema,
    expanded: &NdRectangle,
) -> Result<(), SchemaError> {
    let error = |reason: &str| {
        Err(SchemaError::CurrentDomain {
            reason: reason.to_owned(),
        })
    };
    if expanded.ranges.len() != next.domain.ndim() {
        return error("has not one range for each dimension");
    }
    if let Some(ranges) = next.current_domain.ranges() {
        let covered = (next.domain.dimensions.iter())
            .zip(ranges.iter().zip(&expanded.ranges))
            .all(|(dimension, (old, new))| new.as_ref().contains(old.as_ref(), dimension.datatype));
        if !covered {
            return error("can only be expanded");
        }
    }
    next.current_domain = CurrentDomain::NdRectangle(expanded.clone());
    Ok(())
}

fn attribute_error(name: &str, reason: &str) -> SchemaError {
    SchemaError::Attribute {
        name: name.to_owned(),
        reason: reason.to_owned(),
    }
}

fn enumeration_error(name: &str, reason: &'static str) -> SchemaError {
    SchemaError::Enumeration {
        name: name.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{CellValNum, Datatype};
    use crate::range::Range;
    use crate::schema::{ArrayType, Dimension, Domain, FieldIndex, Layout};

    fn schema() -> (ArraySchema, Vec<Enumeration>) {
        let words =
            Enumeration::of_strings("words", Datatype::StringUtf8, false, ["a", "b"]).unwrap();
        let (name, file_name) = (words.name.clone(), words.file_name.clone());
        let mut word = Attribute::new("word", Datatype::Int8, CellValNum::ONE);
        word.enumeration = Some("words".to_owned());
        let d = Dimension {
            name: "d".to_owned(),
            datatype: Datatype::Int32,
            cell_val_num: CellValNum::ONE,
            filters: Pipeline::default(),
            domain: Some(Range::of(0i32, 999)),
            tile_extent: Some(10i32.to_le_bytes().to_vec()),
        };
        let schema = ArraySchema {
            version: FormatVersion::CURRENT,
            array_type: ArrayType::Dense,
            allows_dups: false,
            tile_order: Layout::RowMajor,
            cell_order: Layout::RowMajor,
            capacity: 1,
            coords_filters: Pipeline::default(),
            offsets_filters: Pipeline::default(),
            validity_filters: Pipeline::default(),
            domain: Domain {
                dimensions: vec![d],
            },
            attributes: vec![word, Attribute::new("x", Datatype::Int8, CellValNum::ONE)],
            dimension_labels: Vec::new(),
            enumerations: vec![EnumerationRef { name, file_name }],
            current_domain: CurrentDomain::NdRectangle(NdRectangle {
                ranges: vec![Range::of(0i32, 9)],
            }),
        };
        schema.validate().unwrap();
        (schema, vec![words])
    }

    fn refused(change: impl FnOnce(&mut SchemaEvolution, &Enumeration)) -> String {
        let (schema, loaded) = schema();
        let mut evolution = SchemaEvolution::default();
        change(&mut evolution, &loaded[0]);
        evolution.apply(&schema, &loaded).unwrap_err().to_string()
    }

    #[test]
    fn everything_at_once() {
        let (schema, loaded) = schema();
        let more = loaded[0].extend(["c"]).unwrap();
        let numbers =
            Enumeration::of_fixed("n", Datatype::Int64, CellValNum::ONE, true, vec![0; 8]).unwrap();
        let mut added = Attribute::new("y", Datatype::UInt16, CellValNum::ONE);
        added.enumeration = Some("n".to_owned());
        added.nullable = true;
        let evolution = SchemaEvolution {
            add_attributes: vec![added.clone()],
            drop_attributes: vec!["x".to_owned()],
            add_enumerations: vec![numbers],
            extend_enumerations: vec![more.clone()],
            drop_enumerations: vec!["never there".to_owned()],
            expand_current_domain: Some(NdRectangle {
                ranges: vec![Range::of(0i32, 99)],
            }),
        };
        let next = evolution.apply(&schema, &loaded).unwrap();
        assert_eq!(next.attributes[1], added);
        assert_eq!((next.attributes.len(), next.field("x")), (2, None));
        assert_eq!(next.field("y"), Some(FieldIndex::Attribute(1)));
        assert_eq!(next.enumeration("words").unwrap().file_name, more.file_name);
        assert_eq!(next.current_domain.ranges().unwrap(), [Range::of(0i32, 99)]);
        assert_eq!(ArraySchema::decode(&next.encode()).unwrap(), next);
        assert_eq!(
            SchemaEvolution::default().apply(&schema, &loaded).unwrap(),
            schema
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let x = || Attribute::new("x", Datatype::Int8, CellValNum::ONE);
        let y = || Attribute::new("y", Datatype::Int8, CellValNum::ONE);
        assert!(refused(|e, _| e.add_attributes = vec![x()]).contains("\"x\""));
        assert!(refused(|e, _| e.add_attributes = vec![y(), y()]).contains("twice"));
        assert!(refused(|e, _| e.drop_attributes = vec!["d".to_owned()]).contains("not there"));
        let both = |e: &mut SchemaEvolution, _: &Enumeration| {
            e.add_attributes = vec![x()];
            e.drop_attributes = vec!["x".to_owned()];
        };
        assert!(refused(both).contains("at once"));
        let all = vec!["x".to_owned(), "word".to_owned()];
        assert!(refused(|e, _| e.drop_attributes = all).contains("at least one attribute"));
        assert!(refused(|e, _| e.drop_enumerations = vec!["words".to_owned()]).contains("in use"));
        assert!(
            refused(|e, words| e.add_enumerations = vec![words.clone()]).contains("already there")
        );
        assert!(
            refused(|e, words| e.extend_enumerations = vec![words.clone()]).contains("file name")
        );
        let renamed = |e: &mut SchemaEvolution, words: &Enumeration| {
            e.add_enumerations = vec![Enumeration {
                name: "other".to_owned(),
                ..words.clone()
            }];
        };
        assert!(refused(renamed).contains("file of another"));
        let other =
            Enumeration::of_strings("words", Datatype::StringUtf8, false, ["b", "a", "c"]).unwrap();
        assert!(refused(|e, _| e.extend_enumerations = vec![other]).contains("begin with"));
        let unknown = Enumeration::of_strings("w", Datatype::StringUtf8, false, ["b"]).unwrap();
        assert!(refused(|e, _| e.extend_enumerations = vec![unknown]).contains("not there"));
        let (two, loaded) = schema();
        let more = |n: u8| SchemaEvolution {
            extend_enumerations: vec![loaded[0].extend((0..n).map(|i| i.to_string())).unwrap()],
            ..SchemaEvolution::default()
        };
        // With 128 entries the last index is 127.
        more(126).apply(&two, &loaded).unwrap();
        assert!(
            more(127)
                .apply(&two, &loaded)
                .unwrap_err()
                .to_string()
                .contains("too small")
        );
        for (low, high) in [(1i32, 99), (0, 8), (-1, 99), (0, 1000)] {
            let ranges = vec![Range::of(low, high)];
            assert!(
                refused(|e, _| e.expand_current_domain = Some(NdRectangle { ranges }))
                    .contains("domain")
            );
        }
        let (mut old, loaded) = schema();
        old.version = FormatVersion::new(9, "test").unwrap();
        assert!(matches!(
            SchemaEvolution::default().apply(&old, &loaded),
            Err(SchemaError::Version { .. })
        ));
    }
}
