"""XML from others, parsed without entities, document types, network or unbounded memory."""

from lxml import etree

from downburst.foundation.errors import Failure


class Unreadable(Failure):
    """A message that can't be used; the sentence names the place in it."""

    status, code, title = 502, "unreadable", "The provider's message can't be read"


def parsed(data: bytes) -> etree._Element:
    """The root of a document of UTF-8; raises one sentence otherwise."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise Unreadable(f"the message has {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are read")
    if any(word in data for word in _FORBIDDEN):
        raise Unreadable("the message has a document type, entities or another encoding than UTF-8; none is read")
    parser = etree.XMLPullParser(
        events=("start", "end"),
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    try:
        return _fed(parser, data)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"the message is not XML: {str(error)[:200]}") from None
    except ValueError as error:
        raise Unreadable(f"the message is not XML of UTF-8: {str(error)[:200]}") from None


def _fed(parser: etree.XMLPullParser, data: bytes) -> etree._Element:
    """Feeds piece by piece, so that a message of too many elements ends before its tree is large."""
    depth = elements = 0
    for begin in range(0, len(data), _PIECE_BYTES):
        parser.feed(data[begin : begin + _PIECE_BYTES])
        for event, _ in parser.read_events():
            depth += 1 if event == "start" else -1
            elements += event == "start"
            if depth > DEPTH_MAX:
                raise Unreadable(f"the message nests more than {DEPTH_MAX} elements; none is read")
            if elements > ELEMENTS_MAX:
                raise Unreadable(f"the message has more than {ELEMENTS_MAX} elements; none is read")
    return parser.close()


MESSAGE_BYTES_MAX = 1_000_000
DEPTH_MAX = 32
ELEMENTS_MAX = 40_000
_PIECE_BYTES = 16_384
_FORBIDDEN = (b"<!DOCTYPE", b"<!ENTITY", b"\x00", b"\xfe\xff", b"\xff\xfe")
