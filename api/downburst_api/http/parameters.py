"""Parameters of routes: the hub, the caller, numbers in paths."""

from typing import Annotated

from fastapi import Depends, Path

from downburst.domain.access import Caller
from downburst_api.border.authorization import caller_of
from downburst_api.runtime import Runtime, runtime_of

Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]
