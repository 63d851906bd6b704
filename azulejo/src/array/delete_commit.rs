//! What an array's deletes say.

use azulejo_format::condition::Condition;

/// A delete: cells written at its time or before do not exist unless they meet its condition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeleteCommit {
    /// File name as fragments list it in their processed conditions, such as
    /// `__commits/__1_1_ab..cd_22.del`.
    pub name: String,
    /// Milliseconds since 1970; cells with a later timestamp stay.
    pub timestamp: u64,
    /// Which cells **stay**: the stored condition is the negation of what the user asked to delete.
    pub kept: Condition,
}
