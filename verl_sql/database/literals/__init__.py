"""Look a literal up: which cells of a database are spelled like these words, by BM25 over its text values.

`index` says where a database's index is and makes it once, `build` fills it, `search` asks it through the executor.
"""

from verl_sql.database.literals.index import ensure_index, index_path
from verl_sql.database.literals.search import Literal, asearch, search

__all__ = ["Literal", "asearch", "ensure_index", "index_path", "search"]
