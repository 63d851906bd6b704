"""`azulejo serve --flight-sql` as ADBC sees it: reading, parameters, metadata, changes, bulk ingestion, TLS, errors, cancelling.

usage: sql_adbc.py PROGRAM
"""

import contextlib
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import pyarrow as pa
import trustme
from adbc_driver_flightsql import DatabaseOptions, dbapi

ROWS = """station,day,temperature
Helgoland,2024-05-01,11.5
Helgoland,2024-05-02,12
Zugspitze,2024-05-01,-3.5
Zugspitze,2024-05-02,
"""
KINDS = """
CREATE TABLE kinds WITH (location = 'data/kinds', dimensions = 'id') AS
SELECT arrow_cast(column1, 'Int64') AS id, arrow_cast(column2, 'Int8') AS i8, arrow_cast(column2, 'UInt64') AS u64,
    arrow_cast(column2, 'Float32') AS f32, arrow_cast(column2, 'Boolean') AS truth, arrow_cast(column3, 'LargeUtf8') AS words,
    arrow_cast(column3, 'LargeBinary') AS bytes, arrow_cast(column4, 'Date32') AS day,
    arrow_cast(column5, 'Timestamp(Nanosecond, None)') AS moment
FROM (VALUES (1, 0, 'ä', '1969-12-31', '1969-12-31T23:59:59.999999999'), (2, 1, '', '2024-02-29', '2024-02-29T12:00:00'),
    (3, NULL, NULL, NULL, NULL))
"""
# Rows without end, made one by one.
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(x) WHERE x % 7 = 9"
# Rows that come at once, and go on for long.
MANY = "SELECT x FROM generate_series(1, 100000000000) AS t(x)"
EMPTY = "SELECT * FROM w WHERE station = 'nowhere'"


@contextlib.contextmanager
def serve(program, folder, *options):
    """A server, and what it said."""
    line = [program, "serve", "--flight-sql", "data", "w=data/weather", "--json", *options]
    server = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        text = ""
        while True:
            piece = server.stdout.readline()
            assert piece, text
            text += piece
            with contextlib.suppress(ValueError):
                said = json.loads(text)
                break
        yield said
        assert server.poll() is None, "the server has ended"
    finally:
        server.terminate()
        server.wait()


def connect(url, token, **more):
    options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {token}", **more}
    return dbapi.connect(url, db_kwargs=options, autocommit=True)


def refused(action, reason):
    begun = time.monotonic()
    try:
        action()
    except dbapi.Error as error:
        assert reason in str(error), (reason, str(error))
    else:
        raise AssertionError(f"nothing was refused: {reason}")
    return time.monotonic() - begun


def refused_statement(cursor, statement, reason):
    refused(lambda: (cursor.execute(statement), cursor.fetchall()), reason)


