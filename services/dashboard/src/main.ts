import { mount } from 'svelte'

import Root from './Root.svelte'
import './ui/tokens.css'
import './page.css'
import './ui/parts.css'
import { scheme } from './ui/scheme.svelte'

scheme.apply()
const target = document.getElementById('page')
if (target) mount(Root, { target })
