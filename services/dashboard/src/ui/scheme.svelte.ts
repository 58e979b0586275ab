/** The colour scheme: the system's, or the one that the user chose, which this browser remembers. */
import { MediaQuery } from 'svelte/reactivity'

export type Choice = 'system' | 'light' | 'dark'

export const CHOICES: { value: Choice; title: string }[] = [
  { value: 'system', title: 'As the system' },
  { value: 'light', title: 'Light' },
  { value: 'dark', title: 'Dark' },
]

/** Anything that isn't a choice counts as the system's scheme. */
export function choiceOf(stored: string | null): Choice {
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

class ColourScheme {
  choice = $state<Choice>(choiceOf(remembered()))
  readonly #system = new MediaQuery('prefers-color-scheme: dark', false)
  /** Charts on a canvas redraw when it changes. */
  readonly isDark = $derived(this.choice === 'system' ? this.#system.current : this.choice === 'dark')

  choose(choice: Choice): void {
    this.choice = choice
    try {
      localStorage.setItem(KEY, choice)
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
    this.apply()
  }

  apply(): void {
    if (this.choice === 'system') delete document.documentElement.dataset['scheme']
    else document.documentElement.dataset['scheme'] = this.choice
  }
}

/** The computed colour of a token, for charts that draw on a canvas: `rgb(35, 83, 207)`. */
export function colourOf(token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  document.body.append(probe)
  const colour = getComputedStyle(probe).color
  probe.remove()
  return colour
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

const KEY = 'downburst-scheme'

export const scheme = new ColourScheme()
