// The theme of VitePress with a selector of versions above the navigation, and a notice on pages that are not of the newest release.
import { h } from 'vue'
import DefaultTheme from 'vitepress/theme'
import Notice from './Notice.vue'
import Selector from './Selector.vue'

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'sidebar-nav-before': () => h(Selector), 'doc-before': () => h(Notice) }),
}
