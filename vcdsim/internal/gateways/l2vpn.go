// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// l2Path is the path of the L2 VPN tunnels of a gateway.
const l2Path = "1.0.0/edgeGateways/{gateway}/l2vpn/tunnels"

// Session modes of an L2 VPN tunnel. The server generates the peer code that the client needs.
const (
	l2Server = "SERVER"
	l2Client = "CLIENT"
)

// maskedKey replaces a pre-shared key in responses since VCD 10.5.1.1. Of the simulated releases, 10.6 is the first
// that masks it.
const maskedKey = "******"

// maxTunnelID is the highest tunnel ID of a stretched network.
const maxTunnelID = 4093

// defaultInterface is the default subnet of a server's tunnel interface.
const defaultInterface = "169.254.64.225/27"

// l2Collection returns the collection of L2 VPN tunnels of a gateway. The details of the task that creates a tunnel
// contain its ID.
func l2Collection() *documents.Collection {
	c := gatewayCollection("l2vpn/tunnels", "l2VpnTunnel", "L2 VPN Tunnel", "name", "sessionMode", "localEndpointIP",
		"remoteEndpointIP")
	c.Path = l2Path
	c.Anonymous = true
	c.Reveals = true
	c.Unfiltered = true
	c.Unique = []string{"name"}
	c.Prepare = prepareL2
	c.Show = showL2
	c.Defaults = map[string]any{
		"description":             "",
		"enabled":                 true,
		"connectorInitiationMode": "INITIATOR",
		"logging":                 false,
		"preSharedKey":            nil,
		"tunnelInterface":         nil,
		"peerCode":                nil,
		"stretchedNetworks":       []any{},
	}
	return c
}

func l2Routes(add api.AddRoute) {
	c := l2Collection()
	path := "/cloudapi/" + c.Path + "/{id}"
	add("GET", path+"/status", api.With(tunnelInPath(c), getL2Status), cloud.LatencyCloudAPI)
	add("GET", path+"/metrics", api.With(tunnelInPath(c), getL2Metrics), cloud.LatencyCloudAPI)
}

func prepareL2(r *api.Request, body map[string]any, old *store.Object) error {
	if err := SameVersion(body, old); err != nil {
		return err
	}
	for _, field := range []string{"localEndpointIP", "remoteEndpointIP"} {
		if a, err := netip.ParseAddr(store.Text(body, field)); err != nil || !a.Is4() {
			return store.BadRequest("The field %s %q is not an IPv4 address.", field, store.Text(body, field))
		}
	}
	if mode := store.Text(body, "connectorInitiationMode"); !slices.Contains(initiationModes, mode) {
		return store.BadRequest("The connector initiation mode %q is invalid.", mode)
	}
	if err := prepareSession(body, old); err != nil {
		return err
	}
	if err := prepareStretched(r, body, old); err != nil {
		return err
	}
	return OwnAddress(r, r.Vars["gateway"], store.Text(body, "localEndpointIP"))
}

// prepareSession checks the fields that a session mode requires. A server needs a key and a tunnel interface, from
// which its peer code is derived. A client needs the peer code of its server.
func prepareSession(body map[string]any, old *store.Object) error {
	mode := store.Text(body, "sessionMode")
	if old != nil && mode != store.Text(old.Body, "sessionMode") {
		return store.BadRequest("The session mode of an L2 VPN tunnel cannot be changed.")
	}
	if old != nil && store.Text(body, "preSharedKey") == maskedKey {
		body["preSharedKey"] = old.Body["preSharedKey"]
	}
	switch {
	case mode == l2Server && store.Text(body, "preSharedKey") == "":
		return store.BadRequest("An L2 VPN tunnel with the session mode %s needs a pre-shared key.", mode)
	case mode == l2Server:
		return prepareServer(body, old)
	case mode == l2Client && store.Text(body, "peerCode") == "":
		return store.BadRequest("An L2 VPN tunnel with the session mode %s needs the peer code of its server.", mode)
	case mode == l2Client:
		return readPeerCode(store.Text(body, "peerCode"))
	}
	return store.BadRequest("The session mode %q is invalid.", mode)
}

