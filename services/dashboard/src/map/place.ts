/** A place as a user enters it, and the command that sets the same. */
import type { PlaceShape } from '../api'

export interface Entered {
  text: string
  /** As the field has it; null if it is empty or no number. */
  latitude: number | null
  longitude: number | null
}

/** The reason why a place cannot be set; empty if it can. */
export function problemOf({ latitude, longitude }: Entered): string {
  if (!isWithin(latitude, 90)) return 'The latitude is a number from −90 to 90: degrees north.'
  if (!isWithin(longitude, 180)) return 'The longitude is a number from −180 to 180: degrees east.'
  return ''
}

/** The place in a request; only for one without a problem. */
export function placeOf({ text, latitude, longitude }: Entered): PlaceShape {
  return { text: text.trim(), latitude, longitude }
}

/** The command that sets the same place: `downburst sites set unl.edu --latitude 40.8 --longitude -96.7`. */
export function commandOf(site: string, { text, latitude, longitude }: Entered): string {
  const place = text.trim() === '' ? '' : ` --place ${quoted(text.trim())}`
  return `downburst sites set ${quoted(site)} --latitude ${latitude ?? '…'} --longitude ${longitude ?? '…'}${place}`
}

function isWithin(value: number | null, most: number): boolean {
  return value !== null && Number.isFinite(value) && Math.abs(value) <= most
}

/** One word of a shell. */
function quoted(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
