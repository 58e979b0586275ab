import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Tables turn into cards on a phone; `display: block` takes the table's meaning away, and the roles give it back.
    warningFilter: (warning) => warning.code !== 'a11y_no_redundant_roles',
  },
}
