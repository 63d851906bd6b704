"""`azulejo serve --flight-sql` as ADBC sees it. By hand: it needs adbc-driver-flightsql and pyarrow from PyPI, and a program
that was built with the feature flight-sql:

    python xtask/python/adbc.py target/debug/azulejo
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

from adbc_driver_flightsql import DatabaseOptions, dbapi

ROWS = """station,day,temperature
Helgoland,2024-05-01,11.5
Helgoland,2024-05-02,12
Zugspitze,2024-05-01,-3.5
Zugspitze,2024-05-02,
"""


def serve(program, folder):
    """A server, and what it said."""
    (folder / "w.csv").write_text(ROWS)
    made = [program, "import", "w.csv", "data/weather", "--dims", "station,day", "--quiet"]
    subprocess.run(made, check=True, cwd=folder)
    line = [program, "serve", "--flight-sql", "data", "w=data/weather", "--writable", "--json"]
    server = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=folder)
    text = ""
    while True:
        piece = server.stdout.readline()
        assert piece, text
        text += piece
        try:
            return server, json.loads(text)
        except ValueError:
            pass


def refused(cursor, statement, reason):
    try:
        cursor.execute(statement)
        cursor.fetchall()
    except dbapi.Error as error:
        assert reason in str(error), error
    else:
        raise AssertionError(f"{statement} was not refused")


def check(url, token):
    key = DatabaseOptions.AUTHORIZATION_HEADER.value
    with dbapi.connect(url, db_kwargs={key: f"Bearer {token}"}, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT station, max(temperature) AS m FROM w GROUP BY station ORDER BY station")
        assert cursor.fetch_arrow_table().to_pydict() == {"station": ["Helgoland", "Zugspitze"], "m": [12.0, -3.5]}
        asked = (datetime.date(2024, 5, 1), "Helgoland")
        cursor.execute("SELECT day, temperature FROM data.public.weather WHERE day > ? AND station = ?", asked)
        assert cursor.fetchall() == [(datetime.date(2024, 5, 2), 12.0)]
        cursor.execute("INSERT INTO w VALUES ('Brocken', '2024-05-01', 3.25)")
        assert cursor.fetchall() == [(1,)]
        many = [("A", datetime.date(2024, 1, day), float(day)) for day in range(1, 20)]
        cursor.executemany("INSERT INTO w VALUES (?, ?, ?)", many)
        assert cursor.rowcount == 19
        cursor.execute("DELETE FROM w WHERE station = 'A' AND day > DATE '2024-01-10'")
        cursor.fetchall()
        cursor.execute("SELECT count(*), sum(temperature) FROM w")
        assert cursor.fetchall() == [(15, 78.25)]
        assert connection.adbc_get_info()["vendor_name"] == "Azulejo"
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        assert {catalog["catalog_name"] for catalog in objects} == {"azulejo", "data"}
        assert connection.adbc_get_table_types() == ["TABLE"]
        assert connection.adbc_get_table_schema("w").names == ["station", "day", "temperature"]
        refused(cursor, "COPY w TO 'stolen.csv'", "COPY")
        refused(cursor, "SELECT * FROM '/etc/passwd'", "not found")
        refused(cursor, "CREATE TABLE a AS SELECT 1", "DDL")
        cursor.close()
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        refused(cursor, "SELECT 1", "token")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        server, said = serve(program, pathlib.Path(folder))
        try:
            check(said["url"], said["token"])
        finally:
            server.terminate()
            server.wait()
    print("ADBC reads and changes tables over Flight SQL")


if __name__ == "__main__":
    main()
