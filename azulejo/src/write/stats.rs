//! Statistics of tiles and fragments.
