// The site is docs/ as it is: pages and links are those that work on GitHub. Navigation is docs/README.md.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { keywords } from './keywords.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const docs = join(root, 'docs')
const pages = join(root, 'site', 'pages') // a link to docs/
const repository = 'https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd'
// Each version is a site of its own in a folder with its name. hack/site.sh sets the tag of a release.
const version = process.env.SITE_VERSION ?? 'main'
const ref = process.env.SITE_REF ?? 'main'

// fileOf returns the file of a link in docs/README.md; a link to a folder leads to its README.md.
function fileOf(target) {
  const path = join(docs, target)
  return statSync(path).isDirectory() ? join(path, 'README.md') : path
}

// titleOf returns the heading of a page.
function titleOf(file) {
  return readFileSync(file, 'utf8').match(/^# (.+)/m)[1]
}

// sidebar reads the lists of docs/README.md. Each page is listed once, by its title.
function sidebar() {
  const sections = []
  const listed = new Set()
  let title
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    title = line.match(/^## (.+)/)?.[1] ?? title
    if (!title || !line.startsWith('- ')) continue
    for (const [, target] of line.matchAll(/\[[^\]]+\]\(([^)#:]+)[^)]*\)/g)) {
      if (target.startsWith('..') || listed.has(target) || title === 'Status') continue
      listed.add(target)
      if (sections.at(-1)?.text !== title) sections.push({ text: title, collapsed: sections.length > 1, items: [] })
      sections.at(-1).items.push({ text: titleOf(fileOf(target)), link: '/' + target.replace(/\.md$/, '') })
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
      token.attrSet('href', `${repository}/${kind}/${ref}/${relative(root, target)}${anchor ? '#' + anchor : ''}`)
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

// markup understands the only HTML that pages have: comments, which are left out, and line breaks in tables.
function markup(md) {
  md.core.ruler.before('normalize', 'drop-comments', (state) => {
    state.src = state.src.replace(/^<!--.*?-->$/gms, '')
  })
  md.inline.ruler.before('autolink', 'line-break', (state, silent) => {
    const found = state.src.slice(state.pos).match(/^<br ?\/?>/)
    if (!found) return false
    if (!silent) state.push('hardbreak', 'br', 0)
    state.pos += found[0].length
    return true
  })
}

// indexed adds the words that users type for a page, and do not stand in its title, to the index of the search.
function indexed(src, env, md) {
  const words = keywords[env.relativePath.replace(/\.md$/, '')]
  return md.render(words ? src.replace(/^# .+$/m, `$&\n\n${words}`) : src, env)
}

export default defineConfig({
  title: 'Cluster API Provider VCD',
  description: 'Kubernetes clusters on VMware Cloud Director, by Cluster API',
  base: `/cluster-api-provider-vcd/${version}/`,
  srcDir: pages,
  outDir: join(process.env.SITE_FOLDER ?? join(root, 'out', 'site'), version),
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
    config: (md) => { external(md); literal(md); markup(md) },
    // As GitHub makes them; checked by a test of docs/.
    anchor: {
      slugify: (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'),
    },
  },
  themeConfig: {
    version,
    search: {
      provider: 'local',
      options: {
        _render: indexed,
        miniSearch: { searchOptions: { boost: { title: 8, titles: 3, text: 1 }, combineWith: 'AND', fuzzy: 0.15, prefix: true } },
      },
    },
    outline: { level: [2, 3] },
    sidebar: sidebar(),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: repository + '/edit/main/docs/:path' },
    footer: { message: 'Apache License 2.0' },
  },
})