def queries(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT station, max(temperature) AS m FROM w GROUP BY station ORDER BY station")
    assert cursor.fetch_arrow_table().to_pydict() == {"station": ["Helgoland", "Zugspitze"], "m": [12.0, -3.5]}
    cursor.execute(EMPTY)
    nothing = cursor.fetch_arrow_table()
    assert nothing.num_rows == 0 and nothing.column_names == ["station", "day", "temperature"]
    assert cursor.adbc_execute_schema("SELECT day FROM w").names == ["day"]
    cursor.execute("SELECT * FROM data.public.kinds ORDER BY id")
    kinds = cursor.fetch_arrow_table()
    moment = kinds.column_names.index("moment")
    # Python has no nanoseconds.
    assert kinds["moment"].cast(pa.int64()).to_pylist() == [-1, 1709208000 * 10**9, None]
    assert kinds.remove_column(moment).to_pylist() == [
        {"id": 1, "i8": 0, "u64": 0, "f32": 0.0, "truth": False, "words": "ä", "bytes": "ä".encode(),
         "day": datetime.date(1969, 12, 31)},
        {"id": 2, "i8": 1, "u64": 1, "f32": 1.0, "truth": True, "words": "", "bytes": b"",
         "day": datetime.date(2024, 2, 29)},
        {"id": 3, "i8": None, "u64": None, "f32": None, "truth": None, "words": None, "bytes": None, "day": None},
    ]
    # Several results at once, and one that is left where it is.
    other = connection.cursor()
    cursor.execute("SELECT x FROM generate_series(1, 100000) AS t(x)")
    other.execute("SELECT 2")
    assert (cursor.fetchone(), other.fetchall()) == ((1,), [(2,)])
    assert len(cursor.fetchall()) == 99_999
    cursor.execute(MANY)
    assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
    other.close()
    cursor.close()


def parameters(connection):
    cursor = connection.cursor()
    day = datetime.date(2024, 5, 1)
    cursor.execute("SELECT day, temperature FROM data.public.weather WHERE day > ? AND station = ?", (day, "Helgoland"))
    assert cursor.fetchall() == [(datetime.date(2024, 5, 2), 12.0)]
    # Once prepared, asked several times.
    statement = "SELECT count(*) FROM w WHERE station = $1 AND (temperature < $2 OR $2 IS NULL)"
    cursor.adbc_prepare(statement)
    for values, count in [(("Helgoland", 12.0), 1), (("Zugspitze", 0.0), 1), (("Zugspitze", None), 2), (("x", 1.0), 0)]:
        cursor.execute(statement, values)
        assert cursor.fetchall() == [(count,)], values
    # Whole numbers where reals are wanted, texts where days are.
    cursor.execute("SELECT count(*) FROM w WHERE temperature < ? AND day = ?", (12, "2024-05-01"))
    assert cursor.fetchall() == [(2,)]
    cursor.execute("SELECT id FROM data.public.kinds WHERE words = ? OR bytes = ? ORDER BY id", ("", "ä".encode()))
    assert cursor.fetchall() == [(1,), (2,)]
    cursor.execute("SELECT station FROM w WHERE station = ?", ("'; DROP TABLE w --",))
    assert cursor.fetchall() == []
    refused(lambda: (cursor.execute("SELECT ? + ?", (1,)), cursor.fetchall()), "")
    cursor.close()


def metadata(connection):
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Azulejo", info
    assert connection.adbc_get_table_types() == ["TABLE"]
    assert connection.adbc_get_table_schema("w").names == ["station", "day", "temperature"]
    kinds = connection.adbc_get_table_schema("kinds", catalog_filter="data", db_schema_filter="public")
    assert kinds.field("moment").type == pa.timestamp("ns") and kinds.field("id").type == pa.int64(), kinds
    refused(lambda: connection.adbc_get_table_schema("nothing"), "")

    def objects(**wanted):
        found = connection.adbc_get_objects(**wanted).read_all().to_pylist()
        return {
            catalog["catalog_name"]: {
                schema["db_schema_name"]: {
                    table["table_name"]: [column["column_name"] for column in table["table_columns"] or []]
                    for table in schema["db_schema_tables"] or []
                }
                for schema in catalog["catalog_db_schemas"] or []
            }
            for catalog in found
        }

    weather = ["station", "day", "temperature"]
    everything = objects(depth="all")
    assert everything["azulejo"]["public"] == {"w": weather}, everything
    assert everything["data"]["public"]["weather"] == weather and len(everything["data"]["public"]["kinds"]) == 9
    assert objects(depth="catalogs") == {"azulejo": {}, "data": {}}
    assert objects(depth="db_schemas", catalog_filter="data") == {"data": {"public": {}}}
    assert objects(depth="tables", catalog_filter="data") == {"data": {"public": {"kinds": [], "weather": []}}}
    assert objects(depth="tables", table_name_filter="w%") == {
        "azulejo": {"public": {"w": []}}, "data": {"public": {"weather": []}},
    }
    narrow = objects(depth="columns", table_name_filter="weather", column_name_filter="d%")
    assert narrow["data"]["public"] == {"weather": ["day"]}, narrow
    none = objects(depth="tables", table_types_filter=["VIEW"])
    assert all(tables == {} for catalog in none.values() for tables in catalog.values()), none
    keys = connection.adbc_get_objects(depth="all", catalog_filter="azulejo").read_all().to_pylist()
    columns = keys[0]["catalog_db_schemas"][0]["db_schema_tables"][0]["table_columns"]
    assert [column["ordinal_position"] for column in columns] == [1, 2, 3], columns


def changes(connection):
    cursor = connection.cursor()
    cursor.execute("INSERT INTO w VALUES ('Brocken', '2024-05-01', 3.25)")
    assert cursor.fetchall() == [(1,)]
    many = [("A", datetime.date(2024, 1, day), float(day)) for day in range(1, 20)]
    cursor.executemany("INSERT INTO w VALUES (?, ?, ?)", many)
    assert cursor.rowcount == 19
    cursor.execute("DELETE FROM w WHERE station = 'A' AND day > DATE '2024-01-10'")
    cursor.fetchall()
    cursor.execute("UPDATE w SET temperature = 0 WHERE station = 'A' AND day = DATE '2024-01-10'")
    assert cursor.fetchall() == [(1,)]
    cursor.execute("SELECT count(*), sum(temperature) FROM w")
    assert cursor.fetchall() == [(15, 68.25)]
    refused_statement(cursor, "COPY w TO 'stolen.csv'", "COPY")
    refused_statement(cursor, "CREATE TABLE a AS SELECT 1", "DDL")
    refused_statement(cursor, "SET datafusion.execution.batch_size = 1", "")
    refused_statement(cursor, "SELECT 1; SELECT 2", "one statement")
    cursor.close()


def ingestion(connection):
    cursor = connection.cursor()
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(n) for n in range(365)]
    rows = pa.table({"temperature": pa.array([n / 2 for n in range(365)]), "day": days, "station": ["Ingested"] * 365})
    # Columns by name; several batches; types that fit.
    batches = rows.to_reader(max_chunksize=50)
    # A cursor keeps the names.
    with connection.cursor() as other:
        assert other.adbc_ingest("weather", batches, mode="append", catalog_name="data", db_schema_name="public") == 365
    without = pa.table({"station": ["Without"], "day": ["2023-01-01"]})
    assert cursor.adbc_ingest("w", without, mode="create_append") == 1
    assert cursor.adbc_ingest("w", rows.slice(0, 0), mode="append") == 0
    cursor.execute("SELECT station, count(*), sum(temperature) FROM w WHERE station LIKE '%i%t%' OR station LIKE 'In%' GROUP BY 1 ORDER BY 1")
    assert cursor.fetchall() == [("Ingested", 365, 33215.0), ("Without", 1, None), ("Zugspitze", 2, -3.5)]
    refused(lambda: cursor.adbc_ingest("w", rows), "append")
    refused(lambda: cursor.adbc_ingest("w", rows, mode="replace"), "replaced")
    refused(lambda: cursor.adbc_ingest("new", rows), "made here")
    refused(lambda: cursor.adbc_ingest("new", rows, mode="append"), "new")
    refused(lambda: cursor.adbc_ingest("w", rows, mode="append", temporary=True), "temporary")
    refused(lambda: cursor.adbc_ingest("w", rows.rename_columns(["t", "day", "station"]), mode="append"), "no column t")
    refused(lambda: cursor.adbc_ingest("w", rows.drop(["day"]), mode="append"), "day")
    wrong = pa.table({"station": ["Half"] * 2, "day": ["2023-01-01", "no day"]})
    refused(lambda: cursor.adbc_ingest("w", wrong, mode="append"), "no day")
    cursor.execute("SELECT count(*) FROM w WHERE station = 'Half'")
    assert cursor.fetchall() == [(0,)]
    cursor.close()


