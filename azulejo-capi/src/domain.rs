//! `tiledb_domain_t`.

use crate::boundary::{In, Kind, Opaque, Out, Ptr, Text, capi, capi_free};
use crate::dimension::{DimensionHandle, SharedDimension};
use crate::enums::datatype_id;
use crate::error::Failure;
use crate::strings::{StringHandle, lock};
use azulejo_format::schema::Domain;
use std::sync::{Arc, Mutex};

/// `tiledb_domain_t`.
#[derive(Debug)]
pub struct DomainHandle {
    dimensions: Mutex<Vec<SharedDimension>>,
}

impl Kind for DomainHandle {
    const NAME: &'static str = "domain";
}

impl DomainHandle {
    /// A handle on a copy of a domain.
    pub fn new(domain: Domain) -> Self {
        let shared = domain
            .dimensions
            .into_iter()
            .map(|dimension| Arc::new(Mutex::new(dimension)));
        Self {
            dimensions: Mutex::new(shared.collect()),
        }
    }

    /// The domain as it is now.
    pub fn domain(&self) -> Domain {
        Domain {
            dimensions: self
                .shared()
                .iter()
                .map(|dimension| lock(dimension).clone())
                .collect(),
        }
    }

    /// A handle on a domain of dimensions that others have too.
    pub fn of(dimensions: Vec<SharedDimension>) -> Self {
        Self {
            dimensions: Mutex::new(dimensions),
        }
    }

    /// The dimensions themselves.
    pub fn shared(&self) -> Vec<SharedDimension> {
        lock(&self.dimensions).clone()
    }
}

capi! {
    /// A domain without dimensions.
    fn tiledb_domain_alloc(ctx, domain: Out<Ptr<DomainHandle>>) {
        domain.give(DomainHandle::new(Domain::default()))?;
    }

    /// The type of all dimensions; an error if they differ.
    fn tiledb_domain_get_type(ctx, domain: In<DomainHandle>, id: Out<i32>) {
        let domain = domain.get()?.domain();
        let Some(first) = domain.dimensions.first() else { return Err("the domain has no dimensions".into()) };
        if domain.dimensions.iter().any(|d| d.datatype != first.datatype) {
            return Err("Cannot get domain type; Not applicable to heterogeneous dimensions".into());
        }
        id.set(datatype_id(first.datatype))?;
    }

    /// The number of dimensions.
    fn tiledb_domain_get_ndim(ctx, domain: In<DomainHandle>, ndim: Out<u32>) {
        ndim.set(u32::try_from(domain.get()?.shared().len()).unwrap_or(u32::MAX))?;
    }

    /// Appends a dimension.
    fn tiledb_domain_add_dimension(ctx, domain: In<DomainHandle>, dim: In<DimensionHandle>) {
        let dimension = dim.get()?.shared();
        lock(&domain.get()?.dimensions).push(dimension);
    }

    /// A handle on a dimension.
    fn tiledb_domain_get_dimension_from_index(ctx, domain: In<DomainHandle>, index: u32, dim: Out<Ptr<DimensionHandle>>) {
        let dimensions = domain.get()?.shared();
        let count = dimensions.len();
        // Past the end of an empty domain the reference hands out nothing and is content.
        if count == 0 && index == 0 {
            return Ok(());
        }
        let found = dimensions.into_iter().nth(index as usize);
        let found = found.ok_or_else(|| Failure::new(format!(
            "Dimension index {index} is out of bounds: the domain has {count} dimensions"
        )))?;
        dim.give(DimensionHandle::new(found))?;
    }

    /// A handle on a dimension.
    fn tiledb_domain_get_dimension_from_name(ctx, domain: In<DomainHandle>, name: Text, dim: Out<Ptr<DimensionHandle>>) {
        let (dimensions, name) = (domain.get()?.shared(), name.get()?);
        let found = dimensions.into_iter().find(|d| lock(d).name == name);
        let found = found.ok_or_else(|| Failure::new(format!("Dimension '{name}' does not exist")))?;
        dim.give(DimensionHandle::new(found))?;
    }

    /// Whether there is a dimension of this name.
    fn tiledb_domain_has_dimension(ctx, domain: In<DomainHandle>, name: Text, has: Out<i32>) {
        has.set(domain.get()?.domain().index_of(name.get()?).is_some().into())?;
    }

    /// The domain as text for people.
    fn tiledb_domain_dump_str(ctx, domain: In<DomainHandle>, out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(crate::dump::domain(&domain.get()?.domain())))?;
    }

    /// The domain as text for people, to a `FILE*`. A name that libtiledb had until 2.29.
    fn tiledb_domain_dump(ctx, domain: In<DomainHandle>, out: Opaque) {
        out.put_text(&crate::dump::domain(&domain.get()?.domain()))?;
    }
}

capi_free! {
    fn tiledb_domain_free(DomainHandle);
}
