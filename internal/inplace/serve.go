// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// maxRequest is the maximum size of a request, in bytes. A request has six objects, of at most 1.5 MiB each.
const maxRequest = 10 << 20

// A Server serves handlers by path, as the webhook server of the manager does.
type Server interface {
	Register(path string, handler http.Handler)
}

// A hook is a hook of Cluster API that this package answers.
type hook struct {
	name    string // unique among the handlers; empty for the discovery
	of      runtimecatalog.Hook
	handler func(response schema.GroupVersionKind) http.Handler
}

var hooks = []hook{
	{
		name:    "can-update-machine",
		of:      runtimehooksv1.CanUpdateMachine,
		handler: answering[runtimehooksv1.CanUpdateMachineRequest](canUpdateMachine),
	},
	{
		name:    "can-update-machine-set",
		of:      runtimehooksv1.CanUpdateMachineSet,
		handler: answering[runtimehooksv1.CanUpdateMachineSetRequest](canUpdateMachineSet),
	},
	{
		name:    "update-machine",
		of:      runtimehooksv1.UpdateMachine,
		handler: answering[runtimehooksv1.UpdateMachineRequest](updateMachine),
	},
}

// Register serves the hooks, and the discovery of them.
func Register(server Server) error {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return fmt.Errorf("listing the hooks of Cluster API: %w", err)
	}
	var served []runtimehooksv1.ExtensionHandler
	for _, h := range hooks {
		gvh, err := h.register(catalog, server)
		if err != nil {
			return err
		}
		served = append(served, runtimehooksv1.ExtensionHandler{
			Name: h.name,
			RequestHook: runtimehooksv1.GroupVersionHook{
				APIVersion: gvh.GroupVersion().String(),
				Hook:       gvh.Hook,
			},
		})
	}
	discovery := hook{
		of: runtimehooksv1.Discovery,
		handler: answering(func(_ *runtimehooksv1.DiscoveryRequest, response *runtimehooksv1.DiscoveryResponse) error {
			response.Handlers = served
			return nil
		}),
	}
	_, err := discovery.register(catalog, server)
	return err
}

// register serves a hook under its path.
func (h hook) register(catalog *runtimecatalog.Catalog, server Server) (runtimecatalog.GroupVersionHook, error) {
	gvh, err := catalog.GroupVersionHook(h.of)
	if err != nil {
		return gvh, fmt.Errorf("finding hook %s: %w", h.name, err)
	}
	response, err := catalog.Response(gvh)
	if err != nil {
		return gvh, fmt.Errorf("finding the response of hook %s: %w", h.name, err)
	}
	server.Register(runtimecatalog.GVHToPath(gvh, h.name), h.handler(response))
	return gvh, nil
}

// A responseOf is a pointer to a response of type P.
type responseOf[P any] interface {
	*P
	runtimehooksv1.ResponseObject
}

// answering returns a function that makes a handler of a hook, which reads a request and writes its response.
func answering[Q, P any, R responseOf[P]](answer func(*Q, R) error) func(schema.GroupVersionKind) http.Handler {
	return func(kind schema.GroupVersionKind) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request := new(Q)
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(request); err != nil {
				http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
				return
			}
			response := R(new(P))
			response.GetObjectKind().SetGroupVersionKind(kind)
			response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
			if err := answer(request, response); err != nil {
				response.SetStatus(runtimehooksv1.ResponseStatusFailure)
				response.SetMessage(err.Error())
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(response) // a failure means that the client is gone
		})
	}
}
