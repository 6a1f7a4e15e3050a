"""What M-Schema costs beside the bare queries for the same values, in one run.

    python benchmarks/mschema.py --db-root databases [--rounds 5]

For every database under the root: `bare` reads the schema's pragmas and five distinct values a column and renders
nothing; `mschema` renders the database. CPU seconds, best of the rounds. Asked for: at most twice the bare queries.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from verl_sql.database.catalog import Catalog
from verl_sql.database.introspect import open_for_reading, schema_of
from verl_sql.schema.render import render_schema


def bare(file: Path) -> None:
    """The queries without the text."""
    with open_for_reading(file) as connection:
        for table in schema_of(connection, file.stem).tables:
            for column in table.columns:
                name = column.name.replace('"', '""')
                connection.execute(f'SELECT DISTINCT "{name}" FROM "{table.name}" NOT INDEXED LIMIT 5').fetchall()


def seconds(work: Callable[[Path], object], files: Sequence[Path]) -> float:
    """CPU seconds of one pass over the files."""
    began = time.process_time()
    for file in files:
        work(file)
    return time.process_time() - began


def main() -> None:
    """Measure in turn, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db-root", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    catalog = Catalog(options.db_root)
    files = [catalog.path(db_id) for db_id in catalog.db_ids()]
    passes = [(seconds(bare, files), seconds(render_schema, files)) for _ in range(options.rounds)]
    plain, rendered = (min(times) for times in zip(*passes, strict=True))
    print(f"{len(files)} databases: bare {plain:.3f} s, M-Schema {rendered:.3f} s, ratio {rendered / plain:.2f}")


if __name__ == "__main__":
    main()
