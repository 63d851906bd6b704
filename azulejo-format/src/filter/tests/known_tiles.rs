//! Tiles that the reference wrote, byte by byte.
//!
//! Made with TileDB-Py 0.36.1 (libtiledb 2.30.0, format version 22): a dense array of one tile with
//! one attribute and offsets filtered by default; `stored` is the fragment's `a0.tdb` (`a0_var.tdb`
//! for strings).

use crate::datatype::Datatype;

/// One tile.
pub(super) struct KnownTile {
    pub(super) name: &'static str,
    pub(super) datatype: Datatype,
    /// Values in a cell; 0 for strings, which `cells` then holds, separated by `|`.
    pub(super) values: u32,
    /// The filters as stored in a pipeline, in hex.
    pub(super) filters: &'static str,
    /// The cells as written, in hex.
    pub(super) cells: &'static str,
    /// The cells as read, where a filter loses something.
    pub(super) read: &'static str,
    /// The stored tile, in hex.
    pub(super) stored: &'static str,
    /// Whether we are to write the same bytes: not where another implementation of the codec (or
    /// version of it) may differ.
    pub(super) same_bytes: bool,
}

pub(super) const KNOWN_TILES: &[KnownTile] = &[
    KnownTile {
        name: "None",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0000000000",
        cells: "fbffffff701101000c0000000c000000ffffffff0000000007000000ffffff7f",
        read: "",
        stored: "0100000000000000200000002000000000000000fbffffff701101000c0000000c000000ffffffff000000000700\
            0000ffffff7f",
        same_bytes: true,
    },
    KnownTile {
        name: "no filter",
        datatype: Datatype::Int32,
        values: 1,
        filters: "",
        cells: "fbffffff701101000c0000000c000000ffffffff0000000007000000ffffff7f",
        read: "",
        stored: "0100000000000000200000002000000000000000fbffffff701101000c0000000c000000ffffffff000000000700\
            0000ffffff7f",
        same_bytes: true,
    },
    KnownTile {
        name: "GZIP",
        datatype: Datatype::Int32,
        values: 1,
        filters: "010500000001ffffffff",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "010000000000000030000000230000001000000000000000010000003000000023000000789c6366606060866216\
            206603624e2816016251201603e21740052f81180013ca023c",
        same_bytes: false,
    },
    KnownTile {
        name: "ZSTD",
        datatype: Datatype::Int32,
        values: 1,
        filters: "020500000002ffffffff",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "01000000000000003000000033000000100000000000000001000000300000003300000028b52ffd203055010014\
            0203000000040000000600000009140000001500000016000000e8030000e90300000200209f094704",
        same_bytes: true,
    },
    KnownTile {
        name: "LZ4",
        datatype: Datatype::Int32,
        values: 1,
        filters: "030500000003ffffffff",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "01000000000000003000000029000000100000000000000001000000300000002900000044030000000400930400\
            000006000000090400f005140000001500000016000000e8030000e9030000",
        same_bytes: false,
    },
    KnownTile {
        name: "BZIP2",
        datatype: Datatype::Int32,
        values: 1,
        filters: "050500000005ffffffff",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "010000000000000030000000370000001000000000000000010000003000000037000000425a6831314159265359\
            6e1f9dc900001160014d200700006020003100301b489823227caaf2f109b03ba04be2ee48a70a120dc3f3b920",
        same_bytes: true,
    },
    KnownTile {
        name: "RLE",
        datatype: Datatype::Int32,
        values: 1,
        filters: "040500000004ffffffff",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "01000000000000003000000036000000100000000000000001000000300000003600000003000000000304000000\
            0001060000000001090000000002140000000001150000000001160000000001e80300000001e90300000001",
        same_bytes: true,
    },
    KnownTile {
        name: "RLE of two values",
        datatype: Datatype::Int16,
        values: 2,
        filters: "040500000004ffffffff",
        cells: "01000200010002000100020003000400",
        read: "",
        stored: "0100000000000000100000000c000000100000000000000001000000100000000c00000001000200000303000400\
            0001",
        same_bytes: true,
    },
    KnownTile {
        name: "DOUBLE_DELTA",
        datatype: Datatype::Int32,
        values: 1,
        filters: "060600000006ffffffff11",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "0100000000000000300000002100000010000000000000000100000030000000210000000a0c0000000000000003\
            0000000300000002061880000400000000443f7a0050e0",
        same_bytes: true,
    },
    KnownTile {
        name: "DOUBLE_DELTA raw",
        datatype: Datatype::Int8,
        values: 1,
        filters: "060600000006ffffffff11",
        cells: "00649c037f",
        read: "",
        stored: "0100000000000000050000000e000000100000000000000001000000050000000e00000009050000000000000000\
            649c037f",
        same_bytes: true,
    },
    KnownTile {
        name: "DOUBLE_DELTA reinterpret",
        datatype: Datatype::Float64,
        values: 1,
        filters: "060600000006ffffffff0a",
        cells: "000000000000f83f00000000000004400000000000000c40",
        read: "",
        stored: "01000000000000001800000021000000100000000000000001000000180000002100000034030000000000000000\
            0000000000f83f000000000000044000000000000000a0",
        same_bytes: true,
    },
    KnownTile {
        name: "DELTA",
        datatype: Datatype::Int64,
        values: 1,
        filters: "130600000008ffffffff11",
        cells: "050000000000000003000000000000000a00000000000000feffffffffffffff",
        read: "",
        stored: "01000000000000002000000028000000100000000000000001000000200000002800000004000000000000000500\
            000000000000feffffffffffffff0700000000000000f4ffffffffffffff",
        same_bytes: true,
    },
    KnownTile {
        name: "DELTA reinterpret",
        datatype: Datatype::Int32,
        values: 1,
        filters: "130600000008ffffffff06",
        cells: "010000000200000003000000",
        read: "",
        stored: "01000000000000000c000000140000001000000000000000010000000c000000140000000c0000000000000001ff\
            000002fe000003fd0000",
        same_bytes: true,
    },
    KnownTile {
        name: "BIT_WIDTH_REDUCTION",
        datatype: Datatype::Int32,
        values: 1,
        filters: "070400000040000000",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000fbffffff701101000c0000000c000000ffffffff0000000007000000fbffffff701101000c0000000c000000\
            ffffffff0000000007000000",
        read: "",
        stored: "010000000000000068000000680000001a0000006800000002000000fbffffff2040000000fbffffff2028000000\
            03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000fbffffff701101000c0000000c000000ffffffff0000000007000000fbffffff701101000c0000000c000000\
            ffffffff0000000007000000",
        same_bytes: true,
    },
    KnownTile {
        name: "BIT_WIDTH_REDUCTION unsigned",
        datatype: Datatype::UInt64,
        values: 1,
        filters: "070400000000010000",
        cells: "0000000000010000fe000000000100000300000000010000",
        read: "",
        stored: "010000000000000018000000030000001500000018000000010000000000000000010000081800000000fe03",
        same_bytes: true,
    },
    KnownTile {
        name: "BIT_WIDTH_REDUCTION datetime",
        datatype: Datatype::DateTimeDay,
        values: 1,
        filters: "070400000040000000",
        cells: "50460000000000005146000000000000e047000000000000",
        read: "",
        stored: "01000000000000001800000006000000150000001800000001000000504600000000000010180000000000010090\
            01",
        same_bytes: true,
    },
    KnownTile {
        name: "BITSHUFFLE",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0800000000",
        cells: "fbffffff701101000c0000000c000000ffffffff0000000007000000ffffff7ffbffffff701101000c0000000c00\
            0000ffffffff0000000007000000ffffff7f0300000003000000030000000400000006000000",
        read: "",
        stored: "010000000000000054000000540000000c000000020000005000000004000000d1d1d1d1dcdc9d9d939393939393\
            91919393919191919191939391919191919193939191919191919191919191919191919191919191919191919191\
            919111110300000003000000030000000400000006000000",
        same_bytes: true,
    },
    KnownTile {
        name: "BYTESHUFFLE",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0900000000",
        cells: "fbffffff701101000c0000000c000000ffffffff0000000007000000ffffff7f",
        read: "",
        stored: "01000000000000002000000020000000080000000100000020000000fb700c0cff0007ffff110000ff0000ffff01\
            0000ff0000ffff000000ff00007f",
        same_bytes: true,
    },
    KnownTile {
        name: "POSITIVE_DELTA",
        datatype: Datatype::UInt16,
        values: 1,
        filters: "0a0400000008000000",
        cells: "01000500050009002c012d012e01",
        read: "",
        stored: "01000000000000000e0000000e00000010000000020000000100080000002c010600000000000400000004000000\
            01000100",
        same_bytes: true,
    },
    KnownTile {
        name: "CHECKSUM_MD5",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0c00000000",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "010000000000000030000000300000002000000000000000010000003000000000000000dcb8db66efba31f231b7\
            cafbeb0184a403000000030000000300000004000000060000000900000009000000140000001500000016000000\
            e8030000e9030000",
        same_bytes: true,
    },
    KnownTile {
        name: "CHECKSUM_SHA256",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0d00000000",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "01000000000000003000000030000000300000000000000001000000300000000000000083399822df1259f8d1a2\
            703f5383707b6a82b18ad2e3d4201eb38f1e2c8aaf9e030000000300000003000000040000000600000009000000\
            09000000140000001500000016000000e8030000e9030000",
        same_bytes: true,
    },
    KnownTile {
        name: "XOR",
        datatype: Datatype::Float64,
        values: 1,
        filters: "1000000000",
        cells: "000000000000f83f00000000000004400000000000000440000000000000f0bf",
        read: "",
        stored: "01000000000000002000000020000000080000000100000020000000000000000000f83f000000000000fc7f0000\
            000000000000000000000000f4ff",
        same_bytes: true,
    },
    KnownTile {
        name: "SCALE_FLOAT",
        datatype: Datatype::Float64,
        values: 1,
        filters: "0f180000009a9999999999b93f000000000000f0bf0200000000000000",
        cells: "000000000000e03fa4703d0ad7a3f03f0000000000001dc00000000000005940",
        read: "000000000000e03f000000000000f03f3433333333331dc00000000000005940",
        stored: "010000000000000020000000080000000800000001000000080000000f001400c1fff203",
        same_bytes: true,
    },
    KnownTile {
        name: "SCALE_FLOAT f32",
        datatype: Datatype::Float32,
        values: 1,
        filters: "0f180000007b14ae47e17a843f00000000000008400400000000000000",
        cells: "0000003fb81e853f0000e8c00000c842",
        read: "",
        stored: "0100000000000000100000001000000008000000010000001000000006ffffff3cfffffffffbffffe4250000",
        same_bytes: true,
    },
    KnownTile {
        name: "metadata through a compressor",
        datatype: Datatype::Int32,
        values: 1,
        filters: "0704000000400000000900000000020500000002ffffffff0c00000000",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "0100000000000000300000004c0000005800000001000000010000002000000000000000667d5e098ebc64f610c5\
            5462496a4a804c00000000000000dc9d348e9e079c480fa591fbcb552ec702000000010000000800000011000000\
            110000001a000000180000002100000028b52ffd2008410000010000001800000028b52ffd201189000030000000\
            0100000003000000103000000028b52ffd2018c100000000030612e50000000000030001061113e6000000000003",
        same_bytes: true,
    },
    KnownTile {
        name: "checksum of parts",
        datatype: Datatype::Int32,
        values: 1,
        filters: "09000000000c000000000d00000000",
        cells: "03000000030000000300000004000000060000000900000009000000140000001500000016000000e8030000e903\
            0000",
        read: "",
        stored: "01000000000000003000000030000000c00000000200000001000000380000000000000062a0db217572887d6175\
            1eef88b6c0721f19c561aae18a074f3b34a329e1d5d50800000000000000d6b59bed8b3ba3ad24cb89b9851098d6\
            a1329b7a420387b32eee2252477906b7300000000000000087296b7a670cd805542e5f8b00872ce1a1d43c304352\
            7352be1ba976d83bbcf901000000010000000800000000000000c4189ddd36ff41cbc9f178cbeeec1b7d30000000\
            00000000dcca9e7c6d5980950a6df02ba4cdcb1d010000003000000003030304060909141516e8e9000000000000\
            000000000303000000000000000000000000000000000000000000000000",
        same_bytes: true,
    },
    KnownTile {
        name: "typed chain",
        datatype: Datatype::Float32,
        values: 1,
        filters: "0f18000000000000000000f03f00000000000000000100000000000000130600000008ffffffff11100000000008\
            0000000002050000000203000000",
        cells: "0000803f0000004000004040000080400000a0400000c0400000e0400000c842",
        read: "",
        stored: "01000000000000002000000067000000280000000300000001000000080000001100000008000000110000001800\
            00001c000000200000002900000028b52ffd2008410000010000002000000028b52ffd2008410000010000002000\
            000028b52ffd20189d00006801000000010000000800000010010033ca1728b52ffd202001010000050001000600\
            00000600800356038000660080006600000066008000660000",
        same_bytes: true,
    },
    KnownTile {
        name: "RLE strings",
        datatype: Datatype::StringAscii,
        values: 0,
        filters: "040500000004ffffffff",
        cells: "a|a||tile|tile|tile|db",
        read: "",
        stored: "0100000000000000100000000f000000160000000000000001000000100000000f00000038000000010102016101\
            00030474696c6501026462",
        same_bytes: true,
    },
    KnownTile {
        name: "DICTIONARY",
        datatype: Datatype::StringUtf8,
        values: 0,
        filters: "0e0500000007ffffffff020500000002ffffffff",
        cells: "é|tile|é||tile",
        read: "",
        stored: "01000000000000000c0000003a000000180000000100000001000000230000002c000000050000000e00000028b5\
            2ffd202319010000000000010000000c000000050000002800000001010900000002c3a90474696c650028b52ffd\
            20052900000001000201",
        same_bytes: true,
    },
    KnownTile {
        name: "WEBP",
        datatype: Datatype::UInt8,
        values: 1,
        filters: "120c0000000000a0420101020009000000",
        cells: "ff3e53952b438a2b43ff3e53952b438a2b44",
        read: "",
        stored: "0100000000000000120000003c00000008000000010000003c0000005249464634000000574542505650384c2800\
            00002f024000001f20104822db5f661f2101e1ff004f6502018246ff0f12e63fba3b01c2496822fa1f02",
        same_bytes: false,
    },
];
