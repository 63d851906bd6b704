"""The tests of MyTile, TileDB's storage engine for MariaDB, as a judge of our SQL.

Its test files are read in mysqltest's language, each with the answers that MariaDB gave (`.result`). What is standard
SQL in them is put into our words (tables of arrays, quotes, types) and asked of the program, one process a statement;
rows are compared, in their order where the question has one. What is MariaDB's own is passed over, with the reason.

usage: sql_mytile.py PROGRAM CHECKOUT FOLDER [--only TEXT] [--show]
"""

import argparse
import collections
import contextlib
import datetime
import pathlib
import re
import shutil
import subprocess
import sys

# Where the answer is another one: the file, a part of the statement, and why.
JOINED = "DataFusion leaves the column of USING where the first table has it, MariaDB has it first"
CLAMPED = "a number beyond its type is an error here, and no row; MariaDB writes the nearest one"
SPANS = "TIME: an array's times of day are lengths of time here, which no SQL type makes"
YEARS = "a year is a moment here, which compares with no number"
MONTHS = "MyTile takes a month for a twelfth of 365 days, here it begins on its first day"
FINE = "ticks finer than nanoseconds have no type in Arrow, and are numbers here; MyTile cuts them to microseconds"
LABELS = "MyTile takes an index for MariaDB's, which counts from 1, so it shows the label before the right one"
REALS = "1.3 is a double, and the REAL nearest to it is less; MyTile makes both the same type"
STATED = [
    ("aggregates", "select * from dense one JOIN dense two USING(a)", JOINED),
    ("data_types", "INSERT INTO t1 VALUES (-1)", CLAMPED),
    ("data_types", "select * FROM t1 ORDER BY column1 ASC", CLAMPED),
    ("data_types", "select id, datetime_attosecond,", f"{FINE}, and takes those before 1970 for later ones; {MONTHS}"),
    ("datetime_pushdown", "SELECT dt_y FROM datetime_dimensions", YEARS),
    ("datetime_pushdown", "SELECT * FROM datetime_dimensions WHERE dt_y", YEARS),
    ("datetime_pushdown", "SELECT dt_m FROM datetime_dimensions", MONTHS),
    ("datetime_pushdown", "SELECT dt_ps FROM datetime_dimensions", FINE),
    ("datetime_pushdown", "SELECT dt_fs FROM datetime_dimensions", FINE),
    ("datetime_pushdown", "SELECT dt_as FROM datetime_dimensions", FINE),
    ("datetimes", ", time time(", SPANS),
    ("enum", "select `rows`, `a0`, `a1`, `a2`, `a3` from `enum_array`", LABELS),
    ("heterogeneus_dimensions", "select * from t1 where d1 < 1.3", REALS),
]

# Statements that no other database has, by how they begin.
OWN = [
    (r"set\b", "a setting"),
    (r"(show|describe)\b", "SHOW and DESCRIBE, in MariaDB's words"),
    (r"explain\b", "EXPLAIN, a plan of MariaDB's"),
    (r"(flush|call)\b", "FLUSH and CALL"),
    (r"select\b.*information_schema", "MariaDB's catalog"),
    (r"(insert|select)\b.*\b(st_\w+|geometryfrom\w+|aswkb)\(", "spatial functions"),
    (r"select\b.*ascii\(substring\(", "cells of several numbers as one text of bytes"),
]

# What a table may have that arrays or our statements have not.
OWN_TABLES = [
    (r"@metadata'", "an array's metadata as a table"),
    (r"\bdecimal\b", "DECIMAL"),
    (r"\benum\s*\(", "ENUM"),
    (r"\bbit\b", "BIT"),
    (r"scale_float", "filters that scale, which a statement cannot name"),
]