def cancelling(connection):
    """With room for one query: those that were given up leave it."""
    for statement in (ENDLESS, MANY):
        cursor = connection.cursor()
        threading.Timer(0.5, cursor.adbc_cancel).start()
        took = refused(lambda: (cursor.execute(statement), cursor.fetch_arrow_table()), "")  # noqa: B023
        assert took < 5, took
        cursor.close()
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]
    cursor.adbc_statement.set_options(**{"adbc.flight.sql.rpc.timeout_seconds.fetch": "1.0"})
    assert refused(lambda: (cursor.execute(ENDLESS), cursor.fetchall()), "") < 5
    cursor.close()
    # Closed in the middle of its rows.
    cursor = connection.cursor()
    cursor.execute(MANY)
    cursor.fetchone()
    cursor.close()
    cursor = connection.cursor()
    took = refused(lambda: (cursor.execute(ENDLESS), cursor.fetchall()), "within 3s")
    assert 2 < took < 10, took
    cursor.execute("SELECT count(*) FROM data.public.kinds")
    assert cursor.fetchall() == [(3,)]
    cursor.close()


def read_only(connection):
    cursor = connection.cursor()
    for statement in ("INSERT INTO w VALUES ('B', '2024-05-01', 1)", "DELETE FROM w", "UPDATE w SET temperature = 1", "TRUNCATE TABLE w"):
        refused_statement(cursor, statement, "read-only")
    rows = pa.table({"station": ["B"], "day": [datetime.date(2024, 5, 1)], "temperature": [1.0]})
    refused(lambda: cursor.adbc_ingest("w", rows, mode="append"), "read-only")
    refused_statement(cursor, "SELECT * FROM '/etc/passwd'", "not found")
    refused_statement(cursor, "SELEC 1", "SELEC")
    refused_statement(cursor, "SELECT missing FROM w", "missing")
    refused_statement(cursor, "SELECT 1 / 0", "ivide by zero")
    refused_statement(cursor, "SELECT * FROM w TIMESTAMP AS OF 'no time'", "no time")
    cursor.execute("SELECT count(*) FROM w TIMESTAMP AS OF '2000-01-01'")
    assert cursor.fetchall() == [(0,)]
    # After errors, as before.
    cursor.execute("SELECT count(*) FROM w")
    assert cursor.fetchall() == [(4,)]
    cursor.close()


