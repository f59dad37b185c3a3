// Files of a built site, and a server for them.
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png', '.json': 'application/json' }

// files returns all files in a folder and its folders.
export function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? files(path) : [path]
  })
}

// pagesOf returns the files of the pages in a folder.
export function pagesOf(folder) {
  return files(folder).filter((path) => path.endsWith('.html') && !path.endsWith('404.html'))
}

// fileOf returns the file that a path of the site leads to, as GitHub Pages finds it.
export function fileOf(folder, path) {
  if (path.endsWith('/')) return join(folder, path, 'index.html')
  return join(folder, /\.[a-z]\w*$/.test(path) ? path : path + '.html')
}

// serve serves a folder below a base, and returns the server.
export function serve(folder, base) {
  return new Promise((started) => {
    const server = createServer((request, response) => {
      const path = decodeURIComponent(new URL(request.url, 'http://site').pathname).slice(base.length - 1)
      try {
        const file = fileOf(folder, path)
        const content = readFileSync(file)
        response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' })
        response.end(content)
      } catch {
        response.writeHead(404)
        response.end()
      }
    }).listen(0, '127.0.0.1', () => started(server))
  })
}
