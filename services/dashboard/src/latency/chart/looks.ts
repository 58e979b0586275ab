/** The looks of lines: colours by token, marks, and the same marks in a text. */

/** Colours by token, as the scheme gives them. */
export type Palette = Record<Token, string>
export type Token = (typeof TOKENS)[number]

/** The colour and the mark of a line by its place. */
export function lookOfPlace(place: number): { token: Token; path: string } {
  return {
    token: LINE_TOKENS[place % LINE_TOKENS.length] ?? '--accent',
    path: LINE_MARKS[place % LINE_MARKS.length] ?? '',
  }
}

const LINE_TOKENS = [
  '--accent',
  '--series-2',
  '--series-3',
  '--series-4',
  '--series-5',
  '--series-6',
  '--ink-3',
  '--ink',
] as const
export const TOKENS = [
  ...LINE_TOKENS,
  '--ink-2',
  '--line',
  '--line-2',
  '--sunken',
  '--surface',
  '--critical',
] as const
/** Marks in a box of ten: disc, square, triangle, diamond, cross, ring, bar, hourglass. */
const LINE_MARKS = [
  'M5 0.5a4.5 4.5 0 1 0 0.001 0z',
  'M1 1h8v8H1z',
  'M5 0.5L9.8 9H0.2z',
  'M5 0L10 5L5 10L0 5z',
  'M3.5 0h3v3.5H10v3H6.5V10h-3V6.5H0v-3h3.5z',
  'M5 0a5 5 0 1 0 0.001 0zM5 2.6a2.4 2.4 0 1 1 -0.001 0z',
  'M0 3h10v4H0z',
  'M0.5 0.5h9L6 5l3.5 4.5h-9L4 5z',
]
/** The same in a text. */
export const LINE_GLYPHS = ['●', '■', '▲', '◆', '✚', '○', '▬', '⧗']
