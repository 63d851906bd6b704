//! The keys of variables under which a dataset keeps what a GeoTIFF says and nothing else does.

use super::tag;

/// Tags that are kept as texts, and the names that GDAL gives them.
pub const TEXTS: [(u16, &str); 7] = [
    (tag::DOCUMENT_NAME, "TIFFTAG_DOCUMENTNAME"),
    (tag::IMAGE_DESCRIPTION, "TIFFTAG_IMAGEDESCRIPTION"),
    (tag::SOFTWARE, "TIFFTAG_SOFTWARE"),
    (tag::DATE_TIME, "TIFFTAG_DATETIME"),
    (tag::ARTIST, "TIFFTAG_ARTIST"),
    (tag::COPYRIGHT, "TIFFTAG_COPYRIGHT"),
    (tag::GDAL_METADATA, "GDAL_METADATA"),
];
/// Of `spatial_ref`: the keys of the coordinate system as they are, their reals and texts, and points
/// that make no transform.
pub const GEO_KEYS: &str = "geo_key_directory";
pub const GEO_DOUBLES: &str = "geo_double_params";
pub const GEO_ASCII: &str = "geo_ascii_params";
pub const TIEPOINTS: &str = "model_tiepoints";
/// Of the raster's variable: its palette, and what bands beyond colours are.
pub const COLOR_MAP: &str = "color_map";
pub const EXTRA_SAMPLES: &str = "extra_samples";
