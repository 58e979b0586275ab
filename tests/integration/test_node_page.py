"""docs/reference/node.md is the help of the built program."""

from kit.programs import built
from unit.documentation.node_page import FILE, markdown


def test_the_page_is_the_help_of_the_program() -> None:
    remedy = "write it anew: cd tests && ../.venv/bin/python -m unit.documentation.write_node_page"
    assert FILE.read_text() == markdown(built("downburst-node")), remedy