# A year is a number here. Fractions of seconds are counted by threes.
TYPES = {
    "int": "INT", "integer": "INT", "mediumint": "INT", "tinyint": "TINYINT", "smallint": "SMALLINT", "bigint": "BIGINT",
    "float": "REAL", "double": "DOUBLE", "bool": "BOOLEAN", "year": "SMALLINT", "date": "DATE", "time": "TIME",
    "char": "VARCHAR", "varchar": "VARCHAR", "tinytext": "VARCHAR", "text": "VARCHAR", "mediumtext": "VARCHAR",
    "longtext": "VARCHAR", "binary": "BYTEA", "tinyblob": "BYTEA", "blob": "BYTEA", "mediumblob": "BYTEA", "longblob": "BYTEA",
}  # fmt: skip

# What `azulejo evolve` calls them.
EVOLVED = {"INT": "INT32 nullable", "VARCHAR": "STRING_UTF8 var nullable"}

TOKEN = re.compile(r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`[^`]*`|\s+|[\w.]+|.""", re.S)
CSV_FIELD = re.compile(r'("(?:[^"]|"")*"|[^,\n]*)(,|\n|\Z)')


class Unreadable(Exception):
    """A file that is not as it is expected to be."""


def collapsed(text):
    return " ".join(text.split())


# --- mysqltest


def statement_end(text, start):
    """Where the semicolon is that ends a statement, outside of quotes."""
    at = start
    while at < len(text) and text[at] != ";":
        token = TOKEN.match(text, at)
        # A token may hold a semicolon only in quotes.
        at = token.end()
    return at


def items(text):
    """What a test file does: `("echo", text)` or `("sql", text, fails)`, in order."""
    at, fails = 0, False
    while at < len(text):
        line_end = text.find("\n", at) if "\n" in text[at:] else len(text)
        line = text[at:line_end].strip()
        if not line or line.startswith("#"):
            at = line_end + 1
            continue
        if line.startswith("--"):
            at = line_end + 1
            word, _, rest = line[2:].strip().partition(" ")
            if word == "echo":
                yield "echo", rest, False
            elif word == "error":
                fails = True
            elif word == "eval":
                yield "sql", rest.removesuffix(";"), fails
                fails = False
            elif word not in ("replace_result", "disable_warnings", "enable_warnings"):
                raise Unreadable(f"--{word} is not known here")
            continue
        end = statement_end(text, at)
        statement = text[at:end].strip()
        at = end + 1
        word = statement.split(None, 1)[0] if statement else ""
        # What the test's runner does by itself: it leaves nothing in the answers.
        if word and word not in ("let", "copy_file", "remove_file"):
            yield "sql", statement, fails
            fails = False


def answers(found, result):
    """Each item with the lines of the answer below its echo."""
    lines, at, marks = result.split("\n"), 0, []
    for kind, text, fails in found:
        printed = collapsed(text.replace("$MTR_SUITE_DIR", "MTR_SUITE_DIR"))
        begin, end = place(lines, at, printed, kind)
        marks.append((begin, end))
        at = end
    below = [begin for begin, _ in marks[1:]] + [len(lines)]
    for (kind, text, fails), (_, end), stop in zip(found, marks, below):
        yield kind, text, fails, lines[end:stop]


def place(lines, start, printed, kind):
    """The lines at which a text was printed: a statement may have several."""
    for begin in range(start, len(lines)):
        joined = ""
        for end in range(begin, len(lines)):
            joined = collapsed(f"{joined} {lines[end]}")
            if joined == printed if kind == "echo" else joined.rstrip(";").rstrip() == printed and lines[end].endswith(";"):
                return begin, end + 1
            if not printed.startswith(joined):
                break
    raise Unreadable(f"the answers do not have {printed[:100]!r}")


# --- MariaDB's words in ours


def tokens(sql):
    return TOKEN.findall(sql)


def words_of(sql):
    """Tokens without the blanks between them."""
    return [token for token in tokens(sql) if token.strip()]


def bare(token):
    """A name or a text without its quotes."""
    return token[1:-1] if token[:1] in "'\"`" else token


def named(sql):
    """The table of `CREATE TABLE t`, `INSERT INTO t` and their like."""
    return bare(words_of(sql)[2])


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def ours(sql):
    """Quotes alone: of names, and of texts."""

    def one(token):
        if token.startswith("`"):
            return quoted(token[1:-1])
        return literal(token[1:-1].replace('""', '"')) if token.startswith('"') else token

    return "".join(map(one, tokens(sql)))


