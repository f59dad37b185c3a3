// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Security types of an IPsec tunnel: the defaults of NSX, or the properties in connectionField.
const (
	securityDefault = "DEFAULT"
	securityCustom  = "CUSTOM"
)

// connectionField is the field of a tunnel that stores its connection properties. VCD shows them at a separate address.
const connectionField = "connectionProperties"

// Authentication modes of an IPsec tunnel.
const (
	authPSK         = "PSK"
	authCertificate = "CERTIFICATE"
)

var initiationModes = []string{"INITIATOR", "RESPOND_ONLY", "ON_DEMAND"}

// ipsecCollection returns the collection of IPsec VPN tunnels of a gateway.
func ipsecCollection() *documents.Collection {
	c := gatewayCollection("ipsec/tunnels", "ipSecVpnTunnel", "IPSec VPN Tunnel", "name")
	c.Path = documents.IPsecPath
	c.Anonymous = true
	c.Unfiltered = true
	c.Hidden = []string{connectionField}
	c.Prepare = prepareIPsec
	c.Defaults = map[string]any{
		"description":             "",
		"enabled":                 true,
		"authenticationMode":      authPSK,
		"preSharedKey":            nil,
		"certificateRef":          nil,
		"caCertificateRef":        nil,
		"connectorInitiationMode": "INITIATOR",
		"securityType":            securityDefault,
		"logging":                 false,
	}
	return c
}

func ipsecRoutes(add api.AddRoute) {
	c := ipsecCollection()
	path := "/cloudapi/" + c.Path
	add("GET", path+"/defaultConnectionProperties", getDefaultConnection, cloud.LatencyCloudAPI)
	add("GET", path+"/{id}/connectionProperties", api.With(tunnelInPath(c), getConnection), cloud.LatencyCloudAPI)
	add("PUT", path+"/{id}/connectionProperties", api.With(tunnelInPath(c), putConnection(c)), cloud.LatencyWrite)
	add("GET", path+"/{id}/status", api.With(tunnelInPath(c), getIPsecStatus), cloud.LatencyCloudAPI)
}

// tunnelInPath returns a lookup function for the tunnel in the path.
func tunnelInPath(c *documents.Collection) func(*api.Request) (*store.Object, error) {
	return func(r *api.Request) (*store.Object, error) {
		if _, err := OnGateway(r); err != nil {
			return nil, err
		}
		return c.Find(r, r.Vars["id"])
	}
}

// prepareIPsec checks the endpoints, the authentication and the security of a tunnel.
func prepareIPsec(r *api.Request, body map[string]any, old *store.Object) error {
	if err := SameVersion(body, old); err != nil {
		return err
	}
	if err := prepareEndpoints(body); err != nil {
		return err
	}
	if err := checkUniqueTunnel(r, body, old); err != nil {
		return err
	}
	if mode := store.Text(body, "connectorInitiationMode"); !slices.Contains(initiationModes, mode) {
		return store.BadRequest("The connector initiation mode %q is invalid.", mode)
	}
	if err := prepareAuthentication(r, body); err != nil {
		return err
	}
	if err := prepareSecurity(body); err != nil {
		return err
	}
	local, _ := body["localEndpoint"].(map[string]any)
	return OwnAddress(r, r.Vars["gateway"], store.Text(local, "localAddress"))
}

// prepareEndpoints checks the local and the remote endpoint. The ID of an endpoint defaults to its address.
func prepareEndpoints(body map[string]any) error {
	for _, side := range []string{"local", "remote"} {
		end, _ := body[side+"Endpoint"].(map[string]any)
		address := store.Text(end, side+"Address")
		if a, err := netip.ParseAddr(address); err != nil || !a.Is4() {
			return store.BadRequest("The %s address %q of the IPSec VPN tunnel is not an IPv4 address.", side, address)
		}
		documents.Complete(end, map[string]any{side + "Id": address})
		networks, _ := end[side+"Networks"].([]any)
		if side == "local" && len(networks) == 0 {
			return store.BadRequest("An IPSec VPN tunnel needs at least one local network.")
		}
		if err := checkPrefixes(networks); err != nil {
			return err
		}
	}
	return nil
}

