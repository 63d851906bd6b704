//! The session that answers requests.

use datafusion::prelude::SessionContext;
use std::ops::Deref;
use std::sync::Arc;

/// A session behind an object. That a future which holds one may go to another thread is shown by
/// what the object says; to show it of all that a session holds takes the compiler seconds, for each
/// request that there is.
pub type SharedSession = Arc<dyn Deref<Target = SessionContext> + Send + Sync>;

/// A session, to be shared.
pub fn shared(session: SessionContext) -> SharedSession {
    Arc::new(Box::new(session))
}
