/** Contrast of two colours by WCAG 2, and the colours of the token file. */

export interface Scheme {
  light: string
  dark: string
}

/** The tokens of a style sheet that are written as `--name: light-dark(#rrggbb, #rrggbb);`. */
export function schemesOf(css: string): Map<string, Scheme> {
  const found = css.matchAll(/--([\w-]+): light-dark\((#[\da-f]{6}), (#[\da-f]{6})\)/g)
  return new Map([...found].map(([, name = '', light = '', dark = '']) => [name, { light, dark }]))
}

/** The contrast ratio of two colours as `#rrggbb`: 1 to 21. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((first, second) => first - second)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Relative luminance: 0 for black, 1 for white. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => linear(parseInt(colour.slice(at, at + 2), 16) / 255))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function linear(channel: number): number {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
}
