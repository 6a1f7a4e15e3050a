"""The non-empty term of ReToolSQL."""

from verl_sql.rewards.sample import Sample


def nonempty(sample: Sample) -> float:
    """1 when the prediction runs and returns at least one cell that is not NULL (ReToolSQL, Table 1), else 0."""
    pred = sample.pred
    return float(bool(sample.sql) and pred.ok and not pred.is_empty and not pred.all_null)
