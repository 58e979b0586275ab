"""The table of every route and every kind of caller, as `docs/access.md` shows it, made from the rules."""

from downburst.domain.access import SCOPES_OF, Role, Scope
from downburst_api.border.route_rules import RULES, Own, Rule

NOBODY, PUBLISHED = "no login", "no login, latency published"
CALLERS = (NOBODY, PUBLISHED, "viewer", "site", "operator", "admin")
MAY, OWN, NOT = "yes", "its own", ""


def verdict(rule: Rule, caller: str) -> str:
    """The right of such a caller to use a route with this rule."""
    if rule.scope is None:
        return NOT if rule.known and caller in (NOBODY, PUBLISHED) else MAY
    if caller in (NOBODY, PUBLISHED):
        return MAY if caller == PUBLISHED and rule.scope is Scope.LATENCY else NOT
    if rule.scope in SCOPES_OF[Role(caller)]:
        return MAY
    return OWN if caller == "site" and rule.own is not Own.NEVER else NOT


def rows() -> list[tuple[str, str, str, dict[str, str]]]:
    """Method, path, scope, and the verdict for each caller."""
    return [
        (
            method,
            path.replace(":anytext", ""),
            rule.scope or "",
            {caller: verdict(rule, caller) for caller in CALLERS},
        )
        for (method, path), rule in sorted(RULES.items(), key=lambda one: (one[0][1], one[0][0]))
    ]


def markdown() -> str:
    """The table of the documentation."""
    lines = [f"| route | right | {' | '.join(CALLERS)} |", f"|{'---|' * (len(CALLERS) + 2)}"]
    for method, path, scope, verdicts in rows():
        lines.append(f"| `{method} {path}` | {scope} | {' | '.join(verdicts.values())} |")
    return "\n".join(lines) + "\n"
