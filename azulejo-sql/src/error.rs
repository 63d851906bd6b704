//! Errors on their way through DataFusion.

use datafusion::error::DataFusionError;

/// What the traits of DataFusion give back.
pub type Result<T, E = DataFusionError> = std::result::Result<T, E>;

/// An error of the engine as one of DataFusion's; its message stays as it is.
pub fn external(error: azulejo::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error of reading cells: what is no text has another way.
pub fn of_cells(error: azulejo::Error) -> DataFusionError {
    let message = error.to_string();
    match message.contains("is not UTF-8") {
        true => external(azulejo::Error::InvalidArgument(format!(
            "{message}: CHAR is bytes in azulejo('uri', bytes => true), and with OPTIONS (bytes 'true')"
        ))),
        false => external(error),
    }
}

/// The engine's error that one of DataFusion's comes from, if it does.
pub fn of_engine(error: &DataFusionError) -> Option<&azulejo::Error> {
    match error.find_root() {
        DataFusionError::External(source) => source.downcast_ref(),
        _ => None,
    }
}
