// SPDX-License-Identifier: Apache-2.0

// Package page is vcdsim's web page. It shows the simulated objects, the running tasks and the last requests, live.
// The page is static and reads its data from the control API. It renders all data as text, never as markup, because
// tenants choose the names.
package page

import (
	"embed"
	"path"
)

// Policy is the content security policy of the page: nothing from other origins, no inline scripts or styles.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed index.html page.css page.js icon.svg
var files embed.FS

// Index is the name of the page itself.
const Index = "index.html"

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// File returns a file of the page and its media type. ok is false if there is no file of that name.
func File(name string) (content []byte, mediaType string, ok bool) {
	content, err := files.ReadFile(name)
	return content, types[path.Ext(name)], err == nil
}
