"""Why no subscription wants an id, as far as patterns tell.

The node decides by its own expressions; these are RE2's, which read the same syntax and take time in proportion to
the id, whatever pattern a site wrote. Where RE2 can't read a pattern, nothing is said of it.
"""

from collections.abc import Sequence

import re2

from downburst.domain.rights import Limit
from downburst.domain.subscriptions import Subscription


def why_unwanted(product_id: str, wishes: Sequence[Subscription]) -> str | None:
    """What takes an id out of the subscriptions, the NOT patterns before those that simply differ."""
    excluding = [wish for wish in wishes if _fits(wish.pattern, product_id) and _fits(wish.not_pattern, product_id)]
    if excluding:
        patterns = " and ".join(sorted({repr(wish.not_pattern) for wish in excluding}))
        return f"the NOT pattern {patterns} excludes it"
    if wishes and all(_fits(wish.pattern, product_id) is False for wish in wishes):
        return f"it does not match {' or '.join(sorted({repr(wish.pattern) for wish in wishes}))}"
    return None


def is_beyond_limits(product_id: str, wishes: Sequence[Subscription], limits: Sequence[Limit]) -> bool:
    """Whether the site asks for the id and may not have it: no limit grants what a subscription wants."""
    asked = any(_wants(wish.pattern, wish.not_pattern, product_id) for wish in wishes)
    return asked and bool(limits) and all(_wants(it.pattern, it.not_pattern, product_id) is False for it in limits)


def may_see(product_id: str, limits: Sequence[Limit]) -> bool:
    """Whether a site with these limits to a feed may know of the product; what can't be told is not shown."""
    return not limits or any(_wants(limit.pattern, limit.not_pattern, product_id) for limit in limits)


def _wants(pattern: str, not_pattern: str | None, product_id: str) -> bool | None:
    """Whether one pattern is found and the other is not; None if that can't be told."""
    fits, excluded = _fits(pattern, product_id), _fits(not_pattern, product_id)
    if fits is False or excluded:
        return False
    return None if fits is None or excluded is None else True


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
