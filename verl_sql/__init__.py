"""verl_sql: reinforcement learning for text-to-SQL on verl.

Importing this package pulls in neither torch nor verl: verl loads it while it is itself being imported.
"""

__version__ = "0.1.0"
