/** The names beside the marks of the map: each on a side where it covers no mark and no other name. */

export type Side = 'right' | 'left' | 'below' | 'above'

export interface Named {
  name: string
  /** The middle of its mark in pixels. */
  x: number
  y: number
  /** It is named even where there is no room: a bad site, or the selected one. */
  isNeeded: boolean
}

interface Box {
  left: number
  right: number
  top: number
  bottom: number
}

/** The side of each name; one without room is left out. Needed names choose first. */
export function sidesOf(
  wanted: readonly Named[],
  marks: readonly { x: number; y: number }[],
  width_px: number,
): Map<string, Side> {
  const taken = marks.map(({ x, y }) => around(x, y, MARK_PX, MARK_PX))
  const sides = new Map<string, Side>()
  for (const one of wanted.toSorted((a, b) => Number(b.isNeeded) - Number(a.isNeeded))) {
    const free = SIDES.find((side) => isFree(boxOf(one, side), taken, width_px))
    const side = free ?? (one.isNeeded ? 'right' : null)
    if (side === null) continue
    sides.set(one.name, side)
    taken.push(boxOf(one, side))
  }
  return sides
}

function boxOf({ name, x, y }: Named, side: Side): Box {
  const width = name.length * CHARACTER_PX + PADDING_PX
  const away = MARK_PX / 2 + width / 2
  if (side === 'right') return around(x + away, y, width, NAME_PX)
  if (side === 'left') return around(x - away, y, width, NAME_PX)
  const down = MARK_PX / 2 + NAME_PX / 2
  return around(x, side === 'below' ? y + down : y - down, width, NAME_PX)
}

function isFree(box: Box, taken: readonly Box[], width_px: number): boolean {
  return box.left >= 0 && box.right <= width_px && !taken.some((other) => overlap(box, other))
}

function overlap(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom
}

function around(x: number, y: number, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 }
}

const SIDES: Side[] = ['right', 'left', 'below', 'above']
/** A mark with the ring of a selection. */
const MARK_PX = 22
const NAME_PX = 16
/** The mean width in the bold font of captions, and the padding of a name. */
const CHARACTER_PX = 6.6
const PADDING_PX = 6