def split(words, mark):
    """Tokens divided at a mark that stands in no parentheses."""
    parts, depth = [[]], 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == mark and not depth:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def parenthesised(words, start):
    """The tokens between a parenthesis and its partner, and where what follows begins."""
    depth = 0
    for end in range(start, len(words)):
        depth += (words[end] == "(") - (words[end] == ")")
        if not depth:
            return words[start + 1 : end], end + 1
    raise Unreadable("a parenthesis is not closed")


def settings(words):
    """`name=value` among tokens, and the other tokens; blanks are gone."""
    found, rest, at = {}, [], 0
    while at < len(words):
        if words[at + 1 : at + 2] == ["="]:
            found[bare(words[at]).lower()] = bare(words[at + 2])
            at += 3
        else:
            rest.append(words[at])
            at += 1
    return found, rest


def filters(text):
    """`GZIP=6,ZSTD=1` as `gzip:6,zstd:1`."""
    return text.lower().replace("=", ":").replace("dictionary_encoding", "dictionary")


class Column:
    """A column of `CREATE TABLE`."""

    def __init__(self, words):
        self.options, rest = settings(words)
        self.name, kind, rest = bare(rest[0]), rest[1].lower(), rest[2:]
        width = None
        if rest[:1] == ["("]:
            inside, end = parenthesised(rest, 0)
            width, rest = int(inside[0]), rest[end:]
        lower = [word.lower() for word in rest]
        self.dimension = "dimension" in self.options
        if kind in ("datetime", "timestamp"):
            self.type = f"TIMESTAMP({-(-(width or 0) // 3) * 3})"
        else:
            self.type = TYPES[kind] + " UNSIGNED" * ("unsigned" in lower)
        # A truth value is a small number to MariaDB, and may be a dimension.
        if self.dimension and self.type == "BOOLEAN":
            self.type = "TINYINT"
        self.not_null = not self.dimension and any(pair == ("not", "null") for pair in zip(lower, lower[1:]))
        self.default = None
        if "default" in lower:
            value = rest[lower.index("default") + 1]
            # There is no day and no year 0.
            if not bare(value).startswith("0000") and value.lower() != "null":
                self.default = ours(value)

    def text(self):
        default = f" DEFAULT {self.default}" if self.default else ""
        return f"{quoted(self.name)} {self.type}{' NOT NULL' * self.not_null}{default}"

    def bounds(self):
        """The options of a dimension: whole numbers unless it has reals."""
        number = (lambda text: text) if self.type in ("REAL", "DOUBLE") else (lambda text: str(int(float(text))))
        if {"lower_bound", "upper_bound"} <= self.options.keys():
            low, high = (number(self.options[f"{end}_bound"]) for end in ("lower", "upper"))
            yield f"domain.{self.name}", f"{low}..{high}"
        if "tile_extent" in self.options:
            yield f"tile.{self.name}", number(self.options["tile_extent"])


