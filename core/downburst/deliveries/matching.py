"""Why no subscription matches an id, as far as the patterns show.

The node decides with its own regular expressions; these are RE2's, which have the same syntax and take time in
proportion to the id for any pattern. A pattern that RE2 can't read yields no statement.
"""

from collections.abc import Sequence

import re2

from downburst.domain.subscriptions import Limit, Subscription


def why_unwanted(product_id: str, wishes: Sequence[Subscription]) -> str | None:
    """The reason why the subscriptions exclude an id; NOT patterns before those that simply differ."""
    excluding = [wish for wish in wishes if _fits(wish.pattern, product_id) and _fits(wish.not_pattern, product_id)]
    if excluding:
        patterns = " and ".join(sorted({repr(wish.not_pattern) for wish in excluding}))
        return f"the NOT pattern {patterns} excludes it"
    if wishes and all(_fits(wish.pattern, product_id) is False for wish in wishes):
        return f"it does not match {' or '.join(sorted({repr(wish.pattern) for wish in wishes}))}"
    return None


def is_beyond_limits(product_id: str, wishes: Sequence[Subscription], limits: Sequence[Limit]) -> bool:
    """True if the site requests the id without permission: no limit grants what a subscription wants."""
    asked = any(_wants(wish.pattern, wish.not_pattern, product_id) for wish in wishes)
    return asked and bool(limits) and all(_wants(it.pattern, it.not_pattern, product_id) is False for it in limits)


def may_see(product_id: str, limits: Sequence[Limit]) -> bool:
    """True if a site with these limits to a feed may know of the product; an undecidable case is False."""
    return not limits or any(_wants(limit.pattern, limit.not_pattern, product_id) for limit in limits)


def _wants(pattern: str, not_pattern: str | None, product_id: str) -> bool | None:
    """True if one pattern is found and the other is not; None if undecidable."""
    fits, excluded = _fits(pattern, product_id), _fits(not_pattern, product_id)
    if fits is False or excluded:
        return False
    return None if fits is None or excluded is None else True


def _fits(pattern: str | None, product_id: str) -> bool | None:
    """True if the pattern is found in the id; None if it can't be read."""
    if pattern is None:
        return False
    try:
        return re2.search(pattern, product_id, options=_QUIET) is not None
    except re2.error:
        return None


_QUIET = re2.Options()
_QUIET.log_errors = False
