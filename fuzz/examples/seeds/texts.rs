//! Inputs of the parsers: right ones together, wrong ones each by itself, as a parser ends there.

use azulejo::format::Datatype;

/// Names and inputs.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (i, text) in CONDITIONS.iter().enumerate() {
        seeds.push((format!("c{i}"), [b"\0", text.as_bytes()].concat()));
    }
    for (i, text) in WRONG_CONDITIONS.iter().enumerate() {
        seeds.push((format!("w{i}"), [b"\0", text.as_bytes()].concat()));
    }
    for (i, (datatype, texts)) in RANGES.iter().enumerate() {
        for (j, text) in texts.iter().enumerate() {
            let kind = (number_of(*datatype) << 2) as u8 | 2;
            seeds.push((format!("r{i}-{j}"), [&[kind], text.as_bytes()].concat()));
        }
    }
    for (i, text) in OTHERS.iter().enumerate() {
        seeds.push((format!("o{i}"), [b"\x03", text.as_bytes()].concat()));
    }
    for (i, (datatype, bytes)) in VALUES.iter().enumerate() {
        let kind = (number_of(*datatype) << 2) as u8 | 3;
        seeds.push((format!("v{i}"), [&[kind], *bytes].concat()));
    }
    seeds
}

/// Where a type is among all of them.
fn number_of(datatype: Datatype) -> usize {
    let mut all = (0..=u8::MAX).filter_map(|id| Datatype::from_id(id, 1).ok());
    all.position(|one| one == datatype).expect("a type")
}

const CONDITIONS: &[&str] = &[
    "i > -3 and f <= 0.5e3 or not (s == 'abc')",
    "s in ('abc', \"x\", '',) and n is not null or n = null or n <> none",
    "w == 'red' or w != \"green\" or raw(w) = 1 or w in ('red') or w like 'r%'",
    "t >= '2020-01-01T00:00:00' and t < 1700000000000 or t = @17 or t != @-5",
    "x between 3 and 40 or x not between 5 and 0x1f or x = 0b11 or x = 0o7 or x = 1_000",
    "`i` < 4 && o == true || c != 'a' || o = false || `x` >= 2",
    "i not in (1, 2, 3,) and not i in [4]",
    "s like 'ab%' or s like '%b_' or s not like 'a\\\\%' or s like 'ab' or s like 'a!%%' escape '!'",
    "n is null",
    "3 < x and 40 >= x and 5 = i and 7 != i and 9 > u and 1 <= u",
    "'x' > 3 and \"i\" = 2 and 'abc' = s",
    "f is nan or f is not nan or g is nan or g = -0.0 or f = inf or f < -inf or g = nan or g > 1.5e-3",
    "t = 2024 or t = 2024-05 or t = 2024-12 or t = 2024-05-01 or t = '2024-05-01T10' or t != 2024-05-01T10:30",
    "t <= 2024-05-01T10:30:15 or t > 2024-05-01T10:30:15.25Z or t in (2024, 2024-05-01) or t not in ('2024')",
    "y = 2024 or y < 1970 or y = @2024 or z = 10:30 or z > 10:30:15.5 or z = @5 or z < '23:59'",
    "t = 2024-05-01T10:30:00+02:00 or t = 2024-05-01t10:30-05:00 or t between '2024-01' and '2024-02'",
    "true and not false or (o = true)",
    "true",
    "false or u = 18446744073709551615 and u > 9e15",
    "h = 'a' or h like 'b' or h in ('c') or c like 'a%' or c = 'abc' or c like '__c'",
    "b = 'x' or b like '%' or b in ('', 'y')",
    "s = '\\n\\t\\\\\\'\\x41' or s = 'it''s' or s != \"say \\\"x\\\"\"",
    "g = 3 or f = 4 or f = -0 or g = 0x10 or f = '7' or i = '8' or i = 1e3",
    "((((((i = 1))))))",
    "not not not i = 1",
    "s like 'a%b%c' and s like '%' and s like ''",
    "u >= 0 and u != 18446744073709551614",
];

