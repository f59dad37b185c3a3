// The versions that the site has. versions.json is beside the folders of the versions, so a new release also appears in old ones.
import { onMounted, ref } from 'vue'
import { useData, withBase } from 'vitepress'

let loading

// useVersions returns the name of the version of this page, and the list of all versions, which is empty until it is loaded.
export function useVersions() {
  const current = useData().theme.value.version
  const versions = ref([])
  onMounted(async () => {
    loading ??= fetch(withBase('/../versions.json')).then((response) => (response.ok ? response.json() : [])).catch(() => [])
    versions.value = await loading
  })
  return { current, versions }
}

// pageOf returns the address of a page in another version, or of its first page if it does not have that page.
export async function pageOf(version, page) {
  const home = withBase(`/../${version}/`)
  const target = home + page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')
  const response = await fetch(target, { method: 'HEAD' }).catch(() => ({ ok: false }))
  return response.ok ? target : home
}