class Table:
    """A table of a test, and the statement that makes it or opens it again."""

    def __init__(self, sql, suite, folder, number):
        words, at = words_of(sql), 3
        self.name, columns, keyed = named(sql), [], False
        if words[at : at + 1] == ["("]:
            inside, at = parenthesised(words, at)
            for part in split(inside, ","):
                if part[0].lower() in ("primary", "key", "index"):
                    keyed = keyed or part[0].lower() == "primary"
                else:
                    columns.append(Column(part))
        self.columns = columns
        said, _ = settings(words[at:])
        self.own = "uri" not in said
        options = {}
        if self.own:
            self.location = str(folder / f"array{number}")
            options |= self.new(said, keyed)
        else:
            # A number behind the name is a time, in milliseconds.
            uri, _, moment = re.fullmatch(r"(.*?)(@(\d+))?", said["uri"]).groups()
            self.location, moment = uri.replace("$MTR_SUITE_DIR", str(suite)), moment or said.get("open_at")
            if moment:
                options["at"] = (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=int(moment))).isoformat()
        if "encryption_key" in said:
            options["key"] = said["encryption_key"].encode().hex()
        self.options = options
        self.key = f", PRIMARY KEY ({', '.join(quoted(c.name) for c in columns if c.dimension)})" if self.own else ""

    def new(self, said, keyed):
        """The options of a new array. What cannot be said (the order of cells, offsets' filters) changes no answer."""
        options = {"dense": "true"} if said.get("array_type", "").upper() == "DENSE" else {"duplicates": str(not keyed).lower()}
        for column in self.columns:
            own = column.options.get("filters") or (column.dimension and said.get("coordinate_filters"))
            if own:
                options[f"filters.{column.name}"] = filters(own)
            if column.dimension:
                options |= column.bounds()
        return options

    def statement(self):
        columns = f"({', '.join(column.text() for column in self.columns)}{self.key}) " if self.columns else ""
        options = ", ".join(f"{literal(key)} {literal(value)}" for key, value in self.options.items())
        options = f" OPTIONS ({options})" if options else ""
        return f"CREATE EXTERNAL TABLE {quoted(self.name)} {columns}STORED AS AZULEJO LOCATION {literal(self.location)}{options}"


def insert(sql, table):
    """An `INSERT` without `DEFAULT` among its values, which DataFusion does not know: such columns are not named."""
    words = tokens(sql)
    lower = [word.lower() for word in words]
    if "default" not in lower:
        return ours(sql)
    at = lower.index("values")
    columns = [bare(word) for word in words[:at] if word.strip() and word not in "(),"][3:] or [c.name for c in table.columns]
    values, _ = parenthesised(words, words.index("(", at))
    values = ["".join(part).strip() for part in split(values, ",")]
    kept = [pair for pair in zip(columns, values, strict=True) if pair[1].lower() != "default"]
    names, values = ", ".join(quoted(name) for name, _ in kept), ", ".join(value for _, value in kept)
    return ours(f"INSERT INTO {table.name} ") + f"({names}) VALUES ({ours(values)})"


def load(sql, table, suite):
    """`LOAD DATA` of a file with a line of names, as `INSERT` of a CSV table."""
    file = re.search(r"INFILE\s+'([^']*)'", sql, re.I).group(1)
    columns = ", ".join(column.text() for column in table.columns)
    return (
        f"CREATE EXTERNAL TABLE \"the file\" ({columns}) STORED AS CSV LOCATION {literal(str(suite / 'test_data' / file))}"
        f' OPTIONS (has_header true); INSERT INTO {quoted(table.name)} SELECT * FROM "the file"'
    )


def evolve(sql):
    """`ALTER TABLE` as options of `azulejo evolve`, for which SQL has no statement here."""
    words = words_of(sql)[3:]
    if words[0].upper() == "DROP":
        return ["--drop-attr", bare(words[1])]
    inside, _ = parenthesised(words, words.index("("))
    column = Column(inside)
    own = column.options.get("filters")
    return ["--add-attr", f"{column.name} {EVOLVED[column.type]}" + (f" filters={filters(own)}" if own else "")]


# --- answers


def csv_rows(text):
    """Rows of CSV in which nothing is null, and two quotes are an empty text."""
    rows, row, at = [], [], 0
    while at < len(text):
        field = CSV_FIELD.match(text, at)
        value, at = field.group(1), field.end()
        row.append(value[1:-1].replace('""', '"') if value.startswith('"') else value or None)
        if field.group(2) != ",":
            rows.append(row)
            row = []
    return rows


def described(rows):
    """The columns' names and types, which a description says before the rows themselves."""
    for number in range(1, len(rows) - 1):
        names = [row[0] for row in rows[1 : number + 1]]
        if rows[number + 1] == names:
            return names, [row[1] for row in rows[1 : number + 1]], rows[number + 2 :]
    raise Unreadable("no description of columns")


