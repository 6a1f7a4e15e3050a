"""The QATCH term of Think2SQL: partial credit by cells."""

from verl_sql.rewards.sample import Sample

COMPARATOR = "qatch"
"""The comparator that gives cp, cr and tc."""


def qatch(sample: Sample) -> float:
    """mean(CP, CR, TC) (Think2SQL, Appendix D); 0 for a prediction that failed, 1 when both results are empty.

    CP = |cells(P) ∩ cells(T)| / |cells(P)|, CR = the same over |cells(T)|, cells as sets of raw values;
    TC = min(|T|/|P|, |P|/|T|) over tuples. The paper's Eq. 7 and 8 print the two denominators the other way round
    than its text; the mean is the same.
    """
    return (cell_precision(sample) + cell_recall(sample) + tuple_cardinality(sample)) / 3


def cell_precision(sample: Sample) -> float:
    """CP, 0 for a failed prediction."""
    return _value(sample, "cp")


def cell_recall(sample: Sample) -> float:
    """CR, 0 for a failed prediction."""
    return _value(sample, "cr")


def tuple_cardinality(sample: Sample) -> float:
    """TC, 0 for a failed prediction."""
    return _value(sample, "tc")


def _value(sample: Sample, name: str) -> float:
    """One of the three, 0 unless the prediction ran."""
    return sample.value(name) if sample.sql and sample.pred.ok else 0.0
