//! The lengths that Arrow's IPC files state. Their reader takes memory for whatever is stated, and
//! the program ends where there is not so much: those of damaged files are looked at before.

use arrow_ipc::{CompressionType, Message, root_as_footer, root_as_message};
use std::io::{Read, Result, Seek, SeekFrom};

/// What comes before the length of a message.
const CONTINUATION: u32 = u32::MAX;
/// Bytes at the end of a file: the length of its footer, and `ARROW1`.
const TAIL: u64 = 10;
/// Bytes before a compressed buffer: its length.
const PREFIX: u64 = 8;
/// LZ4 repeats no more for each byte.
const MOST_OF_A_BYTE_LZ4: u64 = 1 << 8;
/// The longest header of a frame of Zstandard.
const ZSTD_HEADER: u64 = 18;
/// A block of Zstandard holds no more.
const ZSTD_BLOCK: u64 = 128 << 10;

/// Whether no message of a stream, `size` bytes long, states more than there is.
pub fn stream_fits(from: &mut (impl Read + Seek), size: u64) -> Result<bool> {
    let mut at = 0;
    loop {
        let Some(mut length) = number_at(from, at, size)? else {
            // It ends, or is cut off, which its reader says.
            return Ok(true);
        };
        at += 4;
        if length == CONTINUATION {
            let Some(next) = number_at(from, at, size)? else {
                return Ok(true);
            };
            length = next;
            at += 4;
        }
        if length == 0 {
            return Ok(true);
        }
        let length = u64::from(length);
        let Some(metadata) = bytes_at(from, at, length, size)? else {
            return Ok(false);
        };
        at += length;
        let Ok(message) = root_as_message(&metadata) else {
            return Ok(true);
        };
        match u64::try_from(message.bodyLength()) {
            Ok(body) if body <= size - at => {
                if !buffers_fit(from, (at, body), &message)? {
                    return Ok(false);
                }
                at += body;
            }
            _ => return Ok(false),
        }
    }
}