def moment(text):
    """A time as it compares: without the zeros at its end."""
    text = text.replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def is_same(theirs, mine, kind):
    """Whether a printed value is a value of a type."""
    if theirs == "NULL" or mine is None:
        return theirs == "NULL" and mine is None
    if kind == "Boolean":
        return theirs == {"true": "1", "false": "0"}[mine]
    if "Binary" in kind:
        return bytes.fromhex(mine).decode() == theirs
    if re.match("Timestamp|Date|Time", kind):
        # MariaDB shows of a year nothing but its number.
        return moment(mine) == (f"{theirs}-01-01 00:00:00" if re.fullmatch(r"\d{4}", theirs) else moment(theirs))
    if kind.startswith("Float"):
        digits = len(theirs.partition(".")[2])
        near = abs(float(mine) - float(theirs)) <= 1e-6 * abs(float(theirs))
        # Averages of whole numbers have four digits and no more, other reals all that they need.
        return round(float(mine), digits) == float(theirs) and (digits == 4 or near)
    return mine == theirs


def difference(question, printed, names, kinds, rows, opened):
    """What is not as MariaDB has it, if anything is."""
    expected = [line.split("\t") for line in printed]
    header, expected = expected[0], expected[1:]
    # MyTile has the attributes of an array that is there in the order of a hash map.
    if opened and len(set(names)) == len(names) and set(names) == set(header):
        expected = [[row[header.index(name)] for name in names] for row in expected]
        header = names
    if len(header) != len(names):
        return f"columns {names}, MariaDB has {header}"
    for theirs, mine in zip(header, names):
        if re.fullmatch(r"\w+", theirs) and theirs != mine:
            return f"columns {names}, MariaDB has {header}"
    if len(rows) != len(expected):
        return f"{len(rows)} rows, MariaDB has {len(expected)}"
    alike = lambda theirs, mine: all(map(is_same, theirs, mine, kinds))  # noqa: E731
    if re.search(r"\border\s+by\b", question, re.I):
        return next((f"{mine}, MariaDB has {theirs}" for theirs, mine in zip(expected, rows) if not alike(theirs, mine)), None)
    left = list(expected)
    for mine in rows:
        found = next((theirs for theirs in left if alike(theirs, mine)), None)
        if found is None:
            return f"{mine} is none of MariaDB's {left}"
        left.remove(found)
    return None


# --- a test


