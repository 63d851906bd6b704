//! Masks of cells that meet a condition.

use super::bind::Node;
use crate::column::FieldView;
use crate::error::Result;

pub(super) fn evaluate(_root: &Node, _views: &[FieldView<'_>], _mask: &mut [u8]) -> Result<()> {
    Ok(())
}
