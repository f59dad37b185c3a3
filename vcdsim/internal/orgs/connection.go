// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"net"
	"net/url"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
)

func connectionRoutes(add api.AddRoute) {
	add("POST", "/cloudapi/1.0.0/testConnection", testConnection, cloud.LatencyCloudAPI)
}

type connectionBody struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Secure bool   `json:"secure"`
}

// testConnection returns the certificates of a server, so that a client can trust them. The simulator opens no
// connections, so only the site itself is reachable.
func testConnection(r *api.Request) (*api.Response, error) {
	var body connectionBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	if body.Host == "" || body.Port < 1 || body.Port > 65535 {
		return nil, store.BadRequest("The host %q or the port %d is invalid.", body.Host, body.Port)
	}
	probe := map[string]any{
		"result":              "The host cannot be reached.",
		"canConnect":          false,
		"sslHandshake":        false,
		"connectionResult":    "ERROR_CANNOT_CONNECT",
		"sslResult":           nil,
		"certificateChain":    nil,
		"additionalCAIssuers": []any{},
	}
	if isSite(r.Site, body) {
		probe["result"] = "The connection succeeded."
		probe["canConnect"] = true
		probe["connectionResult"] = "SUCCESS"
		if body.Secure {
			probe["result"] = "The certificate is not trusted."
			probe["sslHandshake"] = true
			probe["sslResult"] = "ERROR_UNTRUSTED_CERTIFICATE"
			probe["certificateChain"] = r.Cloud.Chain()
		}
	}
	return api.JSON(map[string]any{"targetProbe": probe, "proxyProbe": nil}), nil
}

// isSite reports whether a host and port are those of the site.
func isSite(site wire.Site, body connectionBody) bool {
	own, err := url.Parse(site.Base())
	if err != nil {
		return false
	}
	port := own.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(body.Host, strconv.Itoa(body.Port)) == net.JoinHostPort(own.Hostname(), port)
}
