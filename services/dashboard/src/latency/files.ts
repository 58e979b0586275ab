/** Files that the page makes. */

/** Hands a file to the browser, which saves it. */
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  document.body.append(link)
  link.click()
  link.remove()
  // The browser has taken the content by the next turn of its loop.
  setTimeout(() => URL.revokeObjectURL(address), 0)
}
