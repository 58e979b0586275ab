/** The glyph of a transport: classes and transports have no colour of their own. */
export type Glyph = 'unicast' | 'multicast' | 'static-circuit' | 'dynamic-circuit' | 'relay' | 'other'

export function glyphOf(transport: string): Glyph {
  if (transport === 'circuit') return 'static-circuit'
  return GLYPHS.find((glyph) => glyph === transport) ?? (transport.includes('relay') ? 'relay' : 'other')
}

/** Paths in a box of 16 by 16, drawn with a stroke. */
export const PATHS: Record<Glyph, string> = {
  unicast: 'M2 5.5h11M10.5 3 13 5.5 10.5 8M2 10.5h11M10.5 8l2.5 2.5-2.5 2.5',
  multicast: 'M2 8h10M12 8h2M7 8c2 0 2-4.5 5-4.5h1.5M7 8c2 0 2 4.5 5 4.5h1.5',
  'static-circuit': 'M2 5.5h12M2 10.5h12',
  'dynamic-circuit': 'M2 5.5h3M6.5 5.5h3M11 5.5h3M2 10.5h3M6.5 10.5h3M11 10.5h3',
  relay: 'M2 8h3.5M10.5 8H14M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5',
  other: 'M3 8h10',
}

const GLYPHS: Glyph[] = ['unicast', 'multicast', 'static-circuit', 'dynamic-circuit', 'relay']
