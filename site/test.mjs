// Opens every page of version main of the built site in Chromium, at the width of a phone and of a desktop, and fails on markup that is shown as text,
// on pages that scroll sideways, on pictures that are missing or cut off, and on searches that do not find their page.
// SCREENSHOTS names a folder for a picture of each page.
import { mkdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import puppeteer from 'puppeteer-core'
import { files, pagesOf, serve } from './files.mjs'
import { keywords } from './.vitepress/keywords.mjs'

const site = resolve(fileURLToPath(import.meta.url), '../../out/site/main')
const docs = resolve(fileURLToPath(import.meta.url), '../../docs')
const base = '/cluster-api-provider-vcd/main/'
const widths = [390, 1440]

// searches are what users type, with the page that must be among the first three results.
const searches = {
  prerequisites: 'get-started/prerequisites',
  permissions: 'security/permissions',
  install: 'operate/install',
  'getting started': 'get-started/quickstart',
  troubleshoot: 'operate/troubleshooting',
  upgrade: 'operate/upgrade-provider',
  backup: 'operate/backup',
  'load balancer': 'networking/load-balancers',
  proxy: 'networking/proxy',
  airgap: 'operate/airgap',
  zones: 'operate/failure-domains',
  'rotate credentials': 'security/rotate-credentials',
  'migrate from capvcd': 'get-started/migrate-from-capvcd',
  'VCDMachine fields': 'reference/kinds/vcdmachine',
  'first cluster from source': 'get-started/first-cluster',
  'node image': 'get-started/node-images',
  'fixed address': 'networking/load-balancers',
  'three zones': 'operate/failure-domains',
  'upgrade kubernetes': 'operate/upgrade-kubernetes',
  'machine not ready': 'operate/troubleshooting',
  'report a bug': 'operate/troubleshooting',
}

// tasks are what users come for, with the pages that they open: the first is linked from the landing page, each other from the one before.
const tasks = {
  install: ['operate/install'],
  'first cluster from source': ['get-started/prerequisites', 'get-started/node-images', 'get-started/first-cluster'],
  'load balancer with a fixed address': ['networking/load-balancers'],
  proxy: ['networking/proxy'],
  'three zones': ['operate/failure-domains', 'get-started/cluster-templates'],
  'upgrade Kubernetes': ['operate/upgrade-kubernetes', 'get-started/node-images'],
  'rotate credentials': ['security/rotate-credentials'],
  'find out why a machine is not Ready': ['operate/troubleshooting', 'reference/conditions'],
  'migrate from CAPVCD': ['get-started/migrate-from-capvcd', 'operate/backup'],
  'report a bug': ['operate/troubleshooting'],
}

const problems = []
const report = (page, width, text) => problems.push(`${page} at ${width}: ${text}`)

// shown returns what is wrong with a page, as the browser shows it.
function shown() {
  const wrong = []
  const content = document.querySelector('.vp-doc')
  const text = content.cloneNode(true)
  text.querySelectorAll('code, pre').forEach((code) => code.remove())
  const literal = text.textContent.match(/<\/?(br|p|div|span|img|a|b|i|details|summary|sup|sub)\b[^>]*>|<!--|-->|\]\([^)]*\)|\*\*|```/)
  if (literal) wrong.push(`markup is shown as text: ${literal[0]}`)
  if (document.querySelector('[class*=language-mermaid]')) wrong.push('a diagram is shown as code')
  const over = document.documentElement.scrollWidth - window.innerWidth
  if (over > 0) wrong.push(`the page is ${over} pixels wider than the window`)
  for (const image of content.querySelectorAll('img')) {
    if (!image.complete || image.naturalWidth === 0) wrong.push(`${image.src} is not shown`)
    if (image.getBoundingClientRect().right > window.innerWidth) wrong.push(`${image.src} is cut off`)
  }
  const titles = [...document.querySelectorAll('.VPSidebarItem.level-1 .text')].map((item) => item.textContent)
  const doubled = titles.filter((title, i) => titles.indexOf(title) !== i)
  if (titles.length < 50 || doubled.length) wrong.push(`${titles.length} titles in the sidebar, doubled: ${doubled}`)
  return wrong
}

// cut returns the labels of a drawing that leave it, or the box that they are in.
function cut() {
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1
  const boxes = [document.documentElement, ...document.querySelectorAll('rect')].map((box) => box.getBoundingClientRect())
  return [...document.querySelectorAll('text')].filter((label) => {
    const area = label.getBoundingClientRect()
    const [x, y] = [area.left + 2, (area.top + area.bottom) / 2]
    return boxes.some((box) => x > box.left && x < box.right && y > box.top && y < box.bottom && !inside(area, box))
  }).map((label) => label.textContent)
}

async function testPages(browser, origin) {
  const tab = await browser.newPage()
  tab.on('pageerror', (error) => problems.push(`${tab.url()}: ${error.message}`))
  const pages = pagesOf(site).map((path) => relative(site, path))
  for (const width of widths) {
    await tab.setViewport({ width, height: 900 })
    for (const page of pages) {
      await tab.goto(origin + page.replace(/(index)?\.html$/, ''), { waitUntil: 'load' })
      await tab.waitForFunction(() => document.querySelectorAll('.VPSidebarItem.level-1').length > 50)
      for (const text of await tab.evaluate(shown)) report(page, width, text)
      if (process.env.SCREENSHOTS) {
        await tab.screenshot({ path: join(process.env.SCREENSHOTS, `${page.replaceAll('/', '-').replace('.html', '')}-${width}.png`) })
      }
    }
  }
  return pages
}

// testTasks follows the links of each task in the text of the pages.
async function testTasks(browser, origin) {
  const tab = await browser.newPage()
  for (const [task, pages] of Object.entries(tasks)) {
    if (pages.length > 3) problems.push(`${task} takes ${pages.length} pages`)
    let at = ''
    for (const page of pages) {
      await tab.goto(origin + at, { waitUntil: 'load' })
      const links = await tab.$$eval('.vp-doc a', (all) => all.map((link) => new URL(link.href).pathname))
      if (!links.includes(base + page)) problems.push(`${task}: ${at || 'the landing page'} has no link to ${page}`)
      at = page
    }
  }
}

async function testDrawings(browser) {
  const tab = await browser.newPage()
  const drawings = files(docs).filter((path) => path.endsWith('.svg') && !path.endsWith('quickstart.svg')) // which is a recording
  for (const drawing of drawings) {
    await tab.goto('file://' + drawing)
    for (const label of await tab.evaluate(cut)) report(relative(docs, drawing), 'any width', `the label "${label}" is cut off`)
  }
  return drawings
}

async function testSearch(browser, origin) {
  const tab = await browser.newPage()
  await tab.setViewport({ width: 1440, height: 900 })
  await tab.goto(origin, { waitUntil: 'networkidle0' })
  for (const [words, page] of Object.entries(searches)) {
    await tab.click('.DocSearch-Button, #local-search button')
    await tab.waitForSelector('#localsearch-input')
    await tab.type('#localsearch-input', words)
    await tab.waitForSelector('.VPLocalSearchBox .result', { timeout: 10_000 }).catch(() => {})
    await tab.waitForNetworkIdle()
    const results = await tab.$$eval('.VPLocalSearchBox .result', (all) => all.map((result) => new URL(result.href).pathname))
    const first = [...new Set(results)].slice(0, 3).map((path) => path.slice(base.length))
    if (!first.some((path) => path.replace(/\.html$/, '') === page)) {
      problems.push(`a search for "${words}" finds ${first.join(', ') || 'nothing'}, not ${page}`)
    }
    await tab.keyboard.press('Escape')
  }
}

const server = await serve(site, base)
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  const origin = `http://127.0.0.1:${server.address().port}${base}`
  if (process.env.SCREENSHOTS) mkdirSync(process.env.SCREENSHOTS, { recursive: true })
  const pages = await testPages(browser, origin)
  for (const page of Object.keys(keywords)) {
    if (!pages.includes(page + '.html')) problems.push(`keywords.mjs has no page ${page}`)
  }
  const drawings = await testDrawings(browser)
  await testTasks(browser, origin)
  await testSearch(browser, origin)
  console.log(`${pages.length} pages at ${widths.join(' and ')} pixels, ${drawings.length} drawings, ${Object.keys(searches).length} searches, ${Object.keys(tasks).length} tasks`)
} finally {
  await browser.close()
  server.close()
}
if (problems.length) {
  console.error(problems.join('\n'))
  process.exit(1)
}
