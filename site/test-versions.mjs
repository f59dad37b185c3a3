// Tests a site with the versions v0.9, v0.10 and main, of which v0.9 has a page of its own, in Chromium: hack/test-site-versions.sh builds it.
// usage: node test-versions.mjs FOLDER
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import puppeteer from 'puppeteer-core'
import { fileOf, pagesOf, serve } from './files.mjs'

const folder = process.argv[2]
const base = '/cluster-api-provider-vcd/'
const versions = ['v0.10', 'v0.9', 'main']

// testLinks follows each link of each page: it stays in its version, and links to the repository lead to the tag.
function testLinks() {
  const refs = { 'v0.10': 'v0.10.0', 'v0.9': 'v0.9.1', main: 'main' }
  let links = 0
  for (const version of versions) {
    for (const file of pagesOf(join(folder, version))) {
      for (const [, href] of readFileSync(file, 'utf8').matchAll(/<a [^>]*href="([^"]+)"/g)) {
        const page = relative(folder, file)
        const ref = href.match(/\/cluster-api-provider-vcd\/(?:blob|tree)\/([^/]+)\//)?.[1]
        if (ref) assert.equal(ref, refs[version], `${page}: ${href}`)
        if (!href.startsWith('/')) continue
        assert.ok(href.startsWith(`${base}${version}/`), `${page}: ${href} leaves its version`)
        assert.ok(existsSync(fileOf(folder, href.slice(base.length - 1).replace(/#.*/, ''))), `${page}: ${href} leads nowhere`)
        links++
      }
    }
  }
  return links
}

async function testSelector(browser, origin) {
  const tab = await browser.newPage()
  const at = () => new URL(tab.url()).pathname.slice(base.length - 1)
  const open = async (path) => {
    await tab.goto(origin + path, { waitUntil: 'networkidle0' })
    await tab.waitForFunction(() => document.querySelectorAll('.version option').length > 1)
  }
  const select = (version) => Promise.all([tab.waitForNavigation({ waitUntil: 'networkidle0' }), tab.select('.version select', version)])
  const notice = () => tab.evaluate(() => document.querySelector('.notice')?.textContent.replaceAll(/\s+/g, ' ').trim() ?? '')

  for (const width of [390, 1440]) {
    await tab.setViewport({ width, height: 900 })

    await open('')
    assert.equal(at(), '/v0.10/')
    assert.equal(await notice(), '')
    await open('latest/get-started/quickstart')
    assert.equal(at(), '/v0.10/get-started/quickstart')

    const labels = await tab.$$eval('.version option', (all) => all.map((option) => option.textContent.trim()))
    assert.deepEqual(labels, ['v0.10 (latest)', 'v0.9', 'main (unreleased)'])
    assert.equal(await tab.$eval('.version select', (selector) => selector.value), 'v0.10')

    await select('v0.9')
    assert.equal(at(), '/v0.9/get-started/quickstart')
    assert.equal(await notice(), 'This page describes v0.9, which is not the newest release. Show v0.10')
    await select('main')
    assert.equal(at(), '/main/get-started/quickstart')
    assert.equal(await notice(), 'This page describes the main branch, which is not released. Show v0.10')
    if (process.env.SCREENSHOTS) await tab.screenshot({ path: join(process.env.SCREENSHOTS, `versions-${width}.png`) })

    // A page that another version does not have leads to its first page.
    await open('v0.9/get-started/old-page')
    await select('main')
    assert.equal(at(), '/main/')
    await open('v0.9/get-started/old-page')
    await Promise.all([tab.waitForNavigation({ waitUntil: 'networkidle0' }), tab.$eval('.notice a', (link) => link.click())])
    assert.equal(at(), '/v0.10/')

    const over = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    assert.ok(over <= 0, `the page is ${over} pixels wider than ${width}`)
  }

  // The selector is in the navigation, which a phone opens with the menu.
  await tab.setViewport({ width: 390, height: 900 })
  await open('main/')
  await tab.click('.VPLocalNav .menu')
  await tab.waitForFunction(() => document.querySelector('.version select').getBoundingClientRect().left >= 0)
  if (process.env.SCREENSHOTS) await tab.screenshot({ path: join(process.env.SCREENSHOTS, 'versions-menu.png') })
}

if (process.env.SCREENSHOTS) mkdirSync(process.env.SCREENSHOTS, { recursive: true })
assert.deepEqual(JSON.parse(readFileSync(join(folder, 'versions.json'), 'utf8')).map((version) => version.name), versions)
assert.ok(existsSync(join(folder, 'v0.9/get-started/old-page.html')) && !existsSync(join(folder, 'v0.10/get-started/old-page.html')))
const links = testLinks()
const server = await serve(folder, base)
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  await testSelector(browser, `http://127.0.0.1:${server.address().port}${base}`)
  console.log(`versions ${versions.join(', ')}: ${links} links, the selector at 390 and 1440 pixels`)
} finally {
  await browser.close()
  server.close()
}
