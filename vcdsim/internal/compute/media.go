// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// MediaByID returns a media item and its catalog, or an error if the caller cannot access it.
func MediaByID(r *api.Request, id string) (store.OrgCatalog, *store.Media, error) {
	sh, m := r.Cloud.Store.Media(store.Bare(id))
	if m == nil || !access.Reads(r, sh) || r.Method != http.MethodGet && r.Vars["vm"] == "" && !r.Session.Sees(sh.Org.ID) {
		return store.OrgCatalog{}, nil, store.Forbidden("MEDIA_VIEW", id)
	}
	return sh, m, nil
}
