//! Which files a fragment must have, and which of them lack bytes.

use super::Fragment;
use crate::error::{Error, Result};
use azulejo_format::DecodeError;
use azulejo_format::fragment::{Field, FilePart, data_file_name};
use std::collections::BTreeMap;

impl Fragment {
    /// The files of a field that the fragment must have, with their sizes in bytes where its
    /// metadata tell them.
    pub(crate) fn parts(&self, field: Field) -> Vec<(FilePart, Option<u64>)> {
        let (footer, schema) = (self.footer(), self.schema());
        let mut parts = vec![(FilePart::Data, footer.file_size(field))];
        if field.is_var(schema) {
            parts.push((FilePart::Var, footer.file_var_size(field)));
        }
        if field.is_nullable(schema) {
            parts.push((FilePart::Validity, footer.file_validity_size(field)));
        }
        parts
    }

    /// Looks whether all files are there, as long as the fragment's metadata say. Their contents
    /// are not looked at.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first file that is missing or lacks bytes; those of the storage.
    pub(crate) fn verify_files(&self) -> Result<()> {
        let location = self.location();
        let entries = location.storage.list(&location.path)?;
        let there: BTreeMap<&str, Option<u64>> = entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.size))
            .collect();
        let fields = self.footer().slots.fields();
        for field in fields.filter(|field| self.stores(*field)) {
            for (part, wanted) in self.parts(field) {
                let Some(name) = data_file_name(field, part, self.schema(), self.version()) else {
                    continue;
                };
                let path = location.path.join(&name);
                let wanted = wanted.unwrap_or(0);
                let has = match there.get(name.as_str()) {
                    None => 0,
                    Some(Some(size)) => *size,
                    // Some listings do not tell sizes.
                    Some(None) => location.storage.size(&path)?,
                };
                if has < wanted {
                    let reason = format!("it has {has} bytes of {wanted}");
                    let source = DecodeError::invalid("file", 0, reason);
                    return Err(Error::decode(path.to_string(), source));
                }
            }
        }
        Ok(())
    }
}
