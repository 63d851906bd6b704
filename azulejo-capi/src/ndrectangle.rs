//! `tiledb_ndrectangle_t` and `tiledb_current_domain_t`.

use crate::boundary::{In, InOut, Kind, Out, Pointer, Ptr, Text, capi};
use crate::domain::DomainHandle;
use crate::enums::datatype_id;
use crate::error::{Failure, Result};
use crate::strings::{Keep, StringHandle, lock};
use azulejo_format::range::compare;
use azulejo_format::schema::{CurrentDomain, Dimension, Domain};
use azulejo_format::{Datatype, NdRectangle, Range};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

/// `tiledb_range_t`: an inclusive range of one dimension.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CRange {
    min: Pointer,
    min_size: u64,
    max: Pointer,
    max_size: u64,
}

/// `tiledb_ndrectangle_t`; copies of the handle share it.
#[derive(Debug, Clone)]
pub struct RectangleHandle {
    domain: Domain,
    ranges: Arc<Mutex<Vec<Option<Range>>>>,
    keep: Arc<Keep>,
}

impl Kind for RectangleHandle {
    const NAME: &'static str = "ndrectangle";
}

/// `tiledb_current_domain_t`.
#[derive(Debug, Default)]
pub struct CurrentDomainHandle {
    rectangle: Mutex<Option<RectangleHandle>>,
}

impl Kind for CurrentDomainHandle {
    const NAME: &'static str = "current_domain";
}

impl RectangleHandle {
    fn new(domain: Domain, ranges: Vec<Option<Range>>) -> Self {
        Self {
            domain,
            ranges: Arc::new(Mutex::new(ranges)),
            keep: Arc::default(),
        }
    }

    fn dimension(&self, index: usize) -> Result<&Dimension> {
        let count = self.domain.ndim();
        self.domain.dimensions.get(index).ok_or_else(|| {
            Failure::new(format!(
                "there is no dimension {index} in an NDRectangle of {count} dimensions"
            ))
        })
    }

    fn index_of(&self, name: &str) -> Result<usize> {
        let found = self.domain.index_of(name);
        found.ok_or_else(|| {
            Failure::new(format!("there is no dimension '{name}' in the NDRectangle"))
        })
    }

    fn get(&self, index: usize) -> Result<CRange> {
        self.dimension(index)?;
        let ranges = lock(&self.ranges);
        let Some(Some(range)) = ranges.get(index) else {
            return Err(Failure::new(format!(
                "the NDRectangle has no range for dimension {index} yet"
            )));
        };
        Ok(CRange {
            min: self.keep.bytes(&range.start),
            min_size: range.start.len() as u64,
            max: self.keep.bytes(&range.end),
            max_size: range.end.len() as u64,
        })
    }

    fn set(&self, index: usize, range: &InOut<CRange>) -> Result<()> {
        let dimension = self.dimension(index)?;
        let given = range.get()?;
        let bytes = |pointer: Pointer, size: u64| -> Result<Vec<u8>> {
            Ok(crate::boundary::bytes_of(pointer).get64(size)?.to_vec())
        };
        let range = Range::new(
            bytes(given.min, given.min_size)?,
            bytes(given.max, given.max_size)?,
        );
        if let Some(size) = dimension.coord_size()
            && (range.start.len() != size || range.end.len() != size)
        {
            return Err(Failure::new(format!(
                "a range of dimension '{}' needs bounds of {size} bytes",
                dimension.name
            )));
        }
        if compare(dimension.datatype, &range.start, &range.end) == Ordering::Greater {
            return Err(Failure::new(format!(
                "a range of dimension '{}' ends before it starts",
                dimension.name
            )));
        }
        if let Some(slot) = lock(&self.ranges).get_mut(index) {
            *slot = Some(range);
        }
        Ok(())
    }

    /// The rectangle; an error if a range is missing.
    fn rectangle(&self) -> Result<NdRectangle> {
        let ranges: Option<Vec<Range>> = lock(&self.ranges).iter().cloned().collect();
        let ranges = ranges
            .ok_or_else(|| Failure::new("the NDRectangle has no range for some dimension yet"))?;
        Ok(NdRectangle { ranges })
    }
}

impl CurrentDomainHandle {
    /// A handle on the current domain of an array with this domain.
    pub fn new(domain: &Domain, current: &CurrentDomain) -> Self {
        let rectangle = current.ranges().map(|ranges| {
            RectangleHandle::new(domain.clone(), ranges.iter().cloned().map(Some).collect())
        });
        Self {
            rectangle: Mutex::new(rectangle),
        }
    }

    /// The types of its dimensions; none if it is empty.
    pub fn types(&self) -> Vec<Datatype> {
        let rectangle = lock(&self.rectangle);
        let dimensions = rectangle
            .iter()
            .flat_map(|handle| &handle.domain.dimensions);
        dimensions.map(|dimension| dimension.datatype).collect()
    }

    /// The current domain as it is now.
    pub fn current_domain(&self) -> Result<CurrentDomain> {
        match &*lock(&self.rectangle) {
            None => Ok(CurrentDomain::Empty),
            Some(handle) => Ok(CurrentDomain::NdRectangle(handle.rectangle()?)),
        }
    }
}

