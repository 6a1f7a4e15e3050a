"""The database tools a policy calls between its turns (ReToolSQL), usable without verl.

`toolbox.Toolbox` answers calls by name under a deadline; each tool is a file of its own; `schemas` describes them to
models; every text they give is database text made safe by `sqltext.quoting`. `integration.tools` hands them to verl.
"""

from verl_sql.tools.result import CallStatus, ToolResult
from verl_sql.tools.toolbox import TOOL_NAMES, Toolbox

__all__ = ["TOOL_NAMES", "CallStatus", "ToolResult", "Toolbox"]
