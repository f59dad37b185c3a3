// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const profilesPath = "/cloudapi/1.0.0/applicationPortProfiles"

// A PortProfile is an application port profile. It contains the port to which a NAT rule sends traffic.
type PortProfile struct {
	Ref

	Description string // contains the ownership marker
	Scope       string // TENANT, PROVIDER or SYSTEM
	Status      Realization
	Protocol    string // TCP or UDP; empty unless there is exactly one port
	Port        int    // 0 unless there is exactly one port
}

type wireProfile struct {
	wireObject

	Scope string `json:"scope"`
	Ports []struct {
		Protocol     string   `json:"protocol"`
		Destinations []string `json:"destinationPorts"`
	} `json:"applicationPorts"`
}

func (w *wireProfile) profile() PortProfile {
	p := PortProfile{Ref: refOf(&w.Ref), Description: w.Description, Scope: w.Scope, Status: w.Status}
	if len(w.Ports) == 1 && len(w.Ports[0].Destinations) == 1 {
		if port, err := strconv.Atoi(w.Ports[0].Destinations[0]); err == nil {
			p.Protocol = w.Ports[0].Protocol
			p.Port = port
		}
	}
	return p
}

// PortProfiles lists the application port profiles of the organization. It requires a right to view the networks of the
// organization.
func (n *NAT) PortProfiles(ctx context.Context) ([]PortProfile, error) {
	l := api.Listing{
		Path:  profilesPath,
		What:  "application port profiles",
		Sort:  "name",
		Terms: []fiql.Term{fiql.Is("scope", "TENANT")},
	}
	return api.ListAs(ctx, n.client, l, (*wireProfile).profile)
}

// CreatePortProfile starts the creation of an application port profile, which is the owner of the task. The profile
// belongs to the organization and to the VDC or VDC group of a gateway. Like all changes, it requires the right
// "Organization vDC Gateway: Configure NAT" or the one to configure the firewall.
func (n *NAT) CreatePortProfile(ctx context.Context, of Gateway, p PortProfile) (Task, error) {
	return startCreating(ctx, n.client, "application port profile", p.Name, profilesPath, map[string]any{
		"name":             p.Name,
		"description":      p.Description,
		"scope":            "TENANT",
		"orgRef":           wire.RefTo(of.Org.ID),
		"contextEntityId":  of.Owner.ID,
		"applicationPorts": applicationPorts(p.Protocol, p.Port),
	})
}

func applicationPorts(protocol string, port int) []map[string]any {
	return []map[string]any{{"protocol": protocol, "destinationPorts": []string{strconv.Itoa(port)}}}
}

// A PortProfileChange is one change of an application port profile. Nil fields stay unchanged.
type PortProfileChange struct {
	Name        *string
	Description *string
	Port        *ProfilePort
}

// A ProfilePort is the only port of a profile.
type ProfilePort struct {
	Protocol string // TCP or UDP
	Port     int
}

// UpdatePortProfile reads an application port profile, changes it and starts writing it back. Fields that the change
// does not set are sent as VCD returned them. The owner is set again, because VCD does not return it.
func (n *NAT) UpdatePortProfile(ctx context.Context, of Gateway, id string, change PortProfileChange) (Task, error) {
	return startChanging(ctx, n.client, "application port profile", id, profilePath(id), func(o wire.Object) (bool, error) {
		o.Set("contextEntityId", of.Owner.ID)
		wire.SetRef(o, "orgRef", &of.Org.ID)
		return change.apply(o)
	})
}

func (c PortProfileChange) apply(o wire.Object) (bool, error) {
	return wire.Either(wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetBy(o, c.Port, setProfilePort)),
		nil
}

func setProfilePort(o wire.Object, port ProfilePort) bool {
	var now wireProfile
	_ = json.Unmarshal(o["applicationPorts"], &now.Ports) // may be null
	if p := now.profile(); p.Protocol == port.Protocol && p.Port == port.Port {
		return false
	}
	return o.Set("applicationPorts", applicationPorts(port.Protocol, port.Port))
}

// DeletePortProfile starts the deletion of an application port profile, which must not be in use by a rule.
func (n *NAT) DeletePortProfile(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, n.client, "application port profile", id, profilePath(id))
}

func profilePath(id string) string { return profilesPath + "/" + url.PathEscape(id) }