/// Whether no block of a file, `size` bytes long, states more than there is.
pub fn file_fits(from: &mut (impl Read + Seek), size: u64) -> Result<bool> {
    let Some(tail) = size.checked_sub(TAIL) else {
        return Ok(true);
    };
    let length = number_at(from, tail, size)?.map(u64::from);
    let Some((start, length)) = length.and_then(|n| Some((tail.checked_sub(n)?, n))) else {
        return Ok(true);
    };
    let Some(footer) = bytes_at(from, start, length, size)? else {
        return Ok(true);
    };
    let Ok(footer) = root_as_footer(&footer) else {
        return Ok(true);
    };
    let dictionaries = footer.dictionaries().into_iter().flatten();
    for block in dictionaries.chain(footer.recordBatches().into_iter().flatten()) {
        let (Ok(at), Ok(metadata), Ok(body)) = (
            u64::try_from(block.offset()),
            u64::try_from(block.metaDataLength()),
            u64::try_from(block.bodyLength()),
        ) else {
            return Ok(false);
        };
        let behind = at.checked_add(metadata);
        let end = behind.and_then(|behind| behind.checked_add(body));
        let (Some(behind), Some(0..)) = (behind, end.and_then(|end| size.checked_sub(end))) else {
            return Ok(false);
        };
        let Some(bytes) = bytes_at(from, at, metadata, size)? else {
            return Ok(false);
        };
        let message = match bytes.get(..4) {
            Some([0xff, 0xff, 0xff, 0xff]) => bytes.get(8..),
            _ => bytes.get(4..),
        };
        if let Some(Ok(message)) = message.map(root_as_message)
            && !buffers_fit(from, (behind, body), &message)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the compressed buffers of a body, which lies somewhere and is so long, can become as long
/// as they state.
fn buffers_fit(
    from: &mut (impl Read + Seek),
    (at, body): (u64, u64),
    message: &Message<'_>,
) -> Result<bool> {
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| message.header_as_dictionary_batch()?.data());
    let compression = batch.and_then(|batch| batch.compression());
    let (Some(batch), Some(compression)) = (batch, compression) else {
        return Ok(true);
    };
    let is_lz4 = compression.codec() == CompressionType::LZ4_FRAME;
    for buffer in batch.buffers().into_iter().flatten() {
        let (Ok(offset), Ok(length)) = (
            u64::try_from(buffer.offset()),
            u64::try_from(buffer.length()),
        ) else {
            return Ok(false);
        };
        if offset.checked_add(length).is_none_or(|end| end > body) {
            return Ok(false);
        }
        let Some(stored) = length.checked_sub(PREFIX) else {
            continue;
        };
        let Some(stated) = bytes_at(from, at + offset, PREFIX, at + body)? else {
            return Ok(false);
        };
        let stated = stated.try_into().map_or(0, i64::from_le_bytes);
        // Those that are not compressed state -1.
        let Ok(stated) = u64::try_from(stated) else {
            continue;
        };
        if is_lz4 {
            if stated > stored.saturating_mul(MOST_OF_A_BYTE_LZ4) {
                return Ok(false);
            }
            continue;
        }
        let start = at + offset + PREFIX;
        let holds = zstd_holds(from, (start, start + stored))?;
        if holds.is_none_or(|(least, most)| !(least..=most).contains(&stated)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the header of a frame of Zstandard says.
struct ZstdFrame {
    header: u64,
    /// Of what the frame holds.
    length: Option<u64>,
    checksum: u64,
}

/// The least and the most bytes that frames of Zstandard between two places hold: as many as they say,
/// or what their blocks can make; `None` where there are other things than frames.
fn zstd_holds(
    from: &mut (impl Read + Seek),
    (mut at, end): (u64, u64),
) -> Result<Option<(u64, u64)>> {
    let (mut least, mut most) = (0u64, 0u64);
    while at < end {
        let header = bytes_at(from, at, ZSTD_HEADER.min(end - at), end)?;
        let header = header.unwrap_or_default();
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *header {
            // Of some other program, to be passed over.
            at += 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
            continue;
        }
        let Some(frame) = zstd_frame(&header) else {
            return Ok(None);
        };
        at += frame.header;
        let mut blocks = 0u64;
        loop {
            let bytes = bytes_at(from, at, 3, end)?;
            let Some([a, b, c]) = bytes.as_deref() else {
                return Ok(None);
            };
            let block = u32::from_le_bytes([*a, *b, *c, 0]);
            let size = u64::from(block >> 3);
            let (stored, makes) = match (block >> 1) & 3 {
                0 => (size, size),
                1 if size > ZSTD_BLOCK => return Ok(None),
                1 => (1, size),
                2 => (size, ZSTD_BLOCK),
                _ => return Ok(None),
            };
            at += 3 + stored;
            blocks += makes;
            if block & 1 == 1 {
                break;
            }
        }
        at += frame.checksum;
        match frame.length {
            Some(known) if known > blocks => return Ok(None),
            Some(known) => (least, most) = (least + known, most + known),
            None => most += blocks,
        }
    }
    Ok((at == end).then_some((least, most)))
}

fn zstd_frame(bytes: &[u8]) -> Option<ZstdFrame> {
    let (descriptor, rest) = bytes
        .strip_prefix(&[0x28, 0xb5, 0x2f, 0xfd])?
        .split_first()?;
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let before = usize::from(!is_single) + dictionary;
    let rest = rest.get(before..)?;
    let (digits, more) = match (descriptor >> 6, is_single) {
        (0, false) => (0, 0),
        (0, true) => (1, 0),
        (1, _) => (2, 256),
        (2, _) => (4, 0),
        _ => (8, 0),
    };
    let mut number = [0; 8];
    number
        .get_mut(..digits)?
        .copy_from_slice(rest.get(..digits)?);
    let length = match digits {
        0 => None,
        _ => Some(u64::from_le_bytes(number).checked_add(more)?),
    };
    Some(ZstdFrame {
        header: 5 + (before + digits) as u64,
        length,
        checksum: if descriptor & 4 == 0 { 0 } else { 4 },
    })
}

/// A number of four bytes; `None` beyond the end.
fn number_at(from: &mut (impl Read + Seek), at: u64, size: u64) -> Result<Option<u32>> {
    let bytes = bytes_at(from, at, 4, size)?;
    Ok(bytes.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?))))
}

/// So many bytes; `None` beyond the end.
fn bytes_at(
    from: &mut (impl Read + Seek),
    at: u64,
    length: u64,
    size: u64,
) -> Result<Option<Vec<u8>>> {
    if at.checked_add(length).is_none_or(|end| end > size) {
        return Ok(None);
    }
    from.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == length).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, RecordBatch};
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use std::io::Cursor;
    use std::sync::Arc;

    fn batch() -> RecordBatch {
        let numbers = Int64Array::from((0i64..1_000).map(|i| i % 7).collect::<Vec<_>>());
        RecordBatch::try_from_iter([("x", Arc::new(numbers) as _)]).unwrap()
    }

    fn options(compressed: bool) -> IpcWriteOptions {
        let compression = compressed.then_some(CompressionType::LZ4_FRAME);
        IpcWriteOptions::default()
            .try_with_compression(compression)
            .unwrap()
    }

    fn fits(bytes: &[u8], file: bool) -> bool {
        let (mut from, size) = (Cursor::new(bytes), bytes.len() as u64);
        match file {
            true => file_fits(&mut from, size).unwrap(),
            false => stream_fits(&mut from, size).unwrap(),
        }
    }

    #[test]
    fn lengths_that_no_codec_makes_are_found() {
        let batch = batch();
        let mut stream = Vec::new();
        let schema = batch.schema();
        let mut writer =
            StreamWriter::try_new_with_options(&mut stream, &schema, options(true)).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        assert!(fits(&stream, false));
        let prefix = [&8_000i64.to_le_bytes()[..], &[0x04, 0x22, 0x4d, 0x18]].concat();
        let mut windows = stream.windows(prefix.len());
        let at = windows.position(|bytes| bytes == prefix).unwrap();
        stream[at..at + 8].copy_from_slice(&(1i64 << 22).to_le_bytes());
        assert!(!fits(&stream, false));
    }

    #[test]
    fn frames_of_zstandard_say_how_long_they_are() {
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        let of = |header: &[u8]| zstd_frame(&[&magic[..], header].concat())?.length;
        assert_eq!(of(&[0x20, 7]), Some(7));
        assert_eq!(of(&[0x60, 1, 1]), Some(0x101 + 256));
        assert_eq!(of(&[0x80, 0x58, 1, 2, 0, 0]), Some(0x201));
        assert_eq!(of(&[0xe1, 9, 1, 0, 0, 0, 0, 0, 0, 1]), Some((1 << 56) + 1));
        assert_eq!(of(&[0x00, 0x58]), None);
        assert_eq!(of(&[0x60, 1]), None);
        assert!(zstd_frame(b"text").is_none());
    }

    #[test]
    fn frames_of_zstandard_hold_no_more_than_their_blocks() {
        let holds = |bytes: &[u8]| {
            let places = (3, 3 + bytes.len() as u64);
            let mut from = Cursor::new([b"abc", bytes, b"behind"].concat());
            zstd_holds(&mut from, places).unwrap()
        };
        let text: Vec<u8> = (0..300_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        let len = text.len() as u64;
        // Written in a stream, of which the end is not known at the beginning.
        let streamed = zstd::stream::encode_all(text.as_slice(), 1).unwrap();
        let (least, most) = holds(&streamed).unwrap();
        assert!(
            least <= len && len <= most && most < 3 * len,
            "{least} {most}"
        );
        let zeros = zstd::stream::encode_all(&[0; 10_000_000][..], 1).unwrap();
        let (least, most) = holds(&zeros).unwrap();
        assert!(least <= 10_000_000 && (10_000_000..11_000_000).contains(&most));
        // Known, and one behind another with something between them.
        let known = zstd::bulk::compress(&text, 1).unwrap();
        assert_eq!(holds(&known), Some((len, len)));
        let between = [0x51, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7];
        let all = [&known[..], &between, &known].concat();
        assert_eq!(holds(&all), Some((2 * len, 2 * len)));
        for cut in [1, 5, known.len() - 1] {
            assert_eq!(holds(&known[..cut]), None);
            assert_eq!(holds(&all[..known.len() + between.len() + cut]), None);
        }
        assert_eq!(holds(b""), Some((0, 0)));
        // One byte, so many times: no more than a block may hold.
        let repeated = |times: u32| {
            let block = ((times << 3) | 0b011).to_le_bytes();
            [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58][..], &block[..3], &[7]].concat()
        };
        assert_eq!(holds(&repeated(1 << 17)), Some((0, 1 << 17)));
        assert_eq!(holds(&repeated((1 << 17) + 1)), None);
        let mut more = known;
        let at = 5 + usize::from(more[4] & 0x20 == 0);
        more[at + 1] ^= 0x7f;
        assert_ne!(holds(&more), Some((len, len)));
    }

    #[test]
    fn lengths_beyond_the_end_are_found() {
        for compressed in [false, true] {
            let batch = batch();
            let schema = batch.schema();
            let mut stream = Vec::new();
            let options = || options(compressed);
            let mut writer =
                StreamWriter::try_new_with_options(&mut stream, &schema, options()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            let mut file = Vec::new();
            let mut writer =
                FileWriter::try_new_with_options(&mut file, &schema, options()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            for (bytes, is_file) in [(stream, false), (file, true)] {
                assert!(fits(&bytes, is_file), "{compressed} {is_file}");
                // Whatever is in place of a byte, memory is taken for no more than there is.
                let mut found = 0;
                for at in 0..bytes.len() {
                    let mut damaged = bytes.clone();
                    damaged[at] = 0x7f;
                    found += usize::from(!fits(&damaged, is_file));
                }
                assert!(found > 3, "{compressed} {is_file} {found}");
            }
        }
    }
}
