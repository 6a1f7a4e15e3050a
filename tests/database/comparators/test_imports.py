"""The comparators are imported by every worker process: they must bring nothing heavy along."""

import subprocess
import sys

HEAVY = ("sqlglot", "torch", "pyarrow", "openai", "asyncio", "typer")


def test_comparators_import_nothing_heavy() -> None:
    code = (
        "import sys, verl_sql.database.comparators;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
