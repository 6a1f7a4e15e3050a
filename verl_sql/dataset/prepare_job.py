"""The preparation of questions as a job that can be spread: batches of candidates in, their decisions as text out."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from verl_sql.database.catalog import Catalog
from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits
from verl_sql.dataset.candidate import Candidate
from verl_sql.dataset.prepare import Preparation, to_json
from verl_sql.dataset.settings import Settings
from verl_sql.dataset.tables_json import read_tables

Decided = tuple[str, str]
"""Lines of `prepare.to_json`, and of `golds.jsonl`."""


@dataclass(frozen=True, slots=True)
class PrepareJob:
    """What to decide by: see `build.Dataset` and `Settings`."""

    settings: Settings
    db_root: Path | None
    tables: Path | None

    def anywhere(self) -> "PrepareJob":
        """The same with whole paths, since it may be opened in another working folder."""
        s = self.settings
        template = os.path.abspath(s.template) if s.template.endswith(".jinja") else s.template
        settings = replace(s, template=template, replies=os.path.abspath(s.replies) if s.replies else None)
        root, tables = (path.absolute() if path else None for path in (self.db_root, self.tables))
        return PrepareJob(settings, root, tables)

    @contextmanager
    def open(self, workers: int, hands: int) -> Iterator[Callable[[Sequence[Candidate]], Decided]]:
        """See `spreading.job.Job`.

        Raises:
            DatabaseNotFound: the database root is not a folder.
            FileNotFoundError: there is no such prompt template.
            AskingError: a model is not there.
        """
        catalog = Catalog(self.db_root) if self.db_root is not None else None
        schemas = read_tables(self.tables) if self.tables else {}
        seconds = self.settings.timeout
        with (
            Executor(workers, seconds, Limits()) as forwards,
            Executor(workers, seconds, Limits(backwards=True)) as backwards,
        ):
            preparation = Preparation(self.settings.shared_by(hands), catalog, forwards, backwards, schemas)
            yield lambda batch: _decide(preparation, batch)


def _decide(preparation: Preparation, batch: Sequence[Candidate]) -> Decided:
    """The decisions about a batch, and what its golds gave."""
    decided = preparation.decide(batch)
    return "".join(f"{to_json(p)}\n" for p in decided), preparation.golds.record.take()
