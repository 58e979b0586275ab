/** ECharts, with the parts in use alone; loaded when a chart opens. */
import { LineChart } from 'echarts/charts'
import { GridComponent, MarkAreaComponent, MarkLineComponent, TitleComponent } from 'echarts/components'
import { init, use, type EChartsType } from 'echarts/core'
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers'

import type { Palette } from './looks'
import { headHeight, optionsOf, type Drawn } from './options'

use([
  LineChart,
  GridComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  CanvasRenderer,
  SVGRenderer,
])

/** The chart on the page; it draws again when its options or its size change. */
export class Drawing {
  readonly #chart: EChartsType

  constructor(box: HTMLElement) {
    this.#chart = init(box, null, { renderer: 'svg' })
  }

  draw(drawn: Drawn): void {
    this.#chart.resize({ width: drawn.width, height: drawn.height })
    this.#chart.setOption(hatched(drawn), { notMerge: true })
  }

  end(): void {
    this.#chart.dispose()
  }
}

/** The view as a vector drawing. */
export function svgOf(drawn: Drawn): Blob {
  const size = pictureSize(drawn)
  const chart = init(null, null, { renderer: 'svg', ssr: true, ...size })
  chart.setOption(hatched({ ...drawn, ...size }))
  const text = chart.renderToSVGString()
  chart.dispose()
  return new Blob([text], { type: 'image/svg+xml' })
}

/** The view as a picture, in twice its size for dense screens and paper. */
export async function pngOf(drawn: Drawn): Promise<Blob> {
  const box = document.createElement('div')
  const size = pictureSize(drawn)
  const chart = init(box, null, { renderer: 'canvas', ...size })
  try {
    chart.setOption(hatched({ ...drawn, ...size }))
    const canvas = chart.renderToCanvas({ pixelRatio: 2 })
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The browser could not draw the picture.'))))
    })
  } finally {
    chart.dispose()
  }
}

/** The options, with times without a report hatched: a pattern is a picture and no plain data. */
function hatched(drawn: Drawn) {
  const options = optionsOf(drawn)
  const pattern = { image: hatch(drawn.palette), repeat: 'repeat' as const }
  const series = options.series.map((one) => {
    return 'markArea' in one
      ? { ...one, markArea: { ...one.markArea, itemStyle: { ...one.markArea.itemStyle, color: pattern } } }
      : one
  })
  return { ...options, series }
}

function hatch(palette: Palette): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = HATCH_PX
  const pen = canvas.getContext('2d')
  if (pen !== null) {
    pen.strokeStyle = palette['--line-2']
    pen.beginPath()
    for (const shift of [-HATCH_PX, 0, HATCH_PX]) {
      pen.moveTo(shift, HATCH_PX)
      pen.lineTo(shift + HATCH_PX, 0)
    }
    pen.stroke()
  }
  return canvas
}

function pictureSize({ plot }: Drawn): { width: number; height: number } {
  return { width: PICTURE_WIDTH, height: CHART_HEIGHT + headHeight(plot) }
}

const CHART_HEIGHT = 400
const PICTURE_WIDTH = 1280
const HATCH_PX = 6
