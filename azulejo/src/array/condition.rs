//! Conditions as text, on the fields of an array.

use super::Snapshot;
use crate::condition::parse;

use crate::error::Result;
use azulejo_format::condition::Condition;

impl Snapshot {
    /// Reads a condition on this array's cells from text, such as `a > 3 and b in ("x", "y") and c
    /// is null`. Enumerations are read if it compares labels.
    ///
    /// - Comparisons: `=` or `==`, `!=` or `<>`, `<`, `<=`, `>`, `>=`; `in (..)`, `between 1 and
    ///   3`, `is null`, `is nan`, `like 'a%'`, where `not` may stand before `in`, `between` and
    ///   `like` and behind `is`.
    /// - `is distinct from 3` and `is not distinct from 3`, for which null is a value like others. An
    ///   attribute of BOOL stands by itself: `a or not b`.
    /// - What the type of a field cannot hold is compared all the same: every UINT8 is `< 300`, and
    ///   `> 1.5` where it is at least 2.
    /// - Patterns of `like`: `%` for any characters, `_` for one; `\%` and `\_` for themselves, or
    ///   another mark, as in `like '5!%' escape '!'`.
    /// - `and`, `or`, `not` (or `&&`, `||`, `!`) and parentheses; `not` binds strongest, then
    ///   `and`. Keywords in any case.
    /// - Names stand as they are if they are words (letters, digits, `_`, `.`, not beginning with
    ///   a digit), else in backticks or quotes. `raw(name)` compares the stored index of an
    ///   enumerated attribute instead of its label.
    /// - Numbers: `-3`, `1_000`, `0xff`, `2.5e-3`, `inf`, `nan`; `true` and `false`; strings in
    ///   single or double quotes, with `\n \r \t \0 \\ \' \" \xFF \u{1F600}`, a doubled quote
    ///   standing for one.
    /// - Dates and times: `2020-01`, `2020-01-31`, `2020-01-31T12:30:00.25Z`, `12:30`, in quotes or
    ///   not, and four digits for a year; each is all of what it names (`t <= 2020-01` has the whole
    ///   month). `@18262` is a number of ticks.
    ///
    /// [Deletes](crate::array::ArrayHandle::delete_cells) store comparisons: those with `is nan`,
    /// and with patterns that are more than a beginning, are refused.
    ///
    /// ```
    /// # use azulejo::format::{ArraySchema, Datatype};
    /// # use azulejo::read::ReadOptions;
    /// # use azulejo::{Config, Context};
    /// # let context = Context::new(Config::default(), None)?;
    /// # let schema = ArraySchema::sparse().dimension("x", 0i64..=9, 10)
    /// #     .attribute("a", Datatype::Float64).build()?;
    /// # context.array("mem://cells").create(schema)?;
    /// let array = context.array("mem://cells").open()?;
    /// let options = ReadOptions::new().condition(array.condition("a > 0.5 and x != 7")?);
    /// assert_eq!(array.read(options)?.read_all()?.cell_num, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) that shows the place in the text;
    /// [`Error::SchemaMismatch`](crate::Error::SchemaMismatch) for names that the array lacks;
    /// errors of reading enumerations.
    pub fn condition(&self, text: &str) -> Result<Condition> {
        parse(text, self.schema(), &|name| self.enumeration(name))
    }
}
