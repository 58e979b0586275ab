"""Why no subscription wants an id, as far as patterns tell.

The node decides by its own expressions; these are RE2's, which read the same syntax and take time in proportion to
the id, whatever pattern a site wrote. Where RE2 can't read a pattern, nothing is said of it.
"""

from collections.abc import Sequence

import re2

from downburst.model import Subscription


def why_unwanted(product_id: str, wishes: Sequence[Subscription]) -> str | None:
    """What takes an id out of the subscriptions, the NOT patterns before those that simply differ."""
    excluding = [wish for wish in wishes if _fits(wish.pattern, product_id) and _fits(wish.not_pattern, product_id)]
    if excluding:
        patterns = " and ".join(sorted({repr(wish.not_pattern) for wish in excluding}))
        return f"the NOT pattern {patterns} takes it out"
    if wishes and all(_fits(wish.pattern, product_id) is False for wish in wishes):
        return f"it does not match {' or '.join(sorted({repr(wish.pattern) for wish in wishes}))}"
    return None


def _fits(pattern: str | None, product_id: str) -> bool | None:
    """Whether the pattern is found in the id; None if it can't be read."""
    if pattern is None:
        return False
    try:
        return re2.search(pattern, product_id, options=_QUIET) is not None
    except re2.error:
        return None


_QUIET = re2.Options()
_QUIET.log_errors = False
