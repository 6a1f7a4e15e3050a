"""Build the indexes of a folder of databases ahead of a run: `python -m verl_sql.database.literals DB_ROOT`.

A call that meets a database without an index waits for it to be built, at most until its deadline; on databases of many
gigabytes the first calls of a run would all be told to wait.
"""

import argparse
import sqlite3
import sys
from collections.abc import Sequence

from tqdm import tqdm

from verl_sql.database.catalog import Catalog
from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable
from verl_sql.database.literals.index import ensure_index


def main(argv: Sequence[str] | None = None) -> int:
    """Build what is not there; exit status 1 when some database could not be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("db_root")
    parser.add_argument("--folder", help="where indexes are kept; VERL_SQL_LITERALS, or beside the databases")
    options = parser.parse_args(argv)
    try:
        catalog = Catalog(options.db_root)
    except DatabaseNotFound as error:
        print(f"verl_sql: {error}", file=sys.stderr)
        return 2
    failed = 0
    for db_id in tqdm(catalog.db_ids(), desc="literals", unit=" databases", disable=None):
        try:
            ensure_index(catalog.path(db_id), options.folder)
        except (DatabaseUnusable, OSError, sqlite3.Error) as error:
            failed += 1
            print(f"verl_sql: {db_id} has no index of literals: {error}", file=sys.stderr)
    print(f"literals: {len(catalog.db_ids()) - failed} databases indexed, {failed} could not be read")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
