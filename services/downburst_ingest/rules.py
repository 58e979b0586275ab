"""Rules that turn the path of a file in a watched directory into a feed and a product id."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from downburst.domain.products import Product
from downburst.foundation.errors import BadInput, BadName, BadSettings


@dataclass(frozen=True, slots=True)
class PathRule:
    r"""An expression that a path begins with; feed and product id refer back to it (``\1``, ``\g<name>``)."""

    pattern: re.Pattern[str]
    feed: str
    product_id: str

    @classmethod
    def parse(cls, pattern: str, *, feed: str, product_id: str) -> Self:
        """Checks the expression and both templates, so that a bad rule is found when the hub starts."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            place = "" if error.pos is None else f" at character {error.pos + 1}"
            raise BadSettings(f"the watch rule {pattern!r} can't be read{place}: {error.msg}; correct it") from error
        rule = cls(compiled, feed, product_id)
        for template in (feed, product_id):
            rule._check_template(template)
        return rule

    def product_of(self, relative_path: str) -> Product | None:
        """The product of the path; None if the path does not match from its start."""
        match = self.pattern.match(relative_path)
        if match is None:
            return None
        return Product(match.expand(self.feed), match.expand(self.product_id))

    def _check_template(self, template: str) -> None:
        known = set(range(1, self.pattern.groups + 1)) | set(self.pattern.groupindex)
        for reference in _BACK_REFERENCE.finditer(template):
            number, name = reference["number"], reference["name"]
            wanted: int | str = int(number) if number else int(name) if name.isdecimal() else name
            if wanted != 0 and wanted not in known:
                raise BadSettings(
                    f"the watch rule {self.pattern.pattern!r} refers to group {wanted!r} in {template!r}, "
                    "which the pattern does not have; add the group or correct the reference"
                )


class PathRules:
    """Rules in order: the first that matches decides.

    Without rules the first directory is the feed, the rest of the path is the id.
    """

    def __init__(self, rules: Iterable[PathRule] = ()) -> None:
        self._rules: Sequence[PathRule] = tuple(rules)

    def product_of(self, relative_path: str) -> Product:
        """The product of the path, or one sentence with the reason why there is none."""
        if not self._rules:
            return _by_first_directory(relative_path)
        for rule in self._rules:
            product = rule.product_of(relative_path)
            if product is not None:
                return product
        raise BadInput(f"no watch rule matches the path {relative_path!r}; add a rule or move the file")


def _by_first_directory(relative_path: str) -> Product:
    feed, _, product_id = relative_path.partition("/")
    if not product_id:
        raise BadName(
            f"{relative_path!r} is not in a directory with the name of a feed; move it to FEED/ID below the "
            "watched directory, or add a watch rule"
        )
    return Product(feed, product_id)


_BACK_REFERENCE = re.compile(r"\\(?:(?P<number>\d{1,2})|g<(?P<name>\w+)>)")