capi! {
    /// A rectangle over the dimensions of a domain, without ranges yet.
    fn tiledb_ndrectangle_alloc(ctx, domain: In<DomainHandle>, ndr: Out<Ptr<RectangleHandle>>) {
        let domain = domain.get()?.domain();
        if domain.dimensions.is_empty() {
            return Err("The domain used to create the NDRectangle has no dimensions.".into());
        }
        let ranges = vec![None; domain.ndim()];
        ndr.give(RectangleHandle::new(domain, ranges))?;
    }

    /// The range of a dimension by its name; the bounds live as long as the handle.
    fn tiledb_ndrectangle_get_range_from_name(ctx, ndr: In<RectangleHandle>, name: Text, range: Out<CRange>) {
        let ndr = ndr.get()?;
        range.set(ndr.get(ndr.index_of(name.get()?)?)?)?;
    }

    /// The range of a dimension; the bounds live as long as the handle.
    fn tiledb_ndrectangle_get_range(ctx, ndr: In<RectangleHandle>, index: u32, range: Out<CRange>) {
        range.set(ndr.get()?.get(index as usize)?)?;
    }

    /// Sets the range of a dimension by its name; the bounds are copied.
    fn tiledb_ndrectangle_set_range_for_name(ctx, ndr: In<RectangleHandle>, name: Text, range: InOut<CRange>) {
        let ndr = ndr.get()?;
        ndr.set(ndr.index_of(name.get()?)?, &range)?;
    }

    /// Sets the range of a dimension; the bounds are copied.
    fn tiledb_ndrectangle_set_range(ctx, ndr: In<RectangleHandle>, index: u32, range: InOut<CRange>) {
        ndr.get()?.set(index as usize, &range)?;
    }

    /// The type of a dimension.
    fn tiledb_ndrectangle_get_dtype(ctx, ndr: In<RectangleHandle>, index: u32, id: Out<i32>) {
        id.set(datatype_id(ndr.get()?.dimension(index as usize)?.datatype))?;
    }

    /// The type of a dimension by its name.
    fn tiledb_ndrectangle_get_dtype_from_name(ctx, ndr: In<RectangleHandle>, name: Text, id: Out<i32>) {
        let ndr = ndr.get()?;
        id.set(datatype_id(ndr.dimension(ndr.index_of(name.get()?)?)?.datatype))?;
    }

    /// The number of dimensions.
    fn tiledb_ndrectangle_get_dim_num(ctx, ndr: In<RectangleHandle>, ndim: Out<u32>) {
        ndim.set(u32::try_from(ndr.get()?.domain.ndim()).unwrap_or(u32::MAX))?;
    }

    /// The rectangle as text for people.
    fn tiledb_ndrectangle_dump_str(ctx, ndr: In<RectangleHandle>, out: Out<Ptr<StringHandle>>) {
        let ndr = ndr.get()?;
        let ranges: Vec<Range> = lock(&ndr.ranges).iter().map(|r| r.clone().unwrap_or_default()).collect();
        out.give(StringHandle::new(crate::dump::rectangle(&ndr.domain, &ranges)))?;
    }

    /// An empty current domain.
    fn tiledb_current_domain_create(ctx, current: Out<Ptr<CurrentDomainHandle>>) {
        current.give(CurrentDomainHandle::default())?;
    }

    /// Sets the rectangle; once only.
    fn tiledb_current_domain_set_ndrectangle(ctx, current: In<CurrentDomainHandle>, ndr: In<RectangleHandle>) {
        let mut rectangle = lock(&current.get()?.rectangle);
        if rectangle.is_some() {
            return Err("Setting a rectangle on a non-empty CurrentDomain object is not allowed.".into());
        }
        *rectangle = Some(ndr.get()?.clone());
    }

    /// The rectangle.
    fn tiledb_current_domain_get_ndrectangle(ctx, current: In<CurrentDomainHandle>, ndr: Out<Ptr<RectangleHandle>>) {
        match &*lock(&current.get()?.rectangle) {
            Some(found) => ndr.give(found.clone())?,
            None => return Err("the current domain is empty".into()),
        }
    }

    /// Whether nothing is set.
    fn tiledb_current_domain_get_is_empty(ctx, current: In<CurrentDomainHandle>, is_empty: Out<u32>) {
        is_empty.set(lock(&current.get()?.rectangle).is_none().into())?;
    }

    /// The kind of the current domain; an error if it is empty.
    fn tiledb_current_domain_get_type(ctx, current: In<CurrentDomainHandle>, id: Out<i32>) {
        if lock(&current.get()?.rectangle).is_none() {
            return Err("An empty CurrentDomain doesn't have a type.".into());
        }
        id.set(0)?;
    }

    /// The current domain as text for people.
    fn tiledb_current_domain_dump_str(ctx, current: In<CurrentDomainHandle>, out: Out<Ptr<StringHandle>>) {
        let current = current.get()?;
        let domain = lock(&current.rectangle).as_ref().map(|r| r.domain.clone()).unwrap_or_default();
        let text = crate::dump::current_domain(&domain, &current.current_domain()?);
        out.give(StringHandle::new(text))?;
    }
}

/// Frees a rectangle.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_ndrectangle_free(ndr: InOut<Ptr<RectangleHandle>>) -> i32 {
    ndr.free();
    crate::boundary::OK
}

/// Frees a current domain.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_current_domain_free(current: InOut<Ptr<CurrentDomainHandle>>) -> i32 {
    current.free();
    crate::boundary::OK
}
