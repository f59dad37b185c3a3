// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"html"
	"net/http"
	"strconv"
)

// HTMLPage returns an error page as proxies and web servers write it.
func HTMLPage(status int, message string) []byte {
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	return []byte("<html>\n<head><title>" + title + "</title></head>\n<body>\n<center><h1>" + title +
		"</h1></center>\n<p>" +
		html.EscapeString(message) + "</p>\n</body>\n</html>\n")
}
