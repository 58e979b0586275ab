"""A made-up next release: this one, whose ledger's schema is one revision further."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import downburst
from downburst.ledger.storage import schema
from downburst.ledger.storage.schema import Standing


@contextmanager
def next_release(directory: Path) -> Iterator[str]:
    """Makes this process one of the next release; returns its revision."""
    with patch.object(schema, "MIGRATIONS", _migrations(directory / "migrations")):
        yield Standing.nowhere().wanted


def next_program(directory: Path) -> dict[str, str]:
    """The environment in which commands are those of the next release."""
    ours, theirs = Path(downburst.__file__).parent, directory / "downburst"
    _link(ours, theirs, to_copy=schema.MIGRATIONS)
    _migrations(theirs / schema.MIGRATIONS.relative_to(ours))
    path = [str(directory), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def _link(ours: Path, theirs: Path, *, to_copy: Path) -> None:
    """A package of links to the files of another, without one of its directories."""
    theirs.mkdir(parents=True)
    for path in ours.iterdir():
        if path in to_copy.parents:
            _link(path, theirs / path.name, to_copy=to_copy)
        elif path not in (to_copy, ours / "__pycache__"):
            (theirs / path.name).symlink_to(path)


def _migrations(directory: Path) -> Path:
    head = Standing.nowhere().wanted
    shutil.copytree(schema.MIGRATIONS, directory, ignore=shutil.ignore_patterns("__pycache__"))
    step = STEP.format(head=head, revision=f"{int(head) + 1:04}")
    (directory / "versions" / "v9999_made_up.py").write_text(step, encoding="utf-8")
    return directory


STEP = '''\
"""What revisions do: more columns, a table that SQLite makes anew, a table that is filled from another."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{head}"


def upgrade() -> None:
    """Forward."""
    op.add_column("feeds", sa.Column("made_up", sa.Text, nullable=False, server_default="as before"))
    with op.batch_alter_table("site_receivers") as batch:
        batch.add_column(sa.Column("made_up", sa.BigInteger))
        batch.alter_column("address", existing_type=sa.Text, nullable=True)
    feed = sa.Column("feed", sa.String(64), sa.ForeignKey("feeds.name", ondelete="CASCADE"), primary_key=True)
    op.create_table("made_up", feed)
    op.execute("INSERT INTO made_up SELECT name FROM feeds")
'''
