// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/page"
)

func (ctl *Control) getPage(_ *api.Request) (*api.Response, error) { return pageFile(page.Index) }

func (ctl *Control) getPageFile(r *api.Request) (*api.Response, error) {
	return pageFile(r.Vars["file"])
}

func pageFile(name string) (*api.Response, error) {
	content, mediaType, ok := page.File(name)
	if !ok {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "the page has no file %s", name)
	}
	return &api.Response{
		Status:      http.StatusOK,
		Raw:         content,
		ContentType: mediaType,
		Header: map[string]string{
			"Content-Security-Policy": page.Policy,
			"Referrer-Policy":         "no-referrer",
			"X-Frame-Options":         "DENY",
		},
	}, nil
}
