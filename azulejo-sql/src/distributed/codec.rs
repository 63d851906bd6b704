//! The plan nodes of arrays as bytes.

use super::sent_scan::SentScan;
use super::wire::{self, ScanParts};
use crate::aggregate::ArrayAggregateExec;
use crate::error::Result;
use crate::scan::ArrayScan;
use azulejo::Context;
use azulejo::format::wire::{ByteReader, ByteWriter};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::sync::Arc;

const WHAT: &str = "plan node";
const SCAN: u8 = 0;
const AGGREGATE: u8 = 1;

/// What bytes begin with. What comes after it is another form in other versions, which might be read
/// as something else; so it changes whenever that does, and is not 0 or 1, with which bytes of before
/// it began.
const FORM: u8 = 2;

/// The version of this program, whose plans are read by no other: DataFusion's change with it too.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Encodes and decodes scans of arrays and aggregates over them.
///
/// Bytes name an array by its URI and what its snapshot is made of; they hold neither keys nor
/// credentials, which are those of the context that decodes them.
#[derive(Debug)]
pub struct ArrayCodec {
    context: Context,
}

impl ArrayCodec {
    /// A codec that opens arrays through a context.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
        }
    }
}

/// Refuses an array with a key of its own: only the session's is known to who decodes the scan.
///
/// # Errors
/// That it has one.
pub fn check_key_of(scan: &ArrayScan, session: &Context) -> Result<()> {
    match scan.array().context().key() == session.key() {
        true => Ok(()),
        false => Err(DataFusionError::Plan(format!(
            "{}: a table with a key of its own is read on one machine only, as keys are never sent to workers",
            scan.array().uri()
        ))),
    }
}

/// Refuses what a program of another version has sent.
fn check_version(r: &mut ByteReader<'_>) -> Result<()> {
    let form = r.u8(WHAT).map_err(wire::wrong)?;
    let version = match form {
        FORM => r.u32(WHAT).and_then(|len| r.text(len.into(), WHAT)),
        _ => Ok(String::new()),
    };
    match version.map_err(wire::wrong)? {
        version if version == VERSION => Ok(()),
        version => Err(DataFusionError::Execution(format!(
            "this is azulejo {VERSION}, and what it was sent comes from {}: coordinator and workers must be of one version",
            match version.as_str() {
                "" => "another version",
                version => version,
            }
        ))),
    }
}

impl PhysicalExtensionCodec for ArrayCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut r = ByteReader::new(buf);
        check_version(&mut r)?;
        let kind = r.u8(WHAT).map_err(wire::wrong)?;
        let parts = ScanParts::read(&mut r)?;
        match kind {
            SCAN => {
                r.finish(WHAT).map_err(wire::wrong)?;
                let scan = SentScan::new(parts, &self.context);
                Ok(DataSourceExec::from_data_source(scan))
            }
            AGGREGATE => {
                let scan = parts.open(&self.context)?;
                let wanted = wire::read_wanted(&mut r).map_err(wire::wrong)?;
                let by_rows = physical_plan_from_bytes_with_extension_codec(r.rest(), ctx, self)?;
                Ok(Arc::new(ArrayAggregateExec::new(scan, wanted, by_rows)))
            }
            other => Err(DataFusionError::Execution(format!(
                "a plan node of kind {other}, which there is not"
            ))),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let mut w = ByteWriter::new();
        w.u8(FORM);
        w.text32(VERSION);
        let source = node.downcast_ref::<DataSourceExec>();
        let source = source.map(DataSourceExec::data_source);
        let scan = source.and_then(|source| source.downcast_ref::<ArrayScan>());
        let sent = source.and_then(|source| source.downcast_ref::<SentScan>());
        if let Some(scan) = scan {
            check_key_of(scan, &self.context)?;
            w.u8(SCAN);
            ScanParts::of(scan).write(&mut w)?;
        } else if let Some(sent) = sent {
            w.u8(SCAN);
            sent.parts().write(&mut w)?;
        } else if let Some(aggregate) = node.downcast_ref::<ArrayAggregateExec>() {
            check_key_of(aggregate.scan(), &self.context)?;
            w.u8(AGGREGATE);
            ScanParts::of(aggregate.scan()).write(&mut w)?;
            wire::write_wanted(&mut w, aggregate.wanted());
            let by_rows = Arc::clone(aggregate.by_rows());
            w.bytes(&physical_plan_to_bytes_with_extension_codec(by_rows, self)?);
        } else {
            return Err(DataFusionError::NotImplemented(format!(
                "{} runs on one machine only",
                node.name()
            )));
        }
        buf.extend_from_slice(&w.into_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_other_versions_are_refused() {
        let checked = |bytes: &[u8]| match check_version(&mut ByteReader::new(bytes)) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        let of = |form: u8, version: &str| {
            let mut w = ByteWriter::new();
            w.u8(form);
            w.text32(version);
            w.into_bytes()
        };
        assert_eq!(checked(&of(FORM, VERSION)), "");
        assert!(checked(&of(FORM, "0.0.9")).contains("comes from 0.0.9"));
        // Plans of before began with what they are.
        for kind in [SCAN, AGGREGATE] {
            assert!(checked(&of(kind, "mem://a")).contains("another version"));
        }
        assert_ne!(checked(&[]), "");
        assert_ne!(checked(&[FORM, 9]), "");
    }
}
