"""Pictures as grids of grey: small enough for text files, coarse enough for other versions of a browser."""

import base64
from dataclasses import dataclass
from typing import Self

from playwright.sync_api import Page

CELL_PX = 30
"""Four lines of text are two or three cells: a missing line shows, another digit does not."""

LEVELS = 16
TOLERATED_LEVELS = 1
TOLERATED_SHARE = 0.02
"""Of the cells: glyphs of another release of the fonts' renderer move a cell by a level or two."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Mean greys of cells of 30 x 30 px, 0 (black) to 15, a row of the picture in a string of hexadecimal digits."""

    rows: tuple[str, ...]

    @classmethod
    def of_picture(cls, blank: Page, png: bytes) -> Self:
        """Reduces a picture in a page that is used for nothing else."""
        rows = blank.evaluate(_REDUCE, [base64.b64encode(png).decode(), CELL_PX, LEVELS])
        return cls(tuple(rows))

    def share_of_differences(self, other: "Grid") -> float:
        """The share of cells that differ visibly; 1 where the sizes differ."""
        mine, theirs = "".join(self.rows), "".join(other.rows)
        if [len(row) for row in self.rows] != [len(row) for row in other.rows]:
            return 1.0
        differing = sum(
            abs(int(one, 16) - int(two, 16)) > TOLERATED_LEVELS for one, two in zip(mine, theirs, strict=True)
        )
        return differing / len(mine)

    def looks_like(self, other: "Grid") -> bool:
        """True if a reader would see the same page."""
        return self.share_of_differences(other) <= TOLERATED_SHARE


_REDUCE = """async ([png, cell, levels]) => {
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob())
    const [width, height] = [Math.floor(picture.width / cell), Math.floor(picture.height / cell)]
    const canvas = new OffscreenCanvas(picture.width, picture.height)
    const context = canvas.getContext("2d", { willReadFrequently: true })
    context.drawImage(picture, 0, 0)
    const { data } = context.getImageData(0, 0, picture.width, picture.height)
    const grey = (x, y) => {
        let sum = 0
        for (let row = y * cell; row < (y + 1) * cell; row += 1)
            for (let column = x * cell; column < (x + 1) * cell; column += 1) {
                const at = 4 * (row * picture.width + column)
                sum += 0.2126 * data[at] + 0.7152 * data[at + 1] + 0.0722 * data[at + 2]
            }
        return Math.min(Math.floor((sum / (cell * cell) / 256) * levels), levels - 1)
    }
    const across = Array.from({ length: width }, (_, x) => x)
    return Array.from({ length: height }, (_, y) => across.map(x => grey(x, y).toString(16)).join(""))
}"""
