//! `tiledb_array_schema_evolution_t`.

use crate::attribute::AttributeHandle;
use crate::boundary::{In, Kind, Out, Ptr, Text, capi, capi_free};
use crate::enumeration::EnumerationHandle;
use crate::error::Failure;
use crate::ndrectangle::CurrentDomainHandle;
use crate::strings::lock;
use azulejo_format::Datatype;
use azulejo_format::schema::{CurrentDomain, Enumeration, SchemaEvolution};
use std::sync::Mutex;

/// `tiledb_array_schema_evolution_t`.
#[derive(Debug, Default)]
pub struct EvolutionHandle {
    state: Mutex<(SchemaEvolution, Option<(u64, u64)>)>,
    /// The types of the dimensions of the current domain, which messages say.
    types: Mutex<Vec<Datatype>>,
}

impl Kind for EvolutionHandle {
    const NAME: &'static str = "array_schema_evolution";
}

impl EvolutionHandle {
    /// The changes, and the time that they are to have.
    pub fn evolution(&self) -> (SchemaEvolution, Option<(u64, u64)>) {
        lock(&self.state).clone()
    }

    /// The types of the dimensions of the current domain that is to be set.
    pub fn current_domain_types(&self) -> Vec<Datatype> {
        lock(&self.types).clone()
    }

    /// Changes, the time that they are to have, and the types of the current domain's dimensions.
    pub fn of(timed: (SchemaEvolution, Option<(u64, u64)>), types: Vec<Datatype>) -> Self {
        Self {
            state: Mutex::new(timed),
            types: Mutex::new(types),
        }
    }
}

capi! {
    /// No changes yet.
    fn tiledb_array_schema_evolution_alloc(ctx, evolution: Out<Ptr<EvolutionHandle>>) {
        evolution.give(EvolutionHandle::default())?;
    }

    /// Adds an attribute: a copy.
    fn tiledb_array_schema_evolution_add_attribute(ctx, evolution: In<EvolutionHandle>, attr: In<AttributeHandle>) {
        let attribute = attr.get()?.attribute();
        let mut state = lock(&evolution.get()?.state);
        if state.0.add_attributes.iter().any(|a| a.name == attribute.name) {
            return Err(Failure::new(format!(
                "Cannot add attribute '{}'; Input attribute name is already there", attribute.name
            )));
        }
        // An attribute that was dropped before comes back in its new shape.
        state.0.drop_attributes.retain(|name| *name != attribute.name);
        state.0.add_attributes.push(attribute);
    }

    /// Drops an attribute.
    fn tiledb_array_schema_evolution_drop_attribute(ctx, evolution: In<EvolutionHandle>, name: Text) {
        let name = name.get()?.to_owned();
        let mut state = lock(&evolution.get()?.state);
        state.0.add_attributes.retain(|a| a.name != name);
        if !state.0.drop_attributes.contains(&name) {
            state.0.drop_attributes.push(name);
        }
    }

    /// Adds an enumeration.
    fn tiledb_array_schema_evolution_add_enumeration(ctx, evolution: In<EvolutionHandle>, enumeration: In<EnumerationHandle>) {
        let enumeration = enumeration.get()?.enumeration();
        let mut state = lock(&evolution.get()?.state);
        if state.0.add_enumerations.iter().any(|e| e.name == enumeration.name) {
            return Err(Failure::new(format!(
                "Cannot add enumeration; Input enumeration name '{}' is already there", enumeration.name
            )));
        }
        state.0.add_enumerations.push(Enumeration::clone(enumeration));
    }

    /// Puts a longer enumeration in the place of one that the array has.
    fn tiledb_array_schema_evolution_extend_enumeration(
        ctx, evolution: In<EvolutionHandle>, enumeration: In<EnumerationHandle>
    ) {
        let enumeration = enumeration.get()?.enumeration();
        let mut state = lock(&evolution.get()?.state);
        if state.0.extend_enumerations.iter().any(|e| e.name == enumeration.name) {
            return Err(Failure::new(format!(
                "Cannot extend enumeration; '{}' is extended already", enumeration.name
            )));
        }
        state.0.extend_enumerations.push(Enumeration::clone(enumeration));
    }

    /// Drops an enumeration.
    fn tiledb_array_schema_evolution_drop_enumeration(ctx, evolution: In<EvolutionHandle>, name: Text) {
        let name = name.get()?.to_owned();
        let mut state = lock(&evolution.get()?.state);
        state.0.add_enumerations.retain(|e| e.name != name);
        if !state.0.drop_enumerations.contains(&name) {
            state.0.drop_enumerations.push(name);
        }
    }

    /// Sets a larger current domain.
    fn tiledb_array_schema_evolution_expand_current_domain(
        ctx, evolution: In<EvolutionHandle>, current: In<CurrentDomainHandle>
    ) {
        match current.get()?.current_domain()? {
            CurrentDomain::Empty => return Err("Cannot expand the array current domain to an empty one.".into()),
            CurrentDomain::NdRectangle(rectangle) => {
                let evolution = evolution.get()?;
                *lock(&evolution.types) = current.get()?.types();
                lock(&evolution.state).0.expand_current_domain = Some(rectangle);
            }
        }
    }

    /// The time in milliseconds that the new schema is to have.
    fn tiledb_array_schema_evolution_set_timestamp_range(ctx, evolution: In<EvolutionHandle>, lo: u64, hi: u64) {
        if lo != hi {
            return Err(Failure::new(format!("Cannot set timestamp range; first element {lo} and second {hi} are not equal")));
        }
        lock(&evolution.get()?.state).1 = Some((lo, hi));
    }
}

capi_free! {
    fn tiledb_array_schema_evolution_free(EvolutionHandle);
}
