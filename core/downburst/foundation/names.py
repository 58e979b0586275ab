"""Rules of names: identical, also in wording, with the node's (crate model, names.rs)."""

import re

from downburst.foundation.errors import BadName


def check_feed_name(text: str) -> str:
    """1 to 64 letters, digits and `| _ . - + ~ ! : , @`, a letter or digit first, for example IDS|DDPLUS.

    Refuses names with a meaning of their own in paths, patterns, shells and tables: `.`, `..`, `*`, `=cmd`, `-r`.
    """
    length = len(_utf8(text, "feed name"))
    if not 1 <= length <= 64:
        raise BadName(f"a feed name has 1 to 64 characters, this one has {length}; choose a shorter one")
    bad = next((char for char in text if not _alphanumeric(char) and char not in _FEED_MARKS), None)
    if bad is not None:
        raise BadName(f"the feed name {text!r} holds {bad!r}; use letters, digits and {' '.join(_FEED_MARKS)}")
    if not _alphanumeric(text[0]):
        raise BadName(f"the feed name {text!r} begins with {text[0]!r}; begin it with a letter or digit")
    return text


def is_feed_name(text: str) -> bool:
    """True if a feed may have this name; ledgers of earlier releases contain others."""
    try:
        return check_feed_name(text) == text
    except BadName:
        return False


def check_product_id(text: str) -> str:
    """1 to 255 bytes of UTF-8 without control characters and without a `..` path segment."""
    if not text:
        raise BadName("the product id is empty; give it 1 to 255 bytes")
    length = len(_utf8(text, "product id"))
    if length > 255:
        raise BadName(f"the product id has {length} bytes; the limit is 255, so shorten it")
    found = _CONTROL.search(text)
    if found is not None:
        position = len(text[: found.start()].encode())
        raise BadName(
            f"the product id holds the control character U+{ord(found[0]):04X} at byte {position}; remove it",
            position=position,
        )
    if ".." in text and ".." in text.replace("\\", "/").split("/"):
        raise BadName("the product id holds the path segment '..'; an id is a name, not a path; remove it")
    return text


def check_site_name(text: str) -> str:
    """1 to 63 lower-case letters, digits, dots and dashes, beginning with a letter or digit."""
    good = 1 <= len(text) <= 63 and all(char in _SITE_CHARACTERS for char in text) and text[0] not in ".-"
    if not good:
        raise BadName(
            f"{text!r} can't be a site's name; "
            "use 1 to 63 lower-case letters, digits, dots and dashes, a letter or digit first"
        )
    return text


def check_user_name(text: str) -> str:
    """1 to 64 letters, digits and `. _ @ + -`, a letter or digit first; not one reserved for the hub itself."""
    good = 1 <= len(text) <= 64 and all(_alphanumeric(char) or char in "._@+-" for char in text)
    if not good or not _alphanumeric(text[0]):
        raise BadName(
            f"{text[:80]!r} can't be a user's name; "
            "use 1 to 64 letters, digits and . _ @ + -, a letter or digit first"
        )
    if text.lower() in _OWN_NAMES:
        raise BadName(f"{text!r} can't be a user's name: the hub uses it itself; choose another one")
    return text


def is_user_name(text: str) -> bool:
    """True if a user may have this name; ledgers of earlier releases contain others."""
    try:
        return check_user_name(text) == text
    except BadName:
        return False


def check_origin(text: str) -> str:
    """At most 255 printable ASCII characters."""
    if len(text) > 255 or not all(_graphic(char) for char in text):
        raise BadName("an origin is a host name of at most 255 printable ASCII characters; shorten or clean it")
    return text


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadName(f"the {what} is not valid UTF-8; send it as UTF-8, percent-encoded in a URL") from None


def _graphic(char: str) -> bool:
    return "!" <= char <= "~"


def _alphanumeric(char: str) -> bool:
    return char.isascii() and char.isalnum()


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FEED_MARKS = "|_.-+~!:,@"
_OWN_NAMES = frozenset({"local", "hub", "nobody"})
"""Rights depend on the caller's name, and the hub's own user is called `local`."""
_SITE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