def behind_tls(program, folder):
    authority, stranger = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (folder / "token").write_text("9f8e7d6c-secret\n")
    options = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "token", "--query-time", "3", "--queries", "1"]
    roots = DatabaseOptions.TLS_ROOT_CERTS.value
    with serve(program, folder, *options) as said:
        address = said["url"].split("://")[1].rsplit(":", 1)[1]
        url, token = f"grpc+tls://localhost:{address}", "9f8e7d6c-secret"
        trusted = {roots: authority.cert_pem.bytes().decode()}
        with connect(url, token, **trusted) as connection:
            queries_behind_one = connection.cursor()
            queries_behind_one.execute("SELECT count(*) FROM w")
            assert queries_behind_one.fetchall() == [(4,)]
            queries_behind_one.close()
            read_only(connection)
            cancelling(connection)

        def asked(url, token, **more):
            with connect(url, token, **more) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                cursor.fetchall()

        asked(url, token, **trusted)
        refused(lambda: asked(url, token + "x", **trusted), "token")
        refused(lambda: asked(url, "", **trusted), "token")
        for more in ({}, {roots: stranger.cert_pem.bytes().decode()}):
            refused(lambda: asked(url, token, **more), "certificate")  # noqa: B023
        refused(lambda: asked(url.replace("grpc+tls", "grpc"), token), "")
        asked(url, token, **trusted)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "w.csv").write_text(ROWS)
        run = lambda *line: subprocess.run([program, *line], check=True, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: E731
        run("import", "w.csv", "data/weather", "--dims", "station,day", "--unique", "--quiet")
        run("sql", KINDS)
        behind_tls(program, folder)
        with serve(program, folder, "--writable") as said, connect(said["url"], said["token"]) as connection:
            queries(connection)
            parameters(connection)
            metadata(connection)
            changes(connection)
            ingestion(connection)
    print("ADBC reads and changes tables over Flight SQL")


if __name__ == "__main__":
    main()
