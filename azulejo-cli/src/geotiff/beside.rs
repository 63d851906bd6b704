//! The coordinate system that GDAL keeps beside a raster, in `FILE.aux.xml`. A GeoTIFF itself names it
//! by an EPSG code, or by keys for few projections; there it stands in WKT, whatever it is.
//!
//! Where both are there, readers take the one beside the file, as GDAL does.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Such a file has no more bytes, as far as it is read.
const MOST: u64 = 1 << 20;

/// What texts in WKT begin with.
const SYSTEMS: [&str; 12] = [
    "BOUNDCRS[",
    "COMPD_CS[",
    "COMPOUNDCRS[",
    "ENGCRS[",
    "GEOCCS[",
    "GEODCRS[",
    "GEOGCRS[",
    "GEOGCS[",
    "LOCAL_CS[",
    "PROJCRS[",
    "PROJCS[",
    "DERIVEDPROJCRS[",
];

/// Characters that XML writes otherwise; the ampersand is the first to be written, and the last to be
/// read.
const WRITTEN: [(&str, &str); 5] = [
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ("\"", "&quot;"),
    ("'", "&apos;"),
];

/// Whether a text is a coordinate system in WKT.
pub fn is_wkt(text: &str) -> bool {
    let text = text.trim_start();
    SYSTEMS.iter().any(|system| text.starts_with(system))
}

/// Where it stands for a raster.
pub fn path_of(raster: &Path) -> PathBuf {
    let mut name = raster.as_os_str().to_owned();
    name.push(".aux.xml");
    name.into()
}

/// The file's text.
pub fn text_of(wkt: &str) -> String {
    let mut system = wkt.trim().to_owned();
    for (character, written) in WRITTEN {
        system = system.replace(character, written);
    }
    format!("<PAMDataset>\n  <SRS>{system}</SRS>\n</PAMDataset>\n")
}

/// The coordinate system of such a text, if it says one.
fn wkt_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<SRS")?;
    let (attributes, rest) = rest.split_once('>')?;
    if attributes.starts_with(|c: char| c.is_alphanumeric()) || attributes.ends_with('/') {
        return None;
    }
    let (system, _) = rest.split_once("</SRS>")?;
    let mut system = system.trim().to_owned();
    for (character, written) in WRITTEN.into_iter().rev() {
        system = system.replace(written, character);
    }
    is_wkt(&system).then_some(system)
}

/// What stands beside a raster; `None` where there is nothing, or nothing of the kind.
pub fn read(raster: &Path) -> std::io::Result<Option<String>> {
    let path = path_of(raster);
    // A pipe would be waited for.
    match std::fs::metadata(&path) {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Ok(None),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?
        .take(MOST)
        .read_to_end(&mut bytes)?;
    Ok(wkt_in(&String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let wkt = r#"PROJCS["A & B <\"x\"> 'y' &amp;lt;",UNIT["metre",1]]"#;
        assert!(is_wkt(wkt));
        assert_eq!(wkt_in(&text_of(wkt)).as_deref(), Some(wkt));
        let gdal = "<PAMDataset>\n  <SRS dataAxisToSRSAxisMapping=\"2,1\">GEOGCS[\"x\"]</SRS>\n</PAMDataset>";
        assert_eq!(wkt_in(gdal).as_deref(), Some("GEOGCS[\"x\"]"));
        for none in [
            "",
            "<PAMDataset/>",
            "<SRS/>",
            "<SRS>",
            "<SRS>EPSG:4326</SRS>",
            "<SRSX>GEOGCS[]</SRSX>",
        ] {
            assert_eq!(wkt_in(none), None, "{none}");
        }
        assert_eq!(path_of(Path::new("a/b.tif")), Path::new("a/b.tif.aux.xml"));
    }

    #[test]
    fn what_is_no_such_file_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let raster = folder.path().join("x.tif");
        assert_eq!(read(&raster).unwrap(), None);
        std::fs::create_dir(path_of(&raster)).unwrap();
        assert_eq!(read(&raster).unwrap(), None);
        std::fs::remove_dir(path_of(&raster)).unwrap();
        let long = format!("{}<SRS>GEOGCS[]</SRS>", " ".repeat(MOST as usize));
        std::fs::write(path_of(&raster), long).unwrap();
        assert_eq!(read(&raster).unwrap(), None);
    }
}
