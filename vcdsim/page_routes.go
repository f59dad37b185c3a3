// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/page"
)

func (ctl *control) getPage(_ *request) (*response, error) { return pageFile(page.Index) }

func (ctl *control) getPageFile(r *request) (*response, error) { return pageFile(r.vars["file"]) }

func pageFile(name string) (*response, error) {
	content, mediaType, ok := page.File(name)
	if !ok {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "the page has no file %s", name)
	}
	return &response{
		status:      http.StatusOK,
		raw:         content,
		contentType: mediaType,
		header: map[string]string{
			"Content-Security-Policy": page.Policy,
			"Referrer-Policy":         "no-referrer",
			"X-Frame-Options":         "DENY",
		},
	}, nil
}
