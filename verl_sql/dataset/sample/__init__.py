"""The bundled sample: small BIRD-layout databases, questions, gold SQL and gold chains of CTEs, all from one seed.

It exists so that every recipe runs end to end without a download. `declarations` says what the databases hold,
`databases` builds them, `draw` and `templates` make questions, `writer` splits and writes them in BIRD's layout.
"""

from verl_sql.dataset.sample.writer import SampleSizes, write_sample

__all__ = ["SampleSizes", "write_sample"]
