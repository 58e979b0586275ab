"""The PostgreSQL that tests may empty and fill, where the environment names one."""

import os

from sqlalchemy import create_engine, text

from downburst.tables import metadata

POSTGRES = os.environ.get("DOWNBURST_TEST_POSTGRES")


def wipe(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
    engine.dispose()