func prepareServer(body map[string]any, old *store.Object) error {
	if store.Text(body, "tunnelInterface") == "" {
		body["tunnelInterface"] = defaultInterface
		if old != nil {
			body["tunnelInterface"] = old.Body["tunnelInterface"]
		}
	}
	if _, err := netip.ParsePrefix(store.Text(body, "tunnelInterface")); err != nil {
		return store.BadRequest("The tunnel interface %q is not in CIDR format.", store.Text(body, "tunnelInterface"))
	}
	code, err := json.Marshal([]any{map[string]any{
		"transport_tunnel_path": store.Text(body, "name"),
		"peer_address":          store.Text(body, "localEndpointIP"),
		"tunnel_interface":      store.Text(body, "tunnelInterface"),
		"psk":                   store.Text(body, "preSharedKey"),
	}})
	if err != nil {
		return err
	}
	body["peerCode"] = base64.StdEncoding.EncodeToString(code)
	return nil
}

func readPeerCode(code string) error {
	if _, err := base64.StdEncoding.DecodeString(code); err != nil {
		return store.BadRequest("The peer code is invalid.")
	}
	return nil
}

// prepareStretched completes the stretched networks of a tunnel. A server assigns the tunnel IDs; a client must send
// the tunnel IDs of its server.
func prepareStretched(r *api.Request, body map[string]any, old *store.Object) error {
	server := store.Text(body, "sessionMode") == l2Server
	numbers := map[string]int{}
	if old != nil && server {
		numbers = tunnelIDs(old.Body)
	}
	list, _ := body["stretchedNetworks"].([]any)
	for i := range list {
		item, _ := list[i].(map[string]any)
		id := store.RefID(item, "networkRef")
		org, _, n := r.Cloud.Store.Network(store.Bare(id))
		if n == nil || !r.Session.Sees(org.ID) {
			return store.Forbidden("NETWORK_VIEW", id)
		}
		number := documents.Number(item["tunnelId"])
		if server {
			number = numbers[n.ID]
			if number == 0 {
				number = nextTunnelID(numbers)
			}
		}
		if number < 1 || number > maxTunnelID {
			return store.BadRequest("The tunnel ID %d of network %q must be between 1 and %d.", number, n.Name, maxTunnelID)
		}
		numbers[n.ID] = number
		list[i] = map[string]any{"networkRef": api.Ref("network", n.ID, n.Name), "tunnelId": number}
	}
	return nil
}

// tunnelIDs returns the tunnel IDs of a tunnel's networks by the bare ID of the network.
func tunnelIDs(body map[string]any) map[string]int {
	out := map[string]int{}
	for _, x := range listOf(body, "stretchedNetworks") {
		item, _ := x.(map[string]any)
		out[store.Bare(store.RefID(item, "networkRef"))] = documents.Number(item["tunnelId"])
	}
	return out
}

func nextTunnelID(taken map[string]int) int {
	highest := 0
	for _, n := range taken {
		highest = max(highest, n)
	}
	return highest + 1
}

// showL2 shows a tunnel, and masks its key if the release does.
func showL2(r *api.Request, d *store.Object, out map[string]any) {
	OnlyVersions(r, d, out)
	if store.Text(out, "preSharedKey") != "" && api.HighestVersion(r) >= string(cells.Version106) {
		out["preSharedKey"] = maskedKey
	}
}

func getL2Status(_ *api.Request, _ *store.Object) (*api.Response, error) {
	return api.JSON(map[string]any{"runtimeStatus": "DOWN", "failureReason": noPeer}), nil
}

func getL2Metrics(_ *api.Request, _ *store.Object) (*api.Response, error) {
	out := map[string]any{"segmentPath": ""}
	for _, field := range []string{
		"bumBytesIn", "bumBytesOut", "bumPacketsIn", "bumPacketsOut", "bytesIn", "bytesOut", "packetsIn", "packetsOut",
		"packetsReceiveError", "packetsSentError",
	} {
		out[field] = 0
	}
	return api.JSON(out), nil
}