const WRONG_CONDITIONS: &[&str] = &[
    "",
    "i",
    "i =",
    "i = )",
    "(i = 1",
    "i = 1)",
    "i in",
    "i in (",
    "i in (1 2)",
    "i in (1,,2)",
    "i between 1",
    "i between 1 and",
    "i is",
    "i is not",
    "i is not 3",
    "i is nan",
    "i not 3",
    "3 4",
    "3 <",
    "3 < 4",
    "3 < 'x",
    "q = 1",
    "raw(q) = 1",
    "raw(i = 1",
    "raw(i) in (1)",
    "i = abc",
    "i < null",
    "i in (null)",
    "o = 1",
    "o > true",
    "i = true",
    "i = 1.5",
    "i = 3000000000",
    "u = -1",
    "i = '1.5x'",
    "s = 3",
    "s = 10:30",
    "i = 10:30",
    "i = @5",
    "s = @5",
    "i = '\\xff'",
    "s like 3",
    "i like 'a%'",
    "s like 'a' escape 3",
    "s like 'a' escape 'xy'",
    "s like",
    "s not",
    "s = 'abc",
    "s = '\\x4'",
    "s = '\\q'",
    "`\\xff` = 1",
    "'\\xff' = 1",
    "i # 3",
    "i = 1 i = 2",
    "i = 0x",
    "i = 1e",
    "f = 1e400",
    "f = 1.2.3",
    "t = 2024-13-01",
    "t = 2024-05-01T25:00",
    "t = 'x'",
    "z = 2024-05-01",
    "w = 'blue'",
    "w < 'red'",
    "raw(w) = 'red'",
    "and",
    "not",
    "or i = 1",
    "[i = 1)",
    "\u{e9} = 1",
    "i = 1 and",
    "s = ''''",
    "t = 99999-01-01",
    "y = @x",
    "c = 'abcd'",
    "b > 3",
];

const RANGES: &[(Datatype, &[&str])] = &[
    (
        Datatype::Int8,
        &[
            "-5:7", "1..2", "3", ":7", "4:", ":", "..", "300", "1:2:3", "x",
        ],
    ),
    (
        Datatype::UInt64,
        &["0..18446744073709551615", "1_000", "-1"],
    ),
    (
        Datatype::Float32,
        &["1.5:inf", "-inf..NaN", "1e30", "1e-30..0"],
    ),
    (Datatype::Float64, &["1.5", "1e300:2"]),
    (Datatype::Bool, &["true", "false:true", "1", "x"]),
    (Datatype::Char, &["a", "a:b", "5"]),
    (
        Datatype::StringAscii,
        &[
            "\"a:b\":\"c\"",
            "\"a\"..",
            ":\"b\"",
            "\"a\"",
            "a:b",
            "a",
            "a..b",
            "\"a\\\"b\"",
            "\"a",
            "\"a\"x",
            "x\"a\"",
            "a:\"b\"",
            "\"a\":b",
            "\"a\":\"b\"x",
            "\"a\\",
        ],
    ),
    (Datatype::StringUtf16, &["a"]),
    (
        Datatype::DateTimeDay,
        &[
            "2020-01-01:2020-12-31",
            "2024",
            "2024-05",
            "@5..@2024",
            "18262",
            "2024-02-30",
            "9999",
            "9999-12-31",
            "-0001",
            "2024-05-01-02",
            "2024T10",
            "2024-05T10",
        ],
    ),
    (
        Datatype::DateTimeAtto,
        &[
            "1970-01-01T00:00:00.000000000000000001",
            "2024",
            "1970-01-01",
        ],
    ),
    (Datatype::DateTimeYear, &["1999..2001", "@1"]),
    (Datatype::DateTimeMonth, &["1999-05..2001-01", "@-7"]),
    (Datatype::DateTimeWeek, &["1999-05-06"]),
    (
        Datatype::DateTimeHour,
        &["1999-05-06T10", "@9223372036854775807"],
    ),
    (Datatype::DateTimeMinute, &["1999-05-06T10:30"]),
    (
        Datatype::DateTimeSecond,
        &["1999-05-06 10:30:15z", "1999-05-06T10:30:15.5+01:30"],
    ),
    (
        Datatype::DateTimeMilli,
        &[
            "1999-05-06T10:30:15.25-02:00",
            "1999-05-06T10:30..1999-05-06T10:31",
            "1999-05-06T10:30:15.1234567890123456789",
        ],
    ),
    (Datatype::DateTimeMicro, &["1999-05-06T10:30:15.000001Z"]),
    (
        Datatype::DateTimeNano,
        &["1999-05-06T10:30:15.000000001Z", "0001-01-01"],
    ),
    (
        Datatype::DateTimePico,
        &["1970-01-06T10:30:15.000000000001Z"],
    ),
    (
        Datatype::DateTimeFemto,
        &["1970-01-01T00:30:15.000000000000001Z"],
    ),
    (
        Datatype::TimeNano,
        &[
            "12:30:15.5",
            "10:30..11:00",
            "24:00",
            "5",
            "x",
            "10",
            "10:60",
            "10:30:60",
            "10:30:15.",
            "10:30:15:1",
            "@7",
        ],
    ),
    (Datatype::TimeHour, &["12", "12:30"]),
    (
        Datatype::TimeAtto,
        &["23:59:59.999999999999999999", "00:00:09"],
    ),
];

