"""Chains of CTEs (CoCTE) from gold queries: by rule and by LLM, verified by execution, filtered for diversity."""
