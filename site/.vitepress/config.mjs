// The site is docs/ as it is: pages and links are those that work on GitHub. Navigation is docs/README.md.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const docs = join(root, 'docs')
const pages = join(root, 'site', 'pages') // a link to docs/
const repository = 'https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd'

// sidebar reads the sections and links of docs/README.md; of a line with several links each is an entry.
function sidebar() {
  const sections = []
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    const title = line.match(/^## (.+)/)
    if (title) sections.push({ text: title[1], collapsed: sections.length > 1, items: [] })
    for (const [, text, target] of line.matchAll(/\[([^\]]+)\]\(([^)#]+)[^)]*\)/g)) {
      if (sections.length && !target.startsWith('..')) {
        const upper = text[0].toUpperCase() + text.slice(1)
        sections.at(-1).items.push({ text: upper, link: '/' + target.replace(/\.md$/, '') })
      }
    }
  }
  return sections
}

// external leads links out of docs/ to the repository, where they lead on GitHub.
function external(md) {
  md.core.ruler.after('inline', 'leave-docs', (state) => {
    const page = join(docs, relative(pages, state.env.path))
    for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
      const href = token.type === 'link_open' && token.attrGet('href')
      if (!href || /^([a-z]+:|#|\/)/.test(href)) continue
      const [path, anchor] = href.split('#')
      const target = resolve(dirname(page), path)
      if (!relative(docs, target).startsWith('..')) continue
      if (!existsSync(target)) throw new Error(`${relative(root, page)}: ${href} leads nowhere`)
      const kind = statSync(target).isDirectory() ? 'tree' : 'blob'
      token.attrSet('href', `${repository}/${kind}/main/${relative(root, target)}${anchor ? '#' + anchor : ''}`)
    }
  })
}

// literal keeps Vue from reading braces in text and code as an expression.
function literal(md) {
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule]
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
  }
}

export default defineConfig({
  title: 'Cluster API Provider VCD',
  description: 'Kubernetes clusters on VMware Cloud Director, by Cluster API',
  base: process.env.SITE_BASE ?? '/cluster-api-provider-vcd/',
  srcDir: pages,
  outDir: join(root, 'out', 'site'),
  cacheDir: join(root, 'out', 'site-cache'),
  cleanUrls: true,
  rewrites: { 'README.md': 'index.md', ':path(.*)/README.md': ':path/index.md' },
  // Packages are found from the folder of the link, not from docs/.
  vite: { resolve: { preserveSymlinks: true } },
  // A link that leads nowhere fails the build.
  ignoreDeadLinks: false,
  markdown: {
    // Pages have no HTML of their own: <name> is a placeholder.
    html: false,
    config: (md) => { external(md); literal(md) },
    // As GitHub makes them; checked by a test of docs/.
    anchor: {
      slugify: (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'),
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    sidebar: sidebar(),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: repository + '/edit/main/docs/:path' },
    footer: { message: 'Apache License 2.0' },
  },
})
