import { mount } from 'svelte'

import Root from './Root.svelte'
import './page.css'

const target = document.getElementById('page')
if (target) mount(Root, { target })
