//! Whether a process holds more and more memory.

/// How much larger the last quarter may be than the second one: a part of it, and KiB.
const GROWTH: (u64, u64) = (10, 16 * 1024);
/// Of fewer samples nothing is said.
const ENOUGH: usize = 120;

/// Says what memory a process held, in quarters of its time; more and more of it is an error.
pub fn of(kib: &[u64]) -> Result<String, String> {
    let quarter = kib.len() / 4;
    if quarter == 0 {
        return Ok("memory is not known".into());
    }
    let quarters: Vec<u64> = kib.chunks(quarter).take(4).map(median).collect();
    let in_mib: Vec<_> = quarters.iter().map(|kib| kib / 1024).collect();
    let said = format!("memory by quarters {in_mib:?} MiB");
    let &[_, second, _, last] = quarters.as_slice() else {
        return Ok(said);
    };
    if kib.len() >= ENOUGH && last > second + second / GROWTH.0 + GROWTH.1 {
        return Err(format!("{said}: it grows"));
    }
    Ok(said)
}

fn median(kib: &[u64]) -> u64 {
    let mut sorted = kib.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_seen_and_warming_up_is_not() {
        let flat: Vec<u64> = (0..400).map(|i| 50_000 + i % 7 * 100).collect();
        assert!(of(&flat).is_ok());
        let warm: Vec<u64> = (0..400).map(|i| 50_000 + i.min(90) * 1000).collect();
        assert!(of(&warm).is_ok());
        let growing: Vec<u64> = (0..400).map(|i| 50_000 + i * 200).collect();
        assert!(of(&growing).is_err());
    }
}
