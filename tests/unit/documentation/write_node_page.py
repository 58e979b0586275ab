"""Writes docs/reference/node.md, from the program that `make setup` or `make setup-test` built."""

from kit.programs import built
from unit.documentation.node_page import FILE, markdown

if __name__ == "__main__":
    FILE.write_text(markdown(built("downburst-node")))
