//! Groups: folders that name arrays and other groups.
