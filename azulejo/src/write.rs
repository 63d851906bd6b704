//! Writing cells: from columns to a committed fragment.

pub mod commit;
pub mod filter;
pub mod fragment;
pub mod stats;

pub use commit::WrittenFragment;
pub use fragment::{FragmentSink, FragmentSpec, TileView};
