//! Sizes in bytes as people write and read them.

/// Reads `512MB`, `1GiB`, `64k`, `1_000_000`: decimal for `kB MB GB TB`, binary for `KiB MiB GiB
/// TiB` and for bare `k m g t`.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number = number.replace('_', "");
    let bad = || format!("{text:?} is not a size; write for example 512MB or 2GiB");
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(bad()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole
            .checked_mul(factor)
            .ok_or_else(|| format!("{text:?} is more than any machine has"));
    }
    let value = number.parse::<f64>().map_err(|_| bad())? * factor as f64;
    if !value.is_finite() || value >= u64::MAX as f64 {
        return Err(format!("{text:?} is more than any machine has"));
    }
    Ok(value as u64)
}

/// Writes a size with the binary unit that keeps it short: `0 B`, `512 B`, `1.5 KiB`, `3.2 GiB`.
pub fn text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        // What would print as 1024.0 belongs to the next unit.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value >= 99.95 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// Writes a count with thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_spelling() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("512MB", 512_000_000),
            ("1GiB", 1 << 30),
            ("1g", 1 << 30),
            ("1.5 KiB", 1536),
            (" 64 k ", 65536),
            ("1_000_000", 1_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "1XB", "-1", "1..2MB", "99999999TB", "1e99"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_short() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (100 * 1024, "100 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(text(bytes), expected);
        }
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