func checkPrefixes(networks []any) error {
	for _, n := range networks {
		text, _ := n.(string)
		if _, err := netip.ParsePrefix(text); err != nil {
			return store.BadRequest("The network %q is not in CIDR format.", text)
		}
	}
	return nil
}

// checkUniqueTunnel refuses a second tunnel between the same two addresses.
func checkUniqueTunnel(r *api.Request, body map[string]any, old *store.Object) error {
	_, _, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["gateway"])
	if err != nil {
		return err
	}
	local, remote := tunnelAddresses(body)
	for _, d := range r.Cloud.Store.Documents.On(g.ID, documents.IPsecPath) {
		if l, m := tunnelAddresses(d.Body); d != old && l == local && m == remote {
			return store.BadRequest(
				"IPSec VPN Tunnel with local address %s and remote address %s is already in use.", local, remote)
		}
	}
	return nil
}

func tunnelAddresses(body map[string]any) (local, remote string) {
	l, _ := body["localEndpoint"].(map[string]any)
	m, _ := body["remoteEndpoint"].(map[string]any)
	return store.Text(l, "localAddress"), store.Text(m, "remoteAddress")
}

// prepareAuthentication checks that the body has the credentials of its authentication mode. It completes the
// references to certificates.
func prepareAuthentication(r *api.Request, body map[string]any) error {
	for _, field := range []string{"certificateRef", "caCertificateRef"} {
		id := store.RefID(body, field)
		if id == "" {
			body[field] = nil
			continue
		}
		d := r.Cloud.Store.Documents.Find(documents.CertificatePath, id)
		if d == nil || !r.Session.Sees(d.OrgID) {
			return store.Forbidden("CERTIFICATE_LIBRARY_VIEW", id)
		}
		body[field] = map[string]any{"id": d.ID(), "name": store.Text(d.Body, "alias")}
	}
	switch mode := store.Text(body, "authenticationMode"); {
	case mode == authPSK && store.Text(body, "preSharedKey") == "":
		return store.BadRequest("An IPSec VPN tunnel with the authentication mode %s needs a pre-shared key.", mode)
	case mode == authCertificate && (body["certificateRef"] == nil || body["caCertificateRef"] == nil):
		return store.BadRequest("An IPSec VPN tunnel with the authentication mode %s needs two certificates.", mode)
	case mode != authPSK && mode != authCertificate:
		return store.BadRequest("The authentication mode %q is invalid.", mode)
	}
	return nil
}

// prepareSecurity removes the connection properties of a tunnel with the default security type.
func prepareSecurity(body map[string]any) error {
	switch kind := store.Text(body, "securityType"); {
	case kind == securityDefault:
		delete(body, connectionField)
	case kind != securityCustom:
		return store.BadRequest("The security type %q is invalid.", kind)
	case body[connectionField] == nil:
		body[connectionField] = connectionProperties(securityCustom)
	}
	return nil
}

// connectionProperties returns the default connection properties of NSX.
func connectionProperties(kind string) map[string]any {
	return map[string]any{
		"securityType": kind,
		"ikeConfiguration": map[string]any{
			"ikeVersion":           "IKE_V2",
			"encryptionAlgorithms": []any{"AES_128"},
			"digestAlgorithms":     []any{"SHA2_256"},
			"dhGroups":             []any{"GROUP14"},
			"saLifeTime":           86400,
		},
		"tunnelConfiguration": map[string]any{
			"perfectForwardSecrecyEnabled": true,
			"dfPolicy":                     "COPY",
			"encryptionAlgorithms":         []any{"AES_GCM_128"},
			"digestAlgorithms":             []any{},
			"dhGroups":                     []any{"GROUP14"},
			"saLifeTime":                   3600,
		},
		"dpdConfiguration": map[string]any{"probeInterval": 60},
	}
}

