// Completes a folder with sites of versions: the list of versions, the addresses of the newest release under latest/, the first page.
// usage: node assemble.mjs FOLDER
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pagesOf } from './files.mjs'

const folder = process.argv[2]
const base = '/cluster-api-provider-vcd/'

// versionsOf lists the newest release first, and main last.
function versionsOf(folder) {
  const names = readdirSync(folder)
  const number = (name) => name.slice(1).split('.').map(Number)
  const newer = (a, b) => number(b)[0] - number(a)[0] || number(b)[1] - number(a)[1]
  const releases = names.filter((name) => /^v\d+\.\d+$/.test(name)).sort(newer)
  const main = names.includes('main') ? [{ name: 'main', released: false, latest: false }] : []
  return [...releases.map((name, i) => ({ name, released: true, latest: i === 0 })), ...main]
}

function redirect(path, target) {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `<!doctype html>
<html lang="en">
<title>Cluster API Provider VCD</title>
<link rel="canonical" href="${target}">
<meta http-equiv="refresh" content="0; url=${target}">
<script>location.replace(${JSON.stringify(target)} + location.hash)</script>
<p>This page is <a href="${target}">${target}</a>.</p>
</html>
`)
}

const versions = versionsOf(folder)
if (!versions.length) throw new Error(`${folder} has no folder of a version`)
writeFileSync(join(folder, 'versions.json'), JSON.stringify(versions, null, 2) + '\n')
const first = versions[0].name
for (const file of pagesOf(join(folder, first))) {
  const page = relative(join(folder, first), file)
  redirect(join('latest', page), `${base}${first}/${page.replace(/(index)?\.html$/, '')}`)
}
redirect('index.html', `${base}latest/`)
writeFileSync(join(folder, '404.html'), `<!doctype html>
<html lang="en">
<title>Page not found</title>
<p>This page does not exist. <a href="${base}latest/">Documentation of the newest version</a></p>
</html>
`)