const OTHERS: &[&str] = &[
    "64MiB",
    "1.5 GB",
    "10",
    "10b",
    "3kb",
    "2tb",
    "7k",
    "7m",
    "7g",
    "7t",
    "1_000",
    "99999999999t",
    "1e5",
    "5x",
    ".",
    "1e400g",
    "999999999999.9g",
    "2024-02-29 12:00",
    "5 minutes ago",
    "2021-03-04T05:06:07.089Z",
    "1714557600000",
    "0",
    "now",
    "today",
    "yesterday",
    "-90m",
    "-5s",
    "-2h",
    "-3d",
    "-1w",
    "-1y",
    "-",
    "-xm",
    "-4294967295w",
    "2024",
    "18446744073709551615",
    "10:30",
    "1023",
    "1048575",
    "123456789012",
    "1125899906842624",
    "1152921504606846976",
    "1.5.5m",
    "\u{e9}",
];

const VALUES: &[(Datatype, &[u8])] = &[
    (Datatype::Int32, &[1, 0, 0, 0, 2, 0, 0, 0]),
    (Datatype::Float64, &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f]),
    (Datatype::Float64, &[1, 0, 0, 0, 0, 0, 0xf0, 0x01]),
    (Datatype::Float32, &[0, 0, 0xc0, 0x7f]),
    (Datatype::DateTimeNano, &[0, 0, 0, 0, 0, 0, 0, 0x80]),
    (
        Datatype::DateTimeYear,
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ),
    (
        Datatype::DateTimeMonth,
        &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ),
    (Datatype::DateTimeDay, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    (Datatype::TimeSecond, &[1, 0, 0, 0, 0, 0, 0, 0]),
    (Datatype::TimeSecond, &[0, 0, 0, 0, 0, 0, 0, 1]),
    (Datatype::Bool, &[1]),
    (Datatype::Bool, &[0]),
    (Datatype::StringUtf16, b"a\0b\0"),
    (Datatype::StringUcs2, &[0, 0xd8]),
    (Datatype::StringUtf32, b"a\0\0\0"),
    (Datatype::StringUcs4, &[1, 0, 0, 0]),
    (Datatype::StringUtf8, &[0xff]),
    (Datatype::StringAscii, b"a\x01"),
    (Datatype::Char, b"x"),
    (Datatype::Blob, &[1, 2]),
    (Datatype::Any, &[1]),
];