func getDefaultConnection(r *api.Request) (*api.Response, error) {
	if _, err := OnGateway(r); err != nil {
		return nil, err
	}
	return api.JSON(connectionProperties(securityDefault)), nil
}

func getConnection(_ *api.Request, d *store.Object) (*api.Response, error) {
	if own, ok := d.Body[connectionField].(map[string]any); ok {
		return api.JSON(own), nil
	}
	return api.JSON(connectionProperties(securityDefault)), nil
}

// putConnection returns a handler that sets the connection properties of a tunnel. Properties that the request omits
// have the default values of NSX.
func putConnection(c *documents.Collection) func(*api.Request, *store.Object) (*api.Response, error) {
	return func(r *api.Request, d *store.Object) (*api.Response, error) {
		given := map[string]any{}
		if err := r.Document(&given); err != nil {
			return nil, err
		}
		if kind := store.Text(given, "securityType"); kind != securityCustom {
			return nil, store.BadRequest("Connection properties need the security type %s, not %q.", securityCustom, kind)
		}
		own := connectionProperties(securityCustom)
		for field, value := range own {
			section, ok := given[field].(map[string]any)
			if !ok {
				continue
			}
			if err := checkConnectionSection(field, section); err != nil {
				return nil, err
			}
			documents.Complete(section, value.(map[string]any)) //nolint:forcetypeassert // all sections are objects
			own[field] = section
		}
		body := maps.Clone(d.Body)
		body["securityType"] = securityCustom
		body[connectionField] = own
		return c.Change(r, d, body)
	}
}

// connectionValues lists the valid values of the fields of connection properties.
var connectionValues = map[string]map[string][]string{
	"ikeConfiguration": {
		"ikeVersion":           {"IKE_V1", "IKE_V2", "IKE_FLEX"},
		"encryptionAlgorithms": encryptions,
		"digestAlgorithms":     digests,
		"dhGroups":             groups,
	},
	"tunnelConfiguration": {
		"dfPolicy":             {"COPY", "CLEAR"},
		"encryptionAlgorithms": slices.Concat(encryptions, unencrypted),
		"digestAlgorithms":     digests,
		"dhGroups":             groups,
	},
}

var (
	encryptions = []string{"AES_128", "AES_256", "AES_GCM_128", "AES_GCM_192", "AES_GCM_256"}
	unencrypted = []string{
		"NO_ENCRYPTION_AUTH_AES_GMAC_128", "NO_ENCRYPTION_AUTH_AES_GMAC_192", "NO_ENCRYPTION_AUTH_AES_GMAC_256", "NO_ENCRYPTION",
	}
	digests = []string{"SHA1", "SHA2_256", "SHA2_384", "SHA2_512"}
	groups  = []string{"GROUP2", "GROUP5", "GROUP14", "GROUP15", "GROUP16", "GROUP19", "GROUP20", "GROUP21"}
)

// checkConnectionSection checks a section of connection properties.
func checkConnectionSection(name string, section map[string]any) error {
	for field, known := range connectionValues[name] {
		list, ok := section[field].([]any)
		if text := store.Text(section, field); !ok && text != "" {
			list = []any{text}
		}
		for _, value := range list {
			if text, _ := value.(string); !slices.Contains(known, text) {
				return store.BadRequest("The value %q of the field %s is invalid.", text, field)
			}
		}
	}
	if name == "dpdConfiguration" {
		return documents.WithinBounds(section, documents.Bound{Field: "probeInterval", From: 3, To: 60})
	}
	return nil
}

// noPeer is the failure reason of all tunnels: the simulator does not simulate the remote endpoint.
const noPeer = "The peer does not respond."

func getIPsecStatus(_ *api.Request, _ *store.Object) (*api.Response, error) {
	return api.JSON(map[string]any{
		"tunnelStatus": "DOWN",
		"ikeStatus":    map[string]any{"ikeServiceStatus": "DOWN", "failReason": noPeer},
	}), nil
}

func listOf(body map[string]any, field string) []any {
	list, _ := body[field].([]any)
	return list
}