class Test:
    """One test file: its tables, and what was found."""

    def __init__(self, program, suite, folder, name):
        self.program, self.suite, self.folder, self.name = program, suite, folder, name
        self.tables, self.left_out, self.made = {}, {}, 0
        self.same, self.done, self.passed, self.stated, self.different = 0, 0, collections.Counter(), [], []

    def call(self, *arguments):
        done = subprocess.run([str(self.program), *arguments], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr.strip()

    def ask(self, statement):
        """What the program says to a statement, with the tables that there are."""
        tables = [table.statement() for table in self.tables.values()]
        return self.call("sql", "--quiet", "--format", "csv", "; ".join([*tables, statement]))

    def reason(self, sql):
        """Why a statement is passed over."""
        text = collapsed(sql).lower()
        for pattern, reason in OWN:
            if re.match(pattern, text):
                return reason
        if text.startswith("create table"):
            if "uri=" in text and re.match(r"create table \S+ \(", text):
                return "some of the columns of an array that is there"
            return next((reason for pattern, reason in OWN_TABLES if re.search(pattern, text)), None)
        names = {bare(token) for token in tokens(sql)}
        return next((reason for table, reason in self.left_out.items() if table in names), None)

    def run(self):
        tests = self.suite / "t" / f"{self.name}.test"
        result = self.suite / "r" / f"{self.name}.result"
        found = list(items(tests.read_text()))
        for kind, sql, fails, printed in answers(found, result.read_text()):
            if kind == "sql":
                self.judge(sql, fails, [line for line in printed if line])

    def judge(self, sql, fails, printed):
        reason = self.reason(sql)
        word = sql.split(None, 1)[0].lower()
        if word in ("create", "drop"):
            name = named(sql)
            self.left_out.pop(name, None)
            if word == "create" and reason and not fails:
                self.left_out[name] = reason
        if reason and not fails:
            self.passed[reason] += 1
            return
        differs = self.refused(sql) if fails else getattr(self, word)(sql, printed)
        if differs is None:
            self.same, self.done = self.same + (word == "select"), self.done + (word != "select")
        elif "is missing (no such file)" in differs and str(self.suite) in differs:
            self.passed["files of its array that this checkout lacks"] += 1
        else:
            text = collapsed(sql)
            why = next((why for name, part, why in STATED if name == self.name and part in text), None)
            (self.different if why is None else self.stated).append((text, why or differs))

    def refused(self, sql):
        table = Table(sql, self.suite, self.folder, "refused")
        code, _, _ = self.ask(table.statement())
        return None if code else "no error, MariaDB has one"

    def command(self, statement):
        code, _, error = self.ask(statement)
        return error if code else None

    def create(self, sql, _):
        self.made += 1
        table = Table(sql, self.suite, self.folder, self.made)
        self.tables[table.name] = table
        # Opened once more, it is the same table.
        error = self.command("SELECT 1")
        if error:
            del self.tables[table.name]
            self.left_out[table.name] = "tables that could not be made"
        return error

    def drop(self, sql, _):
        name = named(sql)
        error = self.command(ours(sql))
        table = self.tables.pop(name)
        if table.own:
            shutil.rmtree(table.location, ignore_errors=True)
        return error

    def insert(self, sql, _):
        return self.command(insert(sql, self.tables[named(sql)]))

    def load(self, sql, _):
        name = bare(re.search(r"INTO\s+TABLE\s+(\S+)", sql, re.I).group(1))
        return self.command(load(sql, self.tables[name], self.suite))

    def alter(self, sql, _):
        table = self.tables[named(sql)]
        code, _, error = self.call("evolve", table.location, *evolve(sql))
        # It is as the array says from now on.
        table.columns, table.options = [], {}
        return error if code else None

    def select(self, sql, printed):
        question = ours(sql)
        code, text, error = self.ask(f"DESCRIBE {question}; {question}")
        if code:
            return error
        # Tables that are made say an empty line each.
        names = {bare(token) for token in tokens(sql)}
        opened = any(table.name in names and not table.own for table in self.tables.values())
        return difference(sql, printed, *described(csv_rows(text.lstrip("\n"))), opened)


def report(test, shows):
    passed = ", ".join(f"{count} {reason}" for reason, count in test.passed.most_common())
    parts = [f"{test.same} answers the same", f"{test.done} other statements done"]
    parts += [f"passed over: {passed}"] if passed else []
    parts += [f"{len(test.stated)} different as stated"] if test.stated else []
    parts += [f"{len(test.different)} DIFFERENT"] if test.different else []
    print(f"{test.name}: {'; '.join(parts)}", flush=True)
    for text, why in test.different + (test.stated if shows else []):
        print(f"  {text}\n    {why}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files whose names hold a text")
    parser.add_argument("--show", action="store_true", help="show stated differences too")
    args = parser.parse_args()
    suite = args.checkout.resolve() / "mysql-test" / "mytile"
    names = sorted(path.stem for path in (suite / "t").glob("*.test") if args.only in path.stem)
    tests = []
    for name in names:
        folder = args.folder.resolve() / name
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        test = Test(args.program.resolve(), suite, folder, name)
        try:
            test.run()
        except Unreadable as error:
            test.different.append(("the file", f"cannot be read: {error}"))
        report(test, args.show)
        tests.append(test)
    total = lambda of: sum(map(of, tests))  # noqa: E731
    passed = sum((test.passed for test in tests), collections.Counter())
    print("\npassed over:")
    for reason, count in passed.most_common():
        print(f"  {count:4} {reason}")
    same, done, wrong = total(lambda t: t.same), total(lambda t: t.done), total(lambda t: len(t.different))
    print(
        f"{len(tests)} files: {same} answers the same, {done} other statements done, {passed.total()} passed over,"
        f" {total(lambda t: len(t.stated))} different as stated, {wrong} different"
    )
    if wrong or not same:
        sys.exit(1)


main()
