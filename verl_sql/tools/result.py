"""What a tool call gave, and the words for how it ended."""

from dataclasses import dataclass
from enum import StrEnum

from verl_sql.database.execution import Status


class CallStatus(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    """It gave what was asked for, be it nothing."""
    ERROR = "error"
    """SQLite refused the query."""
    TIMEOUT = "timeout"
    """The query, or the whole call with its waiting, ran out of time."""
    FORBIDDEN = "forbidden"
    """The query asked for more than reading."""
    TOO_LARGE = "too_large"
    """The result is beyond the executor's caps."""
    BAD_ARGUMENTS = "bad_arguments"
    """An argument is missing, of another kind, or names no table or column."""
    UNKNOWN_TOOL = "unknown_tool"
    """There is no tool of that name."""
    BAD_CALL = "bad_call"
    """The call is no JSON object with a name and arguments."""
    FAULT = "fault"
    """The database or the machine is at fault, not the policy."""


CALL_STATUS = {status: CallStatus(status.value) for status in Status}
"""The status of a call whose query ended so."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call.

    Attributes:
        text: what the policy reads; neutral, so that it ends no turn and looks like no call.
        status: how the call ended.
        seconds: wall clock from the call to the answer.
    """

    text: str
    status: CallStatus = CallStatus.OK
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it gave what was asked for."""
        return self.status is CallStatus.OK


class CallFailed(Exception):
    """Ends a tool's work early with what the policy is told."""

    def __init__(self, status: CallStatus, text: str) -> None:
        """The status and the text of the result."""
        super().__init__(text)
        self.status, self.text = status, text
